//! Objections between this peer and its neighbours: those that concern one neighbour, and those that end this peer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mingle_protocol::{Mismatch, NodeId};

use crate::edge::StreamRefusal;
use crate::printable::one_line;

/// Time for which a neighbour may refuse this peer's identity before it counts: within it a crash of this peer's last
/// process is noticed, and its place is free again.
const IDENTITY_PATIENCE: Duration = Duration::from_secs(12);

/// Neighbours connected to another process with this peer's key that are needed as witnesses; a single one may claim
/// anything.
const IDENTITY_WITNESSES: usize = 2;

/// Hint where two processes have one key.
pub const ONE_PROCESS_A_KEY: &str =
    "stop the other process; a copied home is the usual cause: give this peer a home and a key of its own";

/// An objection of a neighbour to this peer, or to its work.
#[derive(Clone, Debug)]
pub struct Objection {
    /// The objection, as the end of a sentence that begins with the neighbour's name.
    pub what: String,
    /// The next step for the user.
    pub hint: &'static str,
    /// Set when the neighbour does other work than this peer, rather than refusing it.
    pub is_about_the_task: bool,
    /// Set when the neighbour is connected to another process with this peer's key.
    is_about_identity: bool,
    patience: Duration,
}

/// The present objections.
#[derive(Debug, Default)]
pub struct Objections {
    standing: BTreeMap<NodeId, PresentObjection>,
}

/// A present objection.
#[derive(Debug)]
struct PresentObjection {
    since: Instant,
    objection: Objection,
    was_told: bool,
}

impl PresentObjection {
    fn has_lasted(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.objection.patience
    }
}

impl Objection {
    /// A neighbour refused this peer's stream.
    pub fn refusal(refusal: &StreamRefusal) -> Self {
        let is_about_identity = *refusal == StreamRefusal::IdentityInUse;
        let (patience, hint) = match refusal {
            StreamRefusal::IdentityInUse => (IDENTITY_PATIENCE, ONE_PROCESS_A_KEY),
            StreamRefusal::OtherPlan { .. } | StreamRefusal::NotANeighbour => {
                (Duration::ZERO, "give all peers the same plan file, or let them fetch it with --bootstrap")
            }
        };
        Self {
            what: format!("refuses this peer: {refusal:#}"),
            hint,
            is_about_the_task: false,
            is_about_identity,
            patience,
        }
    }

    /// A neighbour trains a model where this peer solves a problem.
    pub fn trains() -> Self {
        Self {
            what: "trains a model, and this peer solves a problem".to_owned(),
            hint: "start all peers of a swarm with the same --problem, or all without",
            is_about_the_task: true,
            is_about_identity: false,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour solves a problem where this peer trains a model.
    pub fn solves() -> Self {
        Self { what: "solves a problem, and this peer trains a model".to_owned(), ..Self::trains() }
    }

    /// A neighbour solves another problem.
    pub fn other_problem() -> Self {
        Self {
            what: "solves another problem".to_owned(),
            hint: "all peers need the same problem file, but for what each [[node]] wants, and --plain-sums at all of them or at none",
            is_about_the_task: true,
            is_about_identity: false,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour's greeting does not fit; the hint states what all peers need.
    pub fn mismatch(mismatch: &Mismatch, hint: &'static str) -> Self {
        Self {
            // The text contains the neighbour's description of its task.
            what: format!("does not fit: {}", one_line(&mismatch.to_string())),
            hint,
            is_about_the_task: false,
            is_about_identity: false,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour trains something else. `difference` is the first one, with the words "here" and "there"; the hint
    /// states what all peers need.
    pub fn other_task(difference: &str, hint: &'static str) -> Self {
        Self {
            what: format!("trains something else: {difference}"),
            hint,
            is_about_the_task: true,
            is_about_identity: false,
            patience: Duration::ZERO,
        }
    }
}

impl Objections {
    /// Records an objection of `node`, which is raised repeatedly for as long as it lasts. Returns `true` if a person
    /// should be notified now.
    pub fn raise(&mut self, node: NodeId, objection: Objection, now: Instant) -> bool {
        let standing = self.standing.entry(node).or_insert(PresentObjection { since: now, objection, was_told: false });
        let is_news = standing.has_lasted(now) && !standing.was_told;
        standing.was_told |= is_news;
        is_news
    }

    /// Removes the objection of a neighbour that accepts this peer after all.
    pub fn withdraw(&mut self, node: NodeId) {
        self.standing.remove(&node);
    }

    /// Returns `true` if all of `receivers`, the nodes this peer would send to, have objected for longer than their
    /// patience, or if several are connected to another process with this peer's key. One odd neighbour is its own
    /// problem; if all object, this peer is the odd one.
    pub fn are_final(&self, receivers: &[NodeId], now: Instant) -> bool {
        let lasting = |node: &NodeId| self.standing.get(node).filter(|standing| standing.has_lasted(now));
        let witnesses =
            self.standing.keys().filter_map(lasting).filter(|standing| standing.objection.is_about_identity);
        witnesses.count() >= IDENTITY_WITNESSES || receivers.iter().all(|node| lasting(node).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_neighbour_is_not_final_and_all_of_them_are() {
        let (mut objections, now) = (Objections::default(), Instant::now());
        let receivers = [NodeId(1), NodeId(2)];
        let objection = Objection::refusal(&StreamRefusal::NotANeighbour);
        assert!(objections.raise(NodeId(1), objection.clone(), now));
        assert!(!objections.raise(NodeId(1), objection.clone(), now), "told once");
        assert!(!objections.are_final(&receivers, now));
        objections.raise(NodeId(2), objection, now);
        assert!(objections.are_final(&receivers, now));
        objections.withdraw(NodeId(1));
        assert!(!objections.are_final(&receivers, now));
    }

    #[test]
    fn what_a_neighbour_says_of_its_task_cannot_steer_a_terminal() {
        let theirs = "x\u{1b}]52;c;Zm9v\u{7}\nwarning    all is lost\u{202e}".to_owned();
        let mismatch = Mismatch::Task { ours: "mlp".to_owned(), theirs };
        let what = Objection::mismatch(&mismatch, "").what;
        assert!(!what.chars().any(crate::printable::is_unseen), "{what:?}");
        assert!(what.contains(r"x\u001b]52;c;Zm9v\u0007 warning all is lost\u202e"), "{what}");
    }

    #[test]
    fn an_identity_in_use_may_be_a_ghost_and_is_given_time() {
        let (mut objections, now) = (Objections::default(), Instant::now());
        assert!(!objections.raise(NodeId(1), Objection::refusal(&StreamRefusal::IdentityInUse), now));
        assert!(!objections.are_final(&[NodeId(1)], now));
        assert!(objections.are_final(&[NodeId(1)], now + IDENTITY_PATIENCE));
    }

    #[test]
    fn of_many_neighbours_two_are_enough_that_speak_to_another_process_with_the_same_key() {
        let (mut objections, now) = (Objections::default(), Instant::now());
        let receivers = [1, 2, 3, 4].map(NodeId);
        let in_use = || Objection::refusal(&StreamRefusal::IdentityInUse);
        let later = now + IDENTITY_PATIENCE;
        objections.raise(NodeId(1), in_use(), now);
        assert!(objections.raise(NodeId(1), in_use(), later), "a person hears of it");
        assert!(!objections.raise(NodeId(1), in_use(), later), "once");
        assert!(!objections.are_final(&receivers, later), "one alone may lie");
        objections.raise(NodeId(4), in_use(), now);
        assert!(!objections.are_final(&receivers, now) && objections.are_final(&receivers, later));
    }
}
