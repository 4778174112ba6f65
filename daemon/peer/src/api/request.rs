//! Requests to the driver of a running peer, and its answers.

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Largest number of requests that wait for the driver; further ones are refused.
const REQUEST_QUEUE: usize = 8;

/// A request, with the channel for its answer.
#[derive(Debug)]
pub enum Request {
    /// End in good order, with all files written.
    Stop(oneshot::Sender<Stopping>),
    /// Hand all weight over, and end for good. The answer is `None` if the peer is ending already.
    Leave(oneshot::Sender<Option<Stopping>>),
    /// Ask the other members to end the training before its last round, with this peer's; the answer says who decides.
    End(oneshot::Sender<EndAnswer>),
}

impl Request {
    /// Answers a request to hand over weight or to end for all at a peer that cannot.
    pub(crate) fn decline(self) {
        // The client may be gone.
        match self {
            Self::Stop(_) => {}
            Self::Leave(answer) => drop(answer.send(None)),
            Self::End(answer) => drop(answer.send(EndAnswer::Impossible)),
        }
    }
}

/// The answer to a peer's user who asks for the end of the swarm's training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndAnswer {
    /// This peer is the operator's: the training ends for all.
    ForAll,
    /// It ends once more than half of the members ask for it.
    Asked,
    /// This peer is the operator's, and does not plan its swarm: nobody counts who asks.
    Uncounted,
    /// There is nothing to end: this peer trains no model, or its swarm has no operator.
    Impossible,
}

/// State of a peer that was requested to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// Rounds done.
    pub round: u64,
    /// Rounds wanted.
    pub rounds: u64,
    /// The push-sum weight now, in units of 2^-40; the peer may still absorb parcels and take some back.
    pub weight_units: u64,
    /// `true` if the weight outlives the process.
    pub durable: bool,
}

/// A queue of requests: the end for clients, and the end for the driver.
pub fn requests() -> (mpsc::Sender<Request>, mpsc::Receiver<Request>) {
    mpsc::channel(REQUEST_QUEUE)
}
