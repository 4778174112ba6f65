//! Inputs: the events that a host hands to a node.

use std::sync::Arc;

use crate::message::{Generation, Message};
use crate::record::HostState;
use crate::schedule::{NodeId, Schedule};
use crate::statement::Keys;

/// One thing that happened, handed to [`Node::handle`](crate::Node::handle).
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "messages are most of all inputs, and none is kept")]
pub enum Input {
    /// The host is ready. Before this a node greets its neighbours but does not begin.
    Start,
    /// Messages to this neighbour can be sent from now on.
    LinkUp {
        /// The neighbour.
        peer: NodeId,
    },
    /// The process of this neighbour has ended before it came: the node does not wait for it to begin.
    Gone {
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
        /// The sender; the host vouches for it.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// The local training asked for by [`Effect::Train`](crate::Effect::Train) is done.
    Trained {
        /// The round it was asked for.
        round: u64,
        /// The change of z it found, `[dimension]`.
        delta: Vec<f32>,
        /// The number of local steps in its sum: those asked for, fewer if no more fitted into the time box, or 0 if
        /// none was taken and nothing is to be added.
        steps: u32,
        /// The state that a restarted host needs to go on from there: the position in its data, the state of its
        /// optimizer; at most [`most_host_bytes`](crate::record::most_host_bytes). Records keep it from the one on that
        /// has the change in its model.
        state: HostState,
    },
    /// No trainer was there for the local training asked for by [`Effect::Train`](crate::Effect::Train). It is asked
    /// for again, unless a neighbour is ahead: no neighbour waits for a round that cannot be trained.
    Untrained {
        /// The round it was asked for.
        round: u64,
    },
    /// The record asked for by [`Effect::Persist`](crate::Effect::Persist) is on disk, whatever happens next.
    Persisted {
        /// Its number.
        number: u64,
    },
    /// Record slots that [`Effect::Reserve`](crate::Effect::Reserve) asked for are there.
    Reserved {
        /// The number of slots.
        slots: usize,
    },
    /// The deadline last returned by [`Node::next_deadline`](crate::Node::next_deadline) has come. Ticking early or
    /// often is harmless.
    Tick,
    /// A plan for a new generation, which the host has verified: the ledger begins anew.
    Enter(Box<NewGeneration>),
    /// Finish the current step, hand over what was promised, and drain.
    Stop,
    /// Finish the current step, hand over what was promised, drain, and then hand over all mass: the node is not coming
    /// back.
    Leave,
}

/// A generation to enter.
#[derive(Clone, Debug)]
pub struct NewGeneration {
    /// The generation.
    pub generation: Generation,
    /// Its plan.
    pub schedule: Arc<Schedule>,
    /// This node's index in it. From here on every index is one in this plan, and links are up when the host says so.
    pub id: NodeId,
    /// The keys of its members.
    pub keys: Arc<dyn Keys>,
    /// Rounds to run in it.
    pub rounds: u64,
    /// The ratio to begin with, `[dimension]`, of a member that is up to date; the node's own unless given. A node that
    /// is not [fresh](crate::Node::is_fresh) needs one.
    pub ratio: Option<Vec<f32>>,
}
