//! An order to the trainer, and whether the peer still waits for the answer.

use std::sync::Arc;
use std::time::Instant;

/// What the trainer is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Ascends within a process of the peer.
    pub(crate) number: u64,
    pub(crate) work: Work,
    /// The round, from 0.
    pub(crate) round: u64,
    /// `[dimension]`.
    pub(crate) vector: Arc<[f32]>,
    pub(crate) opened: Instant,
    pub(crate) lateness: Lateness,
}

/// Whether the peer has gone on without an answer, which counts when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// It has not.
    InTime,
    /// It has, as it does in any round that takes longer than most.
    GoneOn,
    /// It has for so long that people were told.
    Told,
}

impl Order {
    /// Whether the peer has gone on without the answer.
    pub(crate) fn is_late(&self) -> bool {
        self.lateness != Lateness::InTime
    }
}

/// Kinds of orders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    Train { steps: u32, rounds_left: u64, seconds: Option<f64>, last_factor: f64 },
    Evaluate,
}
