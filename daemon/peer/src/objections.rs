//! Neighbours that do not want this peer, or do not fit it: when that is their own problem, and when it is this peer's.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mingle_net::edge::Refusal;
use mingle_net::printable::one_line;
use mingle_protocol::{Mismatch, NodeId};

/// How long a neighbour may refuse this peer's identity before it counts: a crashed process of this peer is noticed
/// within this time, and its place is free again.
const IDENTITY_PATIENCE: Duration = Duration::from_secs(12);

/// What a neighbour has against this peer.
#[derive(Clone, Debug)]
pub(crate) struct Objection {
    /// What it says, as the end of a sentence that begins with its name.
    pub what: String,
    /// What to do about it.
    pub hint: &'static str,
    /// It does other work than this peer, rather than having something against it.
    pub is_about_the_task: bool,
    patience: Duration,
}

/// The objections that stand.
#[derive(Debug, Default)]
pub(crate) struct Objections {
    since: BTreeMap<NodeId, (Instant, Objection)>,
}

impl Objection {
    /// A neighbour turned this peer's stream away.
    pub(crate) fn refusal(refusal: &Refusal) -> Self {
        let (patience, hint) = match refusal {
            Refusal::IdentityInUse => (
                IDENTITY_PATIENCE,
                "stop the other process; a copied home is the usual cause: give this peer a home and a key of its own",
            ),
            Refusal::OtherPlan { .. } | Refusal::NotANeighbour => {
                (Duration::ZERO, "give all peers the same plan file, or let them fetch it with --bootstrap")
            }
        };
        Self { what: format!("refuses this peer: {refusal:#}"), hint, is_about_the_task: false, patience }
    }

    /// A neighbour trains a model where this peer solves a problem.
    pub(crate) fn trains() -> Self {
        Self {
            what: "trains a model, and this peer solves a problem".to_owned(),
            hint: "start all peers of a swarm with the same --problem, or all without",
            is_about_the_task: true,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour solves a problem where this peer trains a model.
    pub(crate) fn solves() -> Self {
        Self { what: "solves a problem, and this peer trains a model".to_owned(), ..Self::trains() }
    }

    /// A neighbour solves another problem.
    pub(crate) fn other_problem() -> Self {
        Self {
            what: "solves another problem".to_owned(),
            hint: "all peers need the same problem file, but for what each [[node]] wants",
            is_about_the_task: true,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour's introduction does not fit.
    pub(crate) fn mismatch(mismatch: &Mismatch) -> Self {
        Self {
            // It repeats how the other describes its task.
            what: format!("does not fit: {}", one_line(&mismatch.to_string())),
            hint: "all peers of a swarm need the same --model, --rounds, --seed, kind of data and plan",
            is_about_the_task: false,
            patience: Duration::ZERO,
        }
    }

    /// A neighbour trains something else; `difference` is the first, with the words "here" and "there".
    pub(crate) fn other_task(difference: &str) -> Self {
        Self {
            what: format!("trains something else: {difference}"),
            hint: "all peers of a swarm need the same --model, --rounds and --seed, and the columns, classes and scaling of one \
                   card: --bootstrap and tickets bring them, --card FILE names them",
            is_about_the_task: true,
            patience: Duration::ZERO,
        }
    }
}

impl Objections {
    /// Notes an objection of `node`. True when it is new and a person should hear of it now.
    pub(crate) fn raise(&mut self, node: NodeId, objection: Objection) -> bool {
        let worth_telling = objection.patience.is_zero() && !self.since.contains_key(&node);
        self.since.entry(node).or_insert_with(|| (Instant::now(), objection));
        worth_telling
    }

    /// A neighbour takes this peer after all.
    pub(crate) fn withdraw(&mut self, node: NodeId) {
        self.since.remove(&node);
    }

    /// Whether all of `receivers`, everyone this peer would send to, have objected for longer than their patience.
    /// One odd neighbour is its own problem; all of them mean that this peer is the odd one.
    pub(crate) fn are_final(&self, receivers: &[NodeId]) -> bool {
        let lasting = |node: &NodeId| {
            self.since.get(node).is_some_and(|(since, objection)| since.elapsed() >= objection.patience)
        };
        receivers.iter().all(lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_neighbour_is_not_final_and_all_of_them_are() {
        let mut objections = Objections::default();
        let receivers = [NodeId(1), NodeId(2)];
        let objection = Objection::refusal(&Refusal::NotANeighbour);
        assert!(objections.raise(NodeId(1), objection.clone()));
        assert!(!objections.raise(NodeId(1), objection.clone()), "told once");
        assert!(!objections.are_final(&receivers));
        objections.raise(NodeId(2), objection);
        assert!(objections.are_final(&receivers));
        objections.withdraw(NodeId(1));
        assert!(!objections.are_final(&receivers));
    }

    #[test]
    fn what_a_neighbour_says_of_its_task_cannot_steer_a_terminal() {
        let theirs = "x\u{1b}]52;c;Zm9v\u{7}\nwarning    all is lost\u{202e}".to_owned();
        let mismatch = Mismatch::Task { ours: "mlp".to_owned(), theirs };
        let what = Objection::mismatch(&mismatch).what;
        assert!(!what.chars().any(mingle_net::printable::is_unseen), "{what:?}");
        assert!(what.contains(r"x\u001b]52;c;Zm9v\u0007 warning all is lost\u202e"), "{what}");
    }

    #[test]
    fn an_identity_in_use_may_be_a_ghost_and_is_given_time() {
        let mut objections = Objections::default();
        assert!(!objections.raise(NodeId(1), Objection::refusal(&Refusal::IdentityInUse)));
        assert!(!objections.are_final(&[NodeId(1)]));
    }
}
