//! The session of the attached trainer, and the detection of its absence.

use std::time::{Duration, Instant};

use mingle_peer::api::Caller;

use crate::error::{Reason, Refusal};
use crate::wire::Attach;

/// Silence after which a trainer whose process cannot be observed counts as gone.
const LEASE: Duration = Duration::from_secs(60);

/// An attached trainer.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The secret that the trainer shows with each call.
    pub(crate) id: String,
    /// The client and its process, for people.
    pub(crate) description: String,
    /// Set when the trainer answers orders to evaluate.
    pub(crate) evaluates: bool,
    /// Its process, where the operating system confirms the number that the trainer sent.
    process: Option<i32>,
    heard: Instant,
}

impl Session {
    pub(crate) fn new(id: String, attach: &Attach, caller: Caller, now: Instant) -> Self {
        let process = attach.pid.filter(|pid| caller.process == Some(*pid));
        Self { id, description: attach.describe(), evaluates: attach.evaluates, process, heard: now }
    }

    /// Records a call of the trainer: its lease begins anew.
    pub(crate) fn note(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Returns `true` if the caller is the known process of this session.
    pub(crate) fn is_of(&self, caller: Caller) -> bool {
        self.process.is_some() && self.process == caller.process
    }

    /// The refusal for another trainer while this one is attached.
    pub(crate) fn refusal_of_another(&self, now: Instant) -> Refusal {
        let who = &self.description;
        let end_it = "one trainer trains for a peer: end that one, or give this one a peer of its own";
        if self.has_process() {
            return Refusal::conflict(Reason::Busy, format!("another trainer is attached: {who}")).hint(end_it);
        }
        let silent = now.saturating_duration_since(self.heard);
        let left = LEASE.saturating_sub(silent).as_secs() + 1;
        let silent = silent.as_secs();
        let message = format!("another trainer is attached: {who}, last heard {silent} s ago");
        Refusal::conflict(Reason::Unseen, message)
            .hint(format!("{end_it}; if it has ended, its place is free in {left} s"))
    }

    /// Returns `true` if the process of the trainer is known.
    pub(crate) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    /// The reason why the trainer counts as gone; none while it is present.
    pub(crate) fn absence(&self, now: Instant) -> Option<String> {
        match self.process {
            Some(process) => (!is_running(process)).then(|| format!("process {process} has ended")),
            None => {
                let silence = now.saturating_duration_since(self.heard);
                (silence > LEASE).then(|| format!("nothing was heard of it for {} s", silence.as_secs()))
            }
        }
    }
}

/// Returns `true` if the process exists, also where it belongs to another user.
#[cfg(unix)]
fn is_running(process: i32) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(process) else { return false };
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(not(unix))]
fn is_running(_process: i32) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn attach(pid: i32) -> Attach {
        let text =
            format!(r#"{{"protocol": 1, "name": "x", "layout": [["w", [1]]], "initial": "take", "pid": {pid}}}"#);
        Attach::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_process_that_ended_is_noticed_and_one_that_cannot_be_seen_has_a_lease() {
        let now = Instant::now();
        let late = now + LEASE + Duration::from_secs(1);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let seen = Session::new("a".to_owned(), &attach(pid), Caller { process: Some(pid) }, now);
        assert_eq!(seen.absence(late), None, "a process that was not waited for is there, however long it is silent");
        child.wait().unwrap();
        assert!(seen.absence(now).unwrap().contains("has ended"));
        let mut unseen = Session::new("b".to_owned(), &attach(pid), Caller { process: Some(pid + 1) }, now);
        assert_eq!(unseen.absence(now), None, "what another process says of itself counts for nothing");
        assert!(unseen.absence(late).unwrap().contains("nothing was heard"));
        unseen.note(late);
        assert_eq!(unseen.absence(late), None);
        let refusal = unseen.refusal_of_another(late + Duration::from_secs(20)).to_string();
        assert!(refusal.contains(&format!("process {pid}, last heard 20 s ago")), "{refusal}");
        assert!(!seen.refusal_of_another(late).to_string().contains("last heard"));
        assert!(seen.is_of(Caller { process: Some(pid) }) && !unseen.is_of(Caller::default()));
    }
}
