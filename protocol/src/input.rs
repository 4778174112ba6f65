//! What can happen to a node.

use crate::message::Message;
use crate::schedule::NodeId;

/// One thing that happened, handed to [`Node::handle`](crate::Node::handle).
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The host is ready. Before this a node greets its neighbours but does not begin.
    Start,
    /// Messages to this neighbour can be sent from now on.
    LinkUp {
        /// The neighbour.
        peer: NodeId,
    },
    /// Messages to this neighbour go nowhere; those sent last may be lost.
    LinkDown {
        /// The neighbour.
        peer: NodeId,
    },
    /// A message came.
    Received {
        /// From whom; the host vouches for it.
        from: NodeId,
        /// What it says.
        message: Message,
    },
    /// The local training asked for by [`Effect::Train`](crate::Effect::Train) is done.
    Trained {
        /// The round it was asked for.
        round: u64,
        /// The change of z it found, `[dimension]`.
        delta: Vec<f32>,
    },
    /// The record asked for by [`Effect::Persist`](crate::Effect::Persist) is on disk, whatever happens next.
    Persisted {
        /// Its number.
        number: u64,
    },
    /// The deadline last returned by [`Node::next_deadline`](crate::Node::next_deadline) has come. Ticking early or
    /// often is harmless.
    Tick,
    /// Finish the current step, hand over what was promised, and drain.
    Stop,
}
