//! Orders to the trainer: to train or to evaluate, from a vector, and their lateness.

use std::sync::Arc;
use std::time::Instant;

use crate::run_end::RunEnd;

/// An order to the trainer.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Number of the order, from 1, ascending within a process of the peer.
    pub(crate) number: u64,
    pub(crate) work: OrderKind,
    /// The round, from 0.
    pub(crate) round: u64,
    /// The vector to train from or to evaluate, `[dimension]`.
    pub(crate) vector: Arc<[f32]>,
    pub(crate) opened: Instant,
    /// Set when the trainer has received it.
    pub(crate) is_fetched: bool,
    pub(crate) lateness: Lateness,
}

/// The answer to a trainer that asks for its next order.
#[derive(Debug)]
pub(crate) enum NextOrder {
    Order(Order),
    /// No order is open, or the open one is answered.
    Nothing,
    End(RunEnd),
}

/// Lateness of an answer. The peer goes on without a late one, which counts when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// The peer still waits.
    InTime,
    /// The peer has gone on, as in any round that takes much longer than usual.
    GoneOn,
    /// The peer has gone on for so long that the trainer was reported late.
    Told,
}

impl Order {
    /// Returns `true` if the peer has gone on without the answer.
    pub(crate) fn is_late(&self) -> bool {
        self.lateness != Lateness::InTime
    }

    /// Returns `true` if the order is to train.
    pub(crate) fn is_to_train(&self) -> bool {
        self.work != OrderKind::Evaluate
    }

    /// Returns `true` if the trainer has begun to evaluate its model.
    pub(crate) fn is_under_evaluation(&self) -> bool {
        self.is_fetched && self.work == OrderKind::Evaluate
    }
}

/// Kinds of orders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OrderKind {
    Train { steps: u32, rounds_left: u64, seconds: Option<f64>, last_factor: f64 },
    Evaluate,
}
