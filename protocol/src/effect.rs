//! Effects: the actions that a node asks of its host, in order, and the events that it reports.

mod event;
mod fault;
mod mismatch;

use std::sync::Arc;
use std::time::Duration;

pub use event::{Clipped, NodeEvent, RoundReport, SkippedDelta, Suspension};
pub use fault::InputFault;
pub use mismatch::Mismatch;

use crate::message::Message;
use crate::record::{Record, SlotMap};
use crate::schedule::{NodeId, Schedule};

/// Something the host has to do, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message. It may be lost only together with the link ([`Input::LinkDown`](crate::Input::LinkDown)), unless
    /// the node is configured to retransmit.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Train locally from this point and answer with [`Input::Trained`](crate::Input::Trained).
    Train {
        /// The round, to be repeated in the answer.
        round: u64,
        /// The ratio z to start from, `[dimension]`.
        from: Arc<[f32]>,
        /// Local steps that the plan wants.
        local_steps: u32,
        /// Rounds that train from this one on, this one included.
        rounds_left: u64,
        /// Stop after as many of them as fit into this time, but not before the first.
        time_box: Option<Duration>,
        /// The factor by which the change before was multiplied when it was added to the model. A trainer that carries
        /// something over, such as momentum or the error of a compression, can account for it. It is less than 1 where
        /// the node held less weight than it does in a settled swarm or the change was clipped, more where a time box
        /// cut the steps short, 0 where the change was not used at all.
        last_factor: f64,
    },
    /// Write a record and answer with [`Input::Persisted`](crate::Input::Persisted) once it would survive a loss of
    /// power. A host that cannot find out whether it would must end: it can never know again. Of earlier records only
    /// the newest and those whose payloads it [owes](crate::Books::owed_records) need to be kept.
    Persist(Arc<Record>),
    /// From here on records need so many slots ([`SlotMap`](crate::record::SlotMap)): make those that are missing, and
    /// answer with [`Input::Reserved`](crate::Input::Reserved) once they are there, however long that takes. Until then
    /// the node keeps to the slots it knows of. Slots beyond those needed may be removed once nothing in them is owed.
    /// Asked for only where the host said how many slots there are
    /// ([`NodeConfig::record_slots`](crate::NodeConfig::record_slots)).
    Reserve(RecordRoom),
    /// Close the streams to a neighbour and open new ones: on these, greetings and parcels have been in vain.
    Renew {
        /// The neighbour.
        peer: NodeId,
    },
    /// Report an event, for people or metrics.
    Report(NodeEvent),
    /// All mass this node owed has arrived. The host may drop it now; until then it goes on answering others.
    Drained,
}

/// The size that the records of a node can grow to, by the links it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRoom {
    /// Slots that are enough whatever is owed: [`SlotMap::worst_case`](crate::record::SlotMap::worst_case).
    pub slots: usize,
    /// Links from others, for [`Record::largest_bytes`](crate::Record::largest_bytes).
    pub senders: usize,
    /// Links to others.
    pub receivers: usize,
}

impl RecordRoom {
    /// The room for a node that has no links but those of its plan.
    pub fn of(schedule: &Schedule, id: NodeId) -> Self {
        Self::for_links(schedule.all_in_neighbours(id).len(), schedule.all_out_neighbours(id).len())
    }

    /// The room for so many links from others and to others.
    pub fn for_links(senders: usize, receivers: usize) -> Self {
        Self { slots: SlotMap::worst_case(receivers), senders, receivers }
    }
}
