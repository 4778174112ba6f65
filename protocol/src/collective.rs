//! Averages, sums and extrema over the planned links: building blocks of algorithms other than push-sum SGD.
//!
//! Six collectives, each a small state machine without clock, network or threads. None of them needs a server, or more
//! than the plan's own links.
//!
//! | Need | Collective | Result |
//! | --- | --- | --- |
//! | means of vectors, while these settle | [`TrackingAverage`] | exact in the limit, for any number of rounds |
//! | the largest or smallest number, and whose | [`Extremum`] | the same bits everywhere |
//! | the sum or largest of vectors, exactly | [`AllReduce`] | the same bits everywhere |
//! | the sum of integers, modulo 2^64 or 2^128 | [`ModularSum`] | the same bits everywhere |
//! | a vector from each neighbour | [`Exchange`] | as each sent it |
//! | vectors of chosen nodes, near or far | `Pull` | as each sent it |
//!
//! A [`CollectiveSequence`] runs one after the other over the same links, as a distributed algorithm needs them.
//!
//! **Driving one.** A [`Collective`] is fed with [`handle`](Collective::handle) and emptied with
//! [`poll`](Collective::poll) until it is [complete](Collective::is_complete). It asks of its links that every message
//! arrives once and in order, as on a stream. [`ReliableChannel`] makes that true of links that lose, repeat and
//! reorder.
//!
//! **Determinism.** A node's result depends on the plan and on all nodes' inputs, never on the order in which
//! messages arrive: contributions are put in the order of the nodes' ids before they are added.
//!
//! **Never decide by an average.** Two nodes' averages differ in their last bits. A decision or a seed that all must
//! share comes from an [`Extremum`] or an [`AllReduce`].
//!
//! ```
//! use std::sync::Arc;
//! use mingle_protocol::collective::{Collective, TrackingAverage};
//! use mingle_protocol::{NodeId, Schedule, Step};
//!
//! let (a, b) = (NodeId(0), NodeId(1));
//! let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
//! let plan = Arc::new(Schedule::new(2, &[step], 0)?);
//! let node = |id, value| TrackingAverage::new(Arc::clone(&plan), id, &[value], 1);
//! let mut nodes = [node(a, 0.0)?, node(b, 8.0)?];
//! while !nodes.iter().all(Collective::is_complete) {
//!     for from in [a, b] {
//!         while let Some((to, message)) = nodes[from.index()].poll() {
//!             nodes[to.index()].handle(from, message)?;
//!         }
//!     }
//! }
//! assert!(nodes.iter().all(|node| node.result() == Some(&[4.0][..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod all_reduce;
mod exchange;
mod extremum;
mod fault;
mod mixing;
mod modular_sum;
mod pull;
mod reliable_channel;
mod rounds;
mod sequence;
mod tracking_average;
mod trees;
mod wire;

pub use all_reduce::{AllReduce, Partial, Reduction};
pub use exchange::{Exchange, ExchangeMessage};
pub use extremum::{Extreme, Extremum, FloodValue};
pub use fault::{CollectiveError, CollectiveFault, LARGEST_INPUT};
pub use mixing::Share;
pub use modular_sum::{ModularPartial, ModularSum, Modulus};
pub use pull::{Pull, PullMessage, PullRoutes};
pub use reliable_channel::{Frame, ReliableChannel};
pub use rounds::{TRACKING_CONTRACTION, diameter, rounds_to_contract, tracking_rounds};
pub use sequence::{CollectiveSequence, OperationMessage, SequenceMessage};
pub use tracking_average::TrackingAverage;
pub use trees::Trees;
pub use wire::{MessageEncoding, MessageError, SizeLimits};

use crate::schedule::NodeId;

/// A state machine that exchanges messages along the links of a plan.
pub trait Collective {
    /// The messages that it sends.
    type Message: Clone;

    /// The next message to send, if any: call it until there is none, at the start and after every
    /// [`handle`](Self::handle).
    fn poll(&mut self) -> Option<(NodeId, Self::Message)>;

    /// Takes a message that arrived. A message that was here before changes nothing.
    ///
    /// # Errors
    /// [`CollectiveFault`] when no sound neighbour would send it; nothing has changed then.
    fn handle(&mut self, from: NodeId, message: Self::Message) -> Result<(), CollectiveFault>;

    /// Returns `true` if the result is there. Go on to [poll](Self::poll) for the messages that are left: other nodes
    /// need them.
    fn is_complete(&self) -> bool;
}

#[cfg(test)]
mod tests;
