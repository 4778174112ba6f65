//! The messages between two neighbours.
//!
//! Apart from parcels every message is a statement of the sender's present state, never an event. A message that is
//! lost, repeated or out of order does no harm, and the next heartbeat repeats it.

use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::evidence::{Evidence, Sent};
use crate::mass::Mass;
use crate::payload::Payload;
use crate::reference::ReferenceId;
use crate::schedule::NodeId;
use crate::statement::{Keys, Mac, ProcessStatement, Signature, SignedIdentity, encode};
use crate::window::Rejections;

pub use crate::identity::{Generation, Incarnation};

/// Version of the protocol; peers that differ refuse each other.
pub const PROTOCOL_VERSION: u16 = 9;
/// Longest task description in bytes.
pub const MAX_DESCRIPTION: usize = 256;

/// One message between two neighbours.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The sender's identity, its task, and the state of the links between the two. First on every new connection.
    Hello(Box<Hello>),
    /// The state of the links between the two; also the heartbeat.
    Ack(Ack),
    /// A share of mass.
    Parcel(Parcel),
    /// The certificate of a member that has left for good. Its receivers pass it on.
    Left(LeaveCertificate),
    /// A node's own statement of the process it runs in. Receivers pass a newer one on.
    Process(ProcessStatement),
    /// A message of a collective. For hosts that solve a problem together: a node ignores it.
    Collective(Envelope),
}

impl Message {
    /// The generation it belongs to. `None` for a message of a collective, and for a Hello of another version, of which
    /// nothing but the version is known.
    pub fn generation(&self) -> Option<Generation> {
        match self {
            Self::Hello(hello) if hello.version != PROTOCOL_VERSION => None,
            Self::Hello(hello) => Some(hello.generation),
            Self::Ack(ack) => Some(ack.generation),
            Self::Parcel(parcel) => Some(parcel.header.generation),
            Self::Left(certificate) => Some(certificate.generation),
            Self::Process(statement) => Some(statement.generation),
            Self::Collective(_) => None,
        }
    }
}

/// A message of a collective, and the computation it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// BLAKE3 of the computation, which all members must agree on.
    pub task: [u8; 32],
    /// Counts the attempts: a process that is started again makes all begin the next one.
    pub attempt: u64,
    /// A [frame](crate::collective::Frame), as bytes.
    pub frame: Vec<u8>,
}

/// The task of a swarm: a hash that must match, and a line for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDigest {
    /// Hash of everything the members must agree on. Opaque to the protocol.
    pub hash: [u8; 32],
    /// One line for error messages, at most [`MAX_DESCRIPTION`] bytes.
    pub description: String,
}

/// The first message on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the sender. It comes first in all versions, so that each can read that of the others.
    pub version: u16,
    /// The sender's generation.
    pub generation: Generation,
    /// The task of the sender.
    pub task: TaskDigest,
    /// The sender's identity, signed by it.
    pub identity: SignedIdentity,
    /// The receiver as the sender knows it, if it does, by the receiver's own signature.
    pub seen: Option<SignedIdentity>,
    /// Set when the sender goes on from a record of this incarnation, which an earlier process wrote.
    pub resumed: bool,
    /// The state of the links between the two.
    pub link: LinkPositions,
    /// The receiver's statements about its ends of these links: if it does not remember them, it was rolled back.
    pub evidence: Evidence,
}

impl Hello {
    /// A Hello of another version, of which only that number can be read. All else is empty.
    pub(crate) fn of_version(version: u16) -> Self {
        Self {
            version,
            generation: Generation { counter: 0, plan_hash: [0; 32] },
            task: TaskDigest::default(),
            identity: SignedIdentity::default(),
            seen: None,
            resumed: false,
            link: LinkPositions::default(),
            evidence: Evidence::default(),
        }
    }
}

/// A statement of the state of the links between two peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The sender's generation.
    pub generation: Generation,
    /// The sender's identity.
    pub identity: Incarnation,
    /// The identity of the peer that it believes to be sending to.
    pub seen: Incarnation,
    /// The state of the links between the two.
    pub link: LinkPositions,
}

/// Both directed links between two peers, as the one that sends this sees them. Numbers of a link that the plan does
/// not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPositions {
    /// The receiver's parcels up to this number have arrived. Volatile.
    pub received: u64,
    /// The receiver's parcels up to this number are part of the sender's (x, w), on disk where the swarm is durable:
    /// the receiver may drop them.
    pub applied: u64,
    /// The chain of the receiver's parcels up to `applied`.
    pub applied_chain: Chain,
    /// The refused ones among the last of these: their mass is the receiver's again.
    pub rejected: Rejections,
    /// The sender's code under `applied`, where there are [records](crate::Durability::On): to be shown to it if it
    /// ever claims less.
    pub applied_mac: Mac,
    /// The sender's parcels to the receiver start after this number.
    pub base: u64,
    /// The sender's parcels up to this number are applied: the echo of the receiver's own cumulative acknowledgement.
    pub acked: u64,
    /// The number of the sender's next parcel to the receiver.
    pub next_seq: u64,
    /// The sender is through with the sends of this many steps, whether or not they held a parcel for the receiver.
    pub passed: u64,
    /// The sender will never send a parcel beyond this number.
    pub final_seq: Option<u64>,
    /// Set when the sender has stopped taking part: nothing more is to be sent to it.
    pub leaving: bool,
    /// A [digest](LeaveCertificate::digest) of all leave certificates that the sender has, on disk where the swarm is
    /// durable.
    pub left: u64,
    /// A digest of the newest [process statements](ProcessStatement) of all nodes that the sender has.
    pub processes: u64,
    /// The newest references of the sender, newest first, all zeros for one that is absent. `None` if it keeps none:
    /// then it can decode no differences.
    pub references: Option<[ReferenceId; 2]>,
}

/// A node's last statement in a generation: the ends of its links from others.
///
/// Parcels that it had not applied go back to the senders, exactly and without its help: they may receive the
/// certificate from any node, at any time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveCertificate {
    /// The ledger it left.
    pub generation: Generation,
    /// The node that left.
    pub leaver: NodeId,
    /// The life of that node.
    pub incarnation: u64,
    /// Its links from others, ascending by sender; nothing was applied of those that are not here.
    pub ends: Vec<LinkEnd>,
    /// The senders' statements about their ends, ascending: a sender that was rolled back can learn it from no other
    /// node.
    pub evidence: Vec<(NodeId, Sent)>,
    /// The leaver's signature under all of the above.
    pub signature: Signature,
}

/// The end of a link to a node that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The sender.
    pub from: NodeId,
    /// The life of the sender that the number refers to.
    pub sender_incarnation: u64,
    /// Parcels up to this number were applied.
    pub applied: u64,
    /// The refused ones among the last of them.
    pub rejected: Rejections,
}

impl LeaveCertificate {
    /// Adds the leaver's signature; the keys are those of the leaver.
    #[must_use]
    pub fn signed(mut self, keys: &dyn Keys) -> Self {
        self.signature = keys.sign(&self.statement());
        self
    }

    /// Returns `true` if the leaver signed it.
    pub fn is_signed(&self, keys: &dyn Keys) -> bool {
        keys.is_signed(self.leaver, &self.statement(), &self.signature)
    }

    /// The bytes that are signed.
    pub(crate) fn statement(&self) -> Vec<u8> {
        let Self { generation, leaver, incarnation, ends, evidence, signature: _ } = self;
        let mut statement = encode(b"mingle 2026 leave certificate\0", &(generation, leaver, incarnation, ends));
        // Certificates in records of earlier releases had none.
        if !evidence.is_empty() {
            statement.extend(encode(b"evidence\0", evidence));
        }
        statement
    }

    /// Eight bytes that stand for the certificate. Those of several are combined by exclusive or.
    pub fn digest(&self) -> u64 {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&bytes).as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The description of a parcel: its generation, lives, numbers, step and mass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParcelHeader {
    /// The ledger the mass belongs to.
    pub generation: Generation,
    /// The life of the sender that split the mass off.
    pub sender_incarnation: u64,
    /// The life of the receiver it is meant for; any other must not take it.
    pub receiver_incarnation: u64,
    /// Parcels between these two lives start after this number.
    pub base: u64,
    /// Parcels up to this number are applied: the echo of the receiver's own cumulative acknowledgement.
    pub acked: u64,
    /// The parcel's number on its link.
    pub seq: u64,
    /// The chain of all parcels before it.
    pub previous: Chain,
    /// The chain with this parcel.
    pub chain: Chain,
    /// The step it was split in.
    pub step: u64,
    /// Its weight w_m; its numerator is w_m times the payload.
    pub mass: Mass,
    /// The sender's code under having [sent](Sent) it, where there are records: for the receiver to keep, and show to
    /// it.
    pub mac: Mac,
}

/// A share of mass under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    /// Everything but the coordinates.
    pub header: ParcelHeader,
    /// The sender's ratio.
    pub payload: Payload,
}
