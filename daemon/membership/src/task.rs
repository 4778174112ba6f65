//! The task of a swarm, in the form that peers exchange.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::problem_card::ProblemCard;

/// Largest encoded card.
pub const MAX_CARD_BYTES: usize = 1 << 20;

/// A task that all peers of a swarm must agree on before they mix their models, with details that they only need to
/// know.
pub trait TaskCard: Send + Sync {
    /// Hash by which peers and records compare tasks: peers whose cards have different hashes do not mix.
    fn hash(&self) -> [u8; 32];

    /// Hash of the same task with another number of rounds: a finished run continues where only they have changed. By
    /// default the hash of the task itself.
    fn hash_for(&self, rounds: u64) -> [u8; 32] {
        let _ = rounds;
        self.hash()
    }

    /// A description in one line, for people.
    fn describe(&self) -> String;

    /// The encoding that a member sends to newcomers, at most [`MAX_CARD_BYTES`].
    fn encode(&self) -> Vec<u8>;

    /// The first difference between two encoded cards, such as "the seed is 0 here and 9 there"; `None` if peers with
    /// these cards may mix their models. A card that cannot be decoded differs.
    fn difference(&self, here: &[u8], there: &[u8]) -> Option<String>;

    /// Advice to the user of a peer with this task.
    fn advice(&self) -> Advice {
        Advice::OF_PROGRAMS
    }
}

/// Advice in the terms of the user's side of the training: options of `mingle run`, or a program of the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// For peers with different trainings: what all of them need.
    pub same_task: &'static str,
    /// For training that diverges.
    pub diverged: &'static str,
}

impl Advice {
    /// Advice to a user whose own program trains.
    pub const OF_PROGRAMS: Self = Self {
        same_task: "all peers of a swarm need the same plan, the same rounds, and programs that train a model of the same name, whose \
                    tensors have the same names, order and shapes",
        diverged: "lower the learning rate of the program that trains, or clip its gradients; where only this peer diverges, look at \
                   its data",
    };
}

/// The beginning of the refusal of a newcomer with another task.
pub(crate) const UNFIT: &str = "it does not fit the task of the swarm";

/// The task of a swarm on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignment {
    /// Training a model: the encoded card.
    Train(Vec<u8>),
    /// Solving a problem, whose file every peer has: the encoded [`ProblemCard`].
    Solve(Vec<u8>),
}

/// The task of this peer, once it is known.
#[derive(Clone)]
pub enum Work {
    /// Training a model.
    Train(Arc<dyn TaskCard>),
    /// Solving a problem.
    Solve(ProblemCard),
}

impl Work {
    /// For a peer whose work is another than that of the swarm: what all peers need.
    pub(crate) fn same_work(&self) -> &'static str {
        match self {
            Self::Train(card) => card.advice().same_task,
            Self::Solve(_) => {
                "all peers of a swarm need the same problem file, but for `data`, `device` and where their card is"
            }
        }
    }

    /// The form on the wire.
    pub fn assignment(&self) -> Assignment {
        match self {
            Self::Train(card) => Assignment::Train(card.encode()),
            Self::Solve(card) => Assignment::Solve(card.encode()),
        }
    }

    /// The first difference between the work `here` and the work `there`, one of which is this; `None` if they agree.
    pub fn difference(&self, here: &Assignment, there: &Assignment) -> Option<String> {
        match (self, here, there) {
            (Self::Train(card), Assignment::Train(here), Assignment::Train(there)) => card.difference(here, there),
            (_, Assignment::Train(_), Assignment::Solve(_)) => {
                Some("a model is trained here and a problem solved there".to_owned())
            }
            (_, Assignment::Solve(_), Assignment::Train(_)) => {
                Some("a problem is solved here and a model trained there".to_owned())
            }
            (_, Assignment::Solve(here), Assignment::Solve(there)) => ProblemCard::difference(here, there),
            (Self::Solve(_), ..) => None,
        }
    }
}
