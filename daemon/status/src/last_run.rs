//! The end of the last run in a home, read from its files, for commands that find no running peer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::events::{Event, EventLine, SolvedProblem};
use crate::results::Summary;
use mingle_home::home::Home;

/// The longest event at the end of the file, in bytes.
const END_BYTES: u64 = 64 << 10;

/// The end of a run, and the next step for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// The end of the run, as a sentence that begins with `its last run`.
    pub end: String,
    /// The next step.
    pub hint: String,
}

impl LastRun {
    /// The last run in a home where no peer runs; `None` if there was none, or its events cannot be read.
    pub fn of(home: &Home) -> Option<Self> {
        let events = newest_events(&home.events())?;
        let event = last_event_of_peer(&events)?;
        let model = home.model().display().to_string();
        let goes_on = "start it again with the same command, such as mingle run: it goes on where it was".to_owned();
        let judge = format!("mingle eval {model} judges its model; mingle run --fresh trains anew");
        let (end, hint) = match event {
            Event::Done { round, .. } | Event::Finished { round, .. } if was_planned_out(&events) => (
                format!("is over after round {round}: a newer plan does not name it any more"),
                "the operator of the swarm decides: a plan with this peer brings it back".to_owned(),
            ),
            Event::Done { round, skipped, metrics, metrics_of, .. } => {
                let skipped = if skipped > 0 { format!(", {skipped} of these rounds skipped") } else { String::new() };
                let of = metrics_of.map(|of| of.to_string()).unwrap_or_default();
                let measured = format!("{skipped}{}{of}", metrics.in_passing());
                let wanted = Summary::read(&home.summary()).ok().map(|summary| summary.rounds_wanted);
                match wanted {
                    Some(wanted) if round < wanted => {
                        (format!("was stopped after round {round} of {wanted}{measured}"), goes_on)
                    }
                    _ => (format!("is over after round {round}{measured}"), judge),
                }
            }
            Event::Finished { round, left: false } => (format!("is over after round {round}"), judge),
            Event::Finished { round, left: true } => {
                (format!("is over: it left the swarm after round {round}"), "a new plan can bring it back".to_owned())
            }
            Event::Solved(SolvedProblem { iterations, objective, .. }) => (
                format!("is over after {iterations} iterations, objective {objective:.12}"),
                format!("its solution is {}", home.root().join("solution.json").display()),
            ),
            Event::Learned { rounds, own, .. } => (
                format!("is over after {rounds} rounds{}", own.in_passing()),
                format!("how it went is in {}", home.root().join("learned.json").display()),
            ),
            Event::Failed { message, .. } => (
                format!("failed: {message}"),
                "mingle doctor says what is wrong with this machine, if anything".to_owned(),
            ),
            _ => ("was cut off".to_owned(), goes_on),
        };
        Some(Self { end: format!("its last run {end}"), hint })
    }
}

/// The last event. Warnings and lines of a training script may come after the end of the run, and count only where
/// nothing else is there.
fn last_event_of_peer(events: &[Event]) -> Option<Event> {
    let is_of_peer = |event: &&Event| !matches!(event, Event::TrainerSaid { .. } | Event::Warning { .. });
    events.iter().rev().find(is_of_peer).or(events.last()).cloned()
}

/// Returns `true` if the last process was left out by a newer plan.
fn was_planned_out(events: &[Event]) -> bool {
    let newest = events.iter().rev().take_while(|event| !matches!(event, Event::Started { .. }));
    newest.into_iter().any(|event| matches!(event, Event::PlannedOut { .. }))
}

/// The newest events in a file, in their order.
fn newest_events(path: &Path) -> Option<Vec<Event>> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(END_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().filter_map(|line| Some(serde_json::from_str::<EventLine>(line).ok()?.event)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    fn ended(lines: &[Event]) -> Option<LastRun> {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let line = |event: &Event| serde_json::to_string(&EventLine::now(1, event.clone())).unwrap() + "\n";
        let text: String = lines.iter().map(line).collect();
        fs::write(home.events(), text + "{\"half a li").unwrap();
        LastRun::of(&home)
    }

    #[test]
    fn a_run_tells_how_it_ended() {
        let joined = Event::Joined {
            neighbours: 2,
            missing: Vec::new(),
            network: mingle_net::transport::NetworkCounts::default(),
        };
        let failed = Event::Failed { code: 6, kind: "refused".to_owned(), message: "no".to_owned() };
        assert!(ended(std::slice::from_ref(&joined)).unwrap().end.ends_with("was cut off"));
        assert_eq!(ended(&[joined.clone(), failed]).unwrap().end, "its last run failed: no");
        let finished = Event::Finished { round: 8, left: false };
        assert_eq!(ended(&[joined.clone(), finished.clone()]).unwrap().end, "its last run is over after round 8");
        let line = Event::TrainerSaid { line: "largest error of a weight: 0.01".to_owned() };
        let warning = Event::Warning { message: "one neighbour is slow".to_owned() };
        assert_eq!(
            ended(&[joined.clone(), finished, line.clone(), warning.clone()]).unwrap().end,
            "its last run is over after round 8"
        );
        assert!(ended(&[joined, line.clone(), warning]).unwrap().end.ends_with("was cut off"));
        assert!(ended(&vec![line; 2_000]).unwrap().end.ends_with("was cut off"), "a script that prints much");
        assert_eq!(ended(&[]), None);
        let done = Event::Finished { round: 9, left: false };
        let out = ended(&[Event::PlannedOut { counter: 2 }, done.clone()]).unwrap();
        assert!(out.end.contains("a newer plan does not name it") && out.hint.contains("the operator"), "{out:?}");
        let started = Event::Started { unix_s: 0, version: String::new() };
        assert!(!ended(&[Event::PlannedOut { counter: 2 }, started, done]).unwrap().end.contains("plan"));
    }
}
