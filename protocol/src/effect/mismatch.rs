//! The ways in which the Hello of a neighbour does not fit: version, generation, task or identity.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::Generation;

/// A difference between the Hello of a neighbour and this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatch {
    /// Another protocol version.
    Version {
        /// Ours.
        ours: u16,
        /// Theirs.
        theirs: u16,
    },
    /// Another plan or generation.
    Generation {
        /// Ours.
        ours: Generation,
        /// Theirs.
        theirs: Generation,
    },
    /// Another task.
    Task {
        /// Ours, in words.
        ours: String,
        /// Theirs, in words.
        theirs: String,
    },
    /// Another process with the same incarnation already exchanged mass with us.
    IdentityInUse {
        /// The incarnation both claim.
        incarnation: u64,
    },
    /// It took part in this incarnation before, and has lost its records of that.
    Forgetful {
        /// The incarnation it claims to begin.
        incarnation: u64,
    },
    /// A life of the neighbour that a later one has replaced.
    Outdated {
        /// The incarnation it claims.
        incarnation: u64,
        /// The one known.
        known: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { ours, theirs } => {
                write!(f, "it speaks protocol version {theirs}, this node {ours}: run the same release on both")
            }
            Self::Generation { ours, theirs } if ours.plan_hash == theirs.plan_hash => {
                write!(f, "it is in generation {} of the plan, this node in {}", theirs.counter, ours.counter)
            }
            Self::Generation { .. } => {
                write!(f, "it follows another plan: give both the same plan file")
            }
            Self::Task { ours, theirs } => {
                write!(f, "it trains \"{theirs}\", this node \"{ours}\": start both on one task")
            }
            Self::IdentityInUse { incarnation } => {
                write!(
                    f,
                    "another process took part as its incarnation {incarnation}: stop one, or restart it as a later one"
                )
            }
            Self::Forgetful { incarnation } => {
                write!(
                    f,
                    "it begins incarnation {incarnation}, which has been here and is not over: it lost its records"
                )
            }
            Self::Outdated { incarnation, known } => {
                write!(
                    f,
                    "it claims incarnation {incarnation}, but incarnation {known} has been here: stop the old process"
                )
            }
        }
    }
}
