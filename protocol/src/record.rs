//! The durable state of a node: the content of one atomic write to disk.
//!
//! A record is at once checkpoint, journal and outbox. It holds the node's pair (x, w), the state of every link, and
//! the payload that the node is about to send. Parcels of earlier steps that have not been acknowledged name the record
//! that holds their payload. Two rules make the sum of weights survive any crash:
//!
//! - a parcel leaves only when a record that holds it is on disk;
//! - a parcel is acknowledged only when a record that has applied it is on disk.

mod chains;
mod error;
mod format;
mod host_state;
mod limits;
mod postscript;
mod recovery;
mod rules;
mod slots;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::ledger::{InLinkLedger, LedgerSummary, OutLinkLedger};
use crate::mass::Mass;
use crate::message::{Generation, LeaveCertificate};
use crate::payload::Payload;
use crate::push_sum::PushSum;
use crate::schedule::NodeId;
use crate::statement::SignedIdentity;
use crate::window::Rejections;

pub use crate::chain::Chain;
pub use chains::{LinkBreak, compare_links};
pub use error::RecordError;
#[cfg(feature = "sim")]
pub(crate) use format::forge_checksum;
pub use format::{EncodedRecord, Outline, record_length};
pub use host_state::HostState;
pub use limits::{FORMAT_VERSION, MAX_BOOKS_BYTES, MAX_HOST_BYTES, most_host_bytes, most_training_bytes};
pub use postscript::Postscript;
pub use recovery::{LostParcel, Recovered, RecoveryError, SlotContent, Survey, recover, survey};
pub use slots::{SlotError, SlotMap};

/// One durable state of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Everything but the vectors.
    pub books: Books,
    /// The numerator x, `[dimension]`.
    pub numerator: Arc<[f32]>,
    /// The ratio, `[dimension]`, where it does not follow from numerator and mass: the last one formed, by a node that
    /// holds too little mass, or one that was taken over from a parcel.
    pub ratio: Option<Arc<[f32]>>,
    /// The sum of the node's own changes that wait until it holds enough weight to carry them, `[dimension]`; usually
    /// `None`.
    pub held_back: Option<Arc<[f32]>>,
    /// The payload of the parcels that were split off in this record.
    pub payload: Option<Payload>,
}

/// The part of a [`Record`] that is numbers and links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Ascends from record to record, over all lives of the node.
    pub number: u64,
    /// The ledger the mass belongs to.
    pub generation: Generation,
    /// The hash of the task that the swarm trains.
    pub task: [u8; 32],
    /// The node's index in the plan.
    pub id: NodeId,
    /// The life that wrote the record.
    pub incarnation: u64,
    /// Mass this life brought into the generation.
    pub brought: Mass,
    /// The weight w.
    pub mass: Mass,
    /// The global step the node was in.
    pub step: u64,
    /// Set when the sends of that step were done: their parcels are in the outboxes.
    pub split_done: bool,
    /// The processes that the node last dealt with, by neighbour.
    pub neighbours: BTreeMap<NodeId, SignedIdentity>,
    /// Links from others, by sender.
    pub incoming: BTreeMap<NodeId, InBooks>,
    /// Links to others, by receiver.
    pub outgoing: BTreeMap<NodeId, OutBooks>,
    /// The certificates of nodes that have left the generation, ascending by leaver; the node's own among them if it
    /// has.
    pub left: Vec<LeaveCertificate>,
    /// The neighbours' statements about their ends of the links with the node, kept for them in case they lose them.
    pub evidence: BTreeMap<NodeId, Evidence>,
    /// The state that the host wants to find again; the protocol does not look inside.
    pub host: HostState,
}

/// The receiver's durable side of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InBooks {
    /// The life of the sender that the numbers refer to.
    pub sender_incarnation: u64,
    /// Its parcels to this life start after this number.
    pub base: u64,
    /// Parcels up to this number are part of (x, w).
    pub applied: u64,
    /// The refused ones among the last of them.
    pub rejected: Rejections,
    /// The chain at `applied`.
    pub chain: Chain,
    /// The step of the last of them.
    pub last_step: Option<u64>,
    /// Mass applied from this life of the sender, in units.
    pub applied_total: u128,
    /// Mass applied from its earlier lives, in units.
    pub applied_from_earlier_lives: u128,
}

/// The sender's durable side of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutBooks {
    /// The life of the receiver that the numbers refer to.
    pub receiver_incarnation: u64,
    /// Parcels to it start after this number.
    pub base: u64,
    /// The number of the next parcel.
    pub next_seq: u64,
    /// Parcels up to this number are known to be durably applied.
    pub acked: u64,
    /// The chain at `acked`.
    pub acked_chain: Chain,
    /// Parcels beyond `acked`, ascending.
    pub outbox: Vec<Owed>,
    /// Mass ever sent, in units.
    pub sent_total: u128,
    /// Mass that this life of the receiver has confirmed, in units.
    pub acked_total: u128,
    /// Mass that its earlier lives had confirmed, in units.
    pub acked_by_earlier_lives: u128,
    /// Mass given up when a life of the receiver ended, in units.
    pub written_off: u128,
    /// Mass that came back, in units.
    pub returned: u128,
}

/// A parcel that the receiver has not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// Its number on the link.
    pub seq: u64,
    /// The step it was split in.
    pub step: u64,
    /// Its weight.
    pub mass: Mass,
    /// The chain up to and with it.
    pub chain: Chain,
    /// The number of the record that holds its payload.
    pub record: u64,
}

impl Record {
    /// The node's ratio z = x / w, `[dimension]`, or the one it last formed or took over where it held too little mass to form
    /// another. A node that goes on from this record begins with it.
    ///
    /// ```
    /// # use mingle_protocol::{Books, Generation, Mass, NodeId, Record};
    /// # let books = Books {
    /// #     number: 1, generation: Generation { counter: 0, plan_hash: [0; 32] }, task: [0; 32], id: NodeId(0),
    /// #     incarnation: 1, brought: Mass::ONE, mass: Mass::from_units(1 << 39), step: 0,
    /// #     split_done: false, neighbours: Default::default(), incoming: Default::default(),
    /// #     outgoing: Default::default(), left: Vec::new(), evidence: Default::default(), host: Default::default(),
    /// # };
    /// let record = Record { books, numerator: [1.0, 2.0].into(), ratio: None, held_back: None, payload: None };
    /// assert_eq!(*record.believed_ratio(), [2.0, 4.0]);
    /// ```
    pub fn believed_ratio(&self) -> Arc<[f32]> {
        PushSum::restored(&self.numerator, self.books.mass, self.ratio.clone()).ratio()
    }
}

impl Books {
    /// The books in the form that an audit takes.
    pub fn ledger(&self) -> LedgerSummary {
        LedgerSummary {
            incarnation: self.incarnation,
            initial: self.brought,
            mass: self.mass,
            incoming: self.incoming.iter().map(|(from, link)| (*from, link.ledger())).collect(),
            outgoing: self.outgoing.iter().map(|(to, link)| (*to, link.ledger())).collect(),
        }
    }

    /// The numbers of the records whose payloads are still owed to a receiver, ascending.
    pub fn owed_records(&self) -> std::collections::BTreeSet<u64> {
        self.outgoing.values().flat_map(|link| &link.outbox).map(|parcel| parcel.record).collect()
    }
}

impl InBooks {
    fn ledger(&self) -> InLinkLedger {
        InLinkLedger {
            sender_incarnation: self.sender_incarnation,
            received_seq: self.applied,
            applied_seq: self.applied,
            rejected: self.rejected,
            queued: Vec::new(),
            applied_total: self.applied_total,
            applied_from_earlier_lives: self.applied_from_earlier_lives,
        }
    }
}

impl OutBooks {
    fn ledger(&self) -> OutLinkLedger {
        OutLinkLedger {
            receiver_incarnation: self.receiver_incarnation,
            base: self.base,
            next_seq: self.next_seq,
            acked_seq: self.acked,
            outbox: self.outbox.iter().map(|parcel| (parcel.seq, parcel.mass)).collect(),
            sent_total: self.sent_total,
            acked_total: self.acked_total,
            acked_by_earlier_lives: self.acked_by_earlier_lives,
            written_off: self.written_off,
            returned: self.returned,
        }
    }
}
