//! Who trains for the peer at present, and whether it is still there.

use std::time::{Duration, Instant};

use mingle_peer::api::Caller;

use crate::error::{Reason, Refusal};
use crate::wire::Attach;

/// A trainer whose process cannot be looked at is gone once nothing was heard of it for so long.
const LEASE: Duration = Duration::from_secs(60);

/// A trainer that is attached.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// What it proves with each call that it is the one.
    pub(crate) id: String,
    /// What it is, for people.
    pub(crate) description: String,
    /// Whether it answers orders to evaluate.
    pub(crate) evaluates: bool,
    /// Its process, if the operating system bears out what it said.
    process: Option<i32>,
    heard: Instant,
}

impl Session {
    pub(crate) fn new(id: String, attach: &Attach, caller: Caller, now: Instant) -> Self {
        let process = attach.pid.filter(|pid| caller.process == Some(*pid));
        Self { id, description: attach.describe(), evaluates: attach.evaluates, process, heard: now }
    }

    /// It has called.
    pub(crate) fn note(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Whether this is the process that said so.
    pub(crate) fn is_of(&self, caller: Caller) -> bool {
        self.process.is_some() && self.process == caller.process
    }

    /// Why another trainer cannot attach while this one is.
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

    /// Whether it is known which process it is.
    pub(crate) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    /// Why it does not count as there any more; none if it does.
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

/// Whether there is such a process; one that belongs to somebody else is one too.
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
