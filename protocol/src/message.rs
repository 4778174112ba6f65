//! The messages between two neighbours.
//!
//! Apart from parcels every message is a statement of the sender's present state, never an event: losing one, hearing
//! one twice or out of order does no harm, and the next heartbeat repeats it.

use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, Mac, Sent};
use crate::link::Rejections;
use crate::mass::Mass;
use crate::payload::Payload;
use crate::record::Chain;
use crate::schedule::NodeId;
use crate::statement::{ProcessStatement, Signature, SignedIdentity};

/// Version of the protocol; peers that differ refuse each other.
pub const PROTOCOL_VERSION: u16 = 8;
/// Longest task description in bytes.
pub const MAX_DESCRIPTION: usize = 256;

/// One message between two neighbours.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Who I am, what I train, and where our links stand. First on every new connection.
    Hello(Box<Hello>),
    /// Where our links stand; also the heartbeat.
    Ack(Ack),
    /// A share of mass.
    Parcel(Parcel),
    /// Somebody has left for good. Whoever hears of it passes it on.
    Left(LeaveCertificate),
    /// Which process a node runs in, in its own words. Whoever hears of a newer one passes it on.
    Process(ProcessStatement),
    /// A message of a collective. For hosts that solve a problem together: a node ignores it.
    Collective(Envelope),
}

impl Message {
    /// The generation it belongs to; none for a Hello of another version, of which nothing but the version is known.
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

/// What a message of a collective belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// BLAKE3 of what is computed, which all members must agree on.
    pub task: [u8; 32],
    /// Counts the attempts: a process that is started again makes all begin the next one.
    pub attempt: u64,
    /// A [frame](crate::collective::Frame), as bytes.
    pub frame: Vec<u8>,
}

/// Which ledger mass belongs to: a counter, and the plan it was started with.
///
/// Counter and hash together, so that a counter used twice after a rollback is not mistaken for the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts the generations of a swarm from 0.
    pub counter: u64,
    /// BLAKE3 of the plan.
    pub plan_hash: [u8; 32],
}

/// What a swarm trains, as a hash that must match and a line for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCard {
    /// Hash of everything the members must agree on. Opaque to the protocol.
    pub hash: [u8; 32],
    /// One line for error messages, at most [`MAX_DESCRIPTION`] bytes.
    pub description: String,
}

/// One life of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// 1 for a founder, larger after every restart that may have lost state.
    pub incarnation: u64,
    /// Differs between any two processes, so that two of them with the same incarnation are told apart.
    pub boot_nonce: u64,
}

/// The first message on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the sender. It stays in front in all versions, so that each can tell the others.
    pub version: u16,
    /// The sender's generation.
    pub generation: Generation,
    /// What the sender trains.
    pub task: TaskCard,
    /// Who the sender is, signed by it.
    pub identity: SignedIdentity,
    /// The receiver as the sender knows it, if it does, by the receiver's own signature.
    pub seen: Option<SignedIdentity>,
    /// The sender goes on from a record of this incarnation, which an earlier process wrote.
    pub resumed: bool,
    /// Where the links between the two stand.
    pub link: LinkState,
    /// What the receiver has said of its ends of these links: if it does not remember that, it was rolled back.
    pub evidence: Evidence,
}

impl Hello {
    /// What can be read of a Hello of another version: that number. All else is empty.
    pub(crate) fn of_version(version: u16) -> Self {
        Self {
            version,
            generation: Generation { counter: 0, plan_hash: [0; 32] },
            task: TaskCard::default(),
            identity: SignedIdentity::default(),
            seen: None,
            resumed: false,
            link: LinkState::default(),
            evidence: Evidence::default(),
        }
    }
}

/// A statement of where the links between two peers stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The sender's generation.
    pub generation: Generation,
    /// Who the sender is.
    pub identity: Identity,
    /// Whom it believes to be talking to.
    pub seen: Identity,
    /// Where the links between the two stand.
    pub link: LinkState,
}

/// Both directed links between two peers, as one of them sees them. Numbers of a link that the plan does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    /// Parcels up to this number have arrived here. Volatile.
    pub received: u64,
    /// Parcels up to this number are part of my (x, w), on disk where the swarm is durable: the peer may forget them.
    pub applied: u64,
    /// The chain of your parcels up to `applied`.
    pub applied_chain: Chain,
    /// Which of the last of these I refused: their mass is yours again.
    pub rejected: Rejections,
    /// My code under `applied`, where there are [records](crate::Durability::On): show it to me if I ever say less.
    pub applied_mac: Mac,
    /// My parcels to you start after this number.
    pub base: u64,
    /// My parcels up to this number are applied by your own word: the echo of your cumulative acknowledgement.
    pub acked: u64,
    /// The number my next parcel to you will have.
    pub next_seq: u64,
    /// I am through with the sends of this many steps, whether or not they held a parcel for you.
    pub passed: u64,
    /// I will never send you a parcel beyond this number.
    pub final_seq: Option<u64>,
    /// I have stopped taking part: send me nothing more.
    pub leaving: bool,
    /// A [digest](LeaveCertificate::digest) of all leave certificates that I have, on disk where the swarm is durable.
    pub left: u64,
    /// A digest of the newest [process statements](ProcessStatement) of all nodes that I have heard of.
    pub processes: u64,
}

/// A node's last word in a generation: where its links from others ended.
///
/// What it had not applied goes back to the senders, exactly and without it: they may hear of it from anyone, at any time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveCertificate {
    /// The ledger it left.
    pub generation: Generation,
    /// Who left.
    pub leaver: NodeId,
    /// Which life of it.
    pub incarnation: u64,
    /// Its links from others, ascending by sender; nothing was applied of those that are not here.
    pub ends: Vec<LinkEnd>,
    /// What the senders had said of their ends, ascending: a sender that was rolled back learns it from nobody else any more.
    pub evidence: Vec<(NodeId, Sent)>,
    /// The leaver's, under all of the above.
    pub signature: Signature,
}

/// Where a link to a node that left ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The sender.
    pub from: NodeId,
    /// The life of the sender that the number refers to.
    pub sender_incarnation: u64,
    /// Parcels up to this number were applied.
    pub applied: u64,
    /// Except for these of the last of them.
    pub rejected: Rejections,
}

impl LeaveCertificate {
    /// Eight bytes that stand for the certificate. Those of several are combined by exclusive or.
    pub fn digest(&self) -> u64 {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&bytes).as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// What a parcel says about itself.
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
    /// Parcels up to this number are applied by the receiver's own word: the echo of its cumulative acknowledgement.
    pub acked: u64,
    /// The parcel's number on its link.
    pub seq: u64,
    /// The chain of all parcels before it.
    pub previous: Chain,
    /// The chain with it.
    pub chain: Chain,
    /// The step it was split in.
    pub step: u64,
    /// Its weight w_m; its numerator is w_m times the payload.
    pub mass: Mass,
    /// The sender's code under having [sent](Sent) it, where there are records: for the receiver to keep, and show to it.
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
