//! What can be asked of a running peer, and its answers.

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Requests that wait for the driver; more are turned away.
const REQUEST_QUEUE: usize = 8;

/// A request, with where the answer goes.
#[derive(Debug)]
pub enum Request {
    /// End in good order, with all files written.
    Stop(oneshot::Sender<Stopping>),
    /// Hand all weight over, and end for good; `None`: it is ending already.
    Leave(oneshot::Sender<Option<Stopping>>),
}

/// A peer that was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// Rounds done.
    pub round: u64,
    /// Rounds wanted.
    pub rounds: u64,
    /// Its push-sum weight now, in units of 2^-40; it may still take up parcels and return some.
    pub weight_units: u64,
    /// Whether its weight outlives its process.
    pub durable: bool,
}

/// Where requests are put, and where they come out.
pub fn requests() -> (mpsc::Sender<Request>, mpsc::Receiver<Request>) {
    mpsc::channel(REQUEST_QUEUE)
}
