//! What the peers of a swarm work on together, as they tell it to each other.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest card that peers send each other.
pub const MAX_CARD_BYTES: usize = 1 << 20;

/// What all peers of a swarm must agree on before they mix their models, and what they only need to be told.
pub trait TaskCard: Send + Sync {
    /// By which peers and records compare tasks: peers whose cards have different hashes mix nothing.
    fn hash(&self) -> [u8; 32];

    /// The hash of the same task with so many rounds: a run that is over goes on where only they have changed. The hash of the task
    /// itself where that is not known.
    fn hash_for(&self, rounds: u64) -> [u8; 32] {
        let _ = rounds;
        self.hash()
    }

    /// One line for people.
    fn describe(&self) -> String;

    /// The card as a member sends it to who joins, at most [`MAX_CARD_BYTES`].
    fn encode(&self) -> Vec<u8>;

    /// The first thing in which two encoded cards differ, in words such as "the seed is 0 here and 9 there"; none if
    /// peers with these cards may mix their models. A card that cannot be decoded differs.
    fn difference(&self, here: &[u8], there: &[u8]) -> Option<String>;

    /// Advice to the user of a peer with this task.
    fn advice(&self) -> Advice {
        Advice::OF_PROGRAMS
    }
}

/// Advice in the words of the user's side of the training: options of `mingle run`, or a program of the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// For peers that do not train the same: what all of them need.
    pub same_task: &'static str,
    /// For training that diverges.
    pub diverged: &'static str,
}

impl Advice {
    /// To somebody whose own program trains.
    pub const OF_PROGRAMS: Self = Self {
        same_task: "all peers of a swarm need the same plan, the same rounds, and programs that train a model of the same name, whose \
                    tensors have the same names, order and shapes",
        diverged: "lower the learning rate of the program that trains, or clip its gradients; where only this peer diverges, look at \
                   its data",
    };
}

/// What a swarm is for, on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignment {
    /// Training a model: the encoded card.
    Train(Vec<u8>),
    /// Solving a problem, whose file every peer has.
    Solve,
}

/// What this peer does, once that is settled.
#[derive(Clone)]
pub enum Work {
    /// It trains a model.
    Train(Arc<dyn TaskCard>),
    /// It solves a problem.
    Solve,
}

impl Work {
    /// As others are told.
    pub fn assignment(&self) -> Assignment {
        match self {
            Self::Train(card) => Assignment::Train(card.encode()),
            Self::Solve => Assignment::Solve,
        }
    }

    /// The first thing in which the work `there` is another one than the work `here`, one of which is this.
    pub fn difference(&self, here: &Assignment, there: &Assignment) -> Option<String> {
        match (self, here, there) {
            (Self::Train(card), Assignment::Train(here), Assignment::Train(there)) => card.difference(here, there),
            (_, Assignment::Train(_), Assignment::Solve) => {
                Some("a model is trained here and a problem solved there".to_owned())
            }
            (_, Assignment::Solve, Assignment::Train(_)) => {
                Some("a problem is solved here and a model trained there".to_owned())
            }
            (_, Assignment::Solve, Assignment::Solve) | (Self::Solve, ..) => None,
        }
    }
}
