//! `mingle wait`: blocks until a condition holds for the peer in a home, for scripts and supervisors.

use std::time::{Duration, Instant};

use mingle_peer::api::client::{self, Client};
use mingle_peer::last_run::LastRun;
use mingle_peer::results::Summary;
use mingle_peer::status::{PeerState, Status};
use mingle_peer::{Error, ErrorKind, Home, Result};

use crate::cli::{WaitArgs, WaitCondition};
use crate::out;

/// Pause between two attempts to reach a peer that is not there yet.
const RETRY: Duration = Duration::from_millis(100);
/// Time without a peer after which its absence is reported.
const REPORT_ABSENCE: Duration = Duration::from_secs(5);

/// Waits, and prints the state reached.
pub(super) fn execute(arguments: &WaitArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let condition = arguments.condition;
    let reached = client::block_on(async {
        let mut seen = None;
        let watching = watch(&home, arguments, &mut seen);
        match tokio::time::timeout(arguments.timeout, watching).await {
            Ok(reached) => Ok(reached),
            Err(_) => Err(too_late(&home, arguments, seen).await),
        }
    })?;
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.wait/1",
            "condition": condition.to_string(),
            "state": reached.state,
            "round": reached.round,
            "neighbours_up": reached.neighbours_up,
        }));
    } else {
        out::line(format!(
            "{condition}  {}, round {}, {} neighbours up",
            reached.state, reached.round, reached.neighbours_up
        ));
    }
    Ok(())
}

/// The state of a peer.
#[derive(Clone, Copy, Debug)]
struct ReachedState {
    state: PeerState,
    round: u64,
    neighbours_up: usize,
}

impl ReachedState {
    fn of(status: &Status) -> Self {
        Self { state: status.state, round: status.round, neighbours_up: status.neighbours_up() }
    }
}

/// Follows the snapshots until the condition holds; `seen` is the last one. A peer that is not there may still come,
/// and one that has gone may come back.
async fn watch(home: &Home, arguments: &WaitArgs, seen: &mut Option<ReachedState>) -> ReachedState {
    let condition = arguments.condition;
    let mut absent_since = Some(Instant::now());
    loop {
        if let Ok(mut snapshots) = Client::new(home).follow("/v1/status/follow").await {
            while let Some(text) = snapshots.next().await {
                let Ok(status) = serde_json::from_str::<Status>(&text) else { continue };
                let reached = ReachedState::of(&status);
                *seen = Some(reached);
                absent_since = Some(Instant::now());
                if holds(condition, &status) {
                    return reached;
                }
            }
        }
        *seen = None;
        if condition == WaitCondition::Done
            && let Some(reached) = finished(home)
        {
            return reached;
        }
        if absent_since.take_if(|since| since.elapsed() > REPORT_ABSENCE).is_some() {
            report_absence(home, arguments.timeout);
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Reports that no peer runs in the home, and how its last run ended.
fn report_absence(home: &Home, timeout: Duration) {
    let last = LastRun::of(home).map(|last| format!(": {}", last.end)).unwrap_or_default();
    let span = mingle_peer::units::time_span(timeout.as_secs_f64());
    out::remark(format_args!(
        "waiting    no peer runs in {}{last}; for up to {span}: look whether mingle run failed",
        home.root().display()
    ));
}

fn holds(condition: WaitCondition, status: &Status) -> bool {
    match condition {
        WaitCondition::Peers(count) => status.neighbours_up() >= count,
        WaitCondition::Waiting(count) => status.waiting >= count,
        WaitCondition::Plan => status.plan.is_some(),
        WaitCondition::Joined => status.joined,
        WaitCondition::Round(round) => status.round >= round,
        WaitCondition::Done => status.state == PeerState::Done,
    }
}

/// The finished run in this home, if it did all its rounds and no process runs there any more.
fn finished(home: &Home) -> Option<ReachedState> {
    let _still = home.hold_still().ok()??;
    let summary = Summary::read(&home.summary()).ok()?;
    let is_done = summary.rounds >= summary.rounds_wanted;
    is_done.then_some(ReachedState { state: PeerState::Done, round: summary.rounds, neighbours_up: 0 })
}

async fn too_late(home: &Home, arguments: &WaitArgs, seen: Option<ReachedState>) -> Error {
    let condition = arguments.condition;
    let span = mingle_peer::units::time_span(arguments.timeout.as_secs_f64());
    let Some(seen) = seen else {
        // The error explains why no peer answers.
        let nobody = Client::new(home).get::<Status>("/v1/status").await.err();
        return nobody
            .unwrap_or_else(|| Error::new(ErrorKind::TimedOut, format!("{condition} was not reached in {span}")));
    };
    Error::new(
        ErrorKind::TimedOut,
        format!(
            "{condition} was not reached in {span}: the peer is {}, round {}, {} neighbours up",
            seen.state, seen.round, seen.neighbours_up
        ),
    )
}
