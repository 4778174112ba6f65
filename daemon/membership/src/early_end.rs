//! The end of a training before its last round, by agreement: once more than half of the members of a plan ask for it,
//! the automatic planner signs the plan once more, with as many rounds as leave the models in agreement.
//!
//! A member is asked with its progress, and answers for itself alone. The operator's own user decides for all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use libp2p::PeerId;
use serde::{Deserialize, Serialize};

/// A user's wish for the end of the swarm's training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Train to the last round.
    #[default]
    GoOn,
    /// End as soon as more than half of the members ask for it.
    End,
    /// End for all: this counts at the operator of the swarm, and as [`End`](Self::End) elsewhere.
    EndForAll,
}

/// The wish of a peer's user, shared by the interfaces that change it and the answers to other members.
#[derive(Clone, Debug, Default)]
pub struct EndWish(Arc<AtomicU8>);

impl EndWish {
    /// Sets the wish.
    pub fn set(&self, wish: Wish) {
        self.0.store(wish as u8, Ordering::Relaxed);
    }

    /// The present wish.
    pub fn get(&self) -> Wish {
        let set = self.0.load(Ordering::Relaxed);
        [Wish::End, Wish::EndForAll].into_iter().find(|wish| *wish as u8 == set).unwrap_or_default()
    }
}

/// The end of a training before its last round, as a signed plan states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EarlyEnd {
    /// Rounds of the task that ends early. A task with another number of rounds, such as one that was prolonged
    /// afterwards, is trained in full.
    pub(crate) of_task: u64,
    /// Rounds to run with the plan, from its first one on.
    pub(crate) rounds: u64,
}

impl EarlyEnd {
    /// The same end, stated by a plan that begins so many rounds later.
    pub(crate) fn after(self, rounds: u64) -> Self {
        Self { rounds: self.rounds.saturating_sub(rounds).max(1), ..self }
    }
}

/// The members that ask for the end, as they said last.
#[derive(Debug, Default)]
pub(crate) struct EndVotes {
    asking: BTreeSet<PeerId>,
    is_decided: bool,
}

impl EndVotes {
    /// Takes the answer of a member.
    pub(crate) fn hear(&mut self, member: PeerId, asks: bool) {
        if asks {
            self.asking.insert(member);
        } else {
            self.asking.remove(&member);
        }
    }

    /// Takes the wish of the operator's own peer, `local`.
    pub(crate) fn hear_own(&mut self, local: PeerId, wish: Wish) {
        self.hear(local, wish != Wish::GoOn);
        self.is_decided = wish == Wish::EndForAll;
    }

    /// Returns `true` if more than half of these members ask for the end, or the operator has decided it.
    pub(crate) fn agree(&self, members: &[PeerId]) -> bool {
        let asking = members.iter().filter(|member| self.asking.contains(member)).count();
        self.is_decided || 2 * asking > members.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_members_agree_and_nobody_else_counts() {
        let members: Vec<PeerId> = (0..4).map(|_| PeerId::random()).collect();
        let mut votes = EndVotes::default();
        votes.hear(PeerId::random(), true);
        votes.hear_own(members[0], Wish::End);
        votes.hear(members[1], true);
        assert!(!votes.agree(&members), "two of four");
        votes.hear(members[2], true);
        assert!(votes.agree(&members));
        votes.hear(members[1], false);
        assert!(!votes.agree(&members), "one has changed its mind");
        votes.hear_own(members[0], Wish::EndForAll);
        assert!(votes.agree(&members), "the operator decides");
    }

    #[test]
    fn a_later_plan_keeps_the_end() {
        let end = EarlyEnd { of_task: 1000, rounds: 21 };
        assert_eq!(end.after(5), EarlyEnd { of_task: 1000, rounds: 16 });
        assert_eq!(end.after(40).rounds, 1);
    }
}
