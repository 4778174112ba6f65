//! One node of a push-sum swarm as a sans-IO state machine.
//!
//! A swarm trains or averages without a server: every node holds a numerator x and a weight w, whose ratio z = x / w is
//! its model or estimate, and in every step of a periodic plan sends shares of both along directed links. This crate is
//! one such node, the messages it exchanges, and their wire format. It has no clock, no sockets, no threads, no files
//! and no randomness: a host calls [`Node::handle`] with the time and what happened, and carries out the [`Effect`]s it
//! gets back.
//!
//! What it promises: the weights of all nodes and of all parcels under way add up to the number of founders, as an
//! identity of integers ([`Mass`]), through loss, duplication, delay, reordering and disconnection. A node that dies
//! takes what it held with it; the survivors' books ([`Node::ledger`], [`audit`]) show exactly how much that was.
//!
//! | Start with | for |
//! | --- | --- |
//! | [`Schedule`] | a plan, checked |
//! | [`NodeConfig`], [`Node`] | the state machine |
//! | [`Input`], [`Effect`], [`NodeEvent`] | its interface |
//! | [`wire`] | messages as bytes |
//! | [`collective`] | averages, sums and extrema for other algorithms |
//! | [`LedgerSummary`], [`audit`] | the books |
//! | `sim` (feature `sim`) | many nodes in one thread, on virtual time, with faults |

mod arrivals;
mod audit;
mod chain;
mod codec;
mod codec_choice;
pub mod collective;
mod config;
mod effect;
mod evidence;
mod identity;
mod injected_bug;
mod input;
mod latest;
mod ledger;
mod link;
mod mass;
mod message;
mod momentum;
mod node;
mod node_id;
mod offences;
mod overlap;
mod payload;
mod push_sum;
pub mod record;
mod reference;
mod round_clock;
mod schedule;
#[cfg(feature = "sim")]
pub mod sim;
mod statement;
mod time;
mod window;
pub mod wire;

pub use audit::{AbsentPeer, AuditReport, EdgeDispute, audit};
pub use codec::{Codec, UnknownCodec};
pub use codec_choice::{ChosenCodec, CodecChoice, CodecReason, LONGEST_CODED_PERIOD, UnknownCodecChoice};
pub use config::{Durability, NodeConfig, NodeError, Robust, UnknownRobust, WaitPolicy};
pub use effect::{Clipped, Effect, InputFault, Mismatch, NodeEvent, RecordRoom, RoundReport, SkippedDelta, Suspension};
pub use evidence::{Applied, Evidence, Sent};
#[cfg(feature = "sim")]
pub use injected_bug::{InjectedBug, InjectionError};
pub use input::{Input, NewGeneration};
pub use ledger::{InLinkLedger, LedgerSummary, OutLinkLedger};
pub use link::{Rejections, WINDOW};
pub use mass::{Mass, Share, UNITS_PER_ONE};
pub use message::{
    Ack, Envelope, Generation, Hello, Incarnation, LeaveCertificate, LinkEnd, LinkPositions, MAX_DESCRIPTION, Message,
    PROTOCOL_VERSION, Parcel, ParcelHeader, TaskDigest,
};
pub use momentum::{
    MomentumAcrossRounds, MomentumError, MomentumState, MomentumStep, TrainedRound, USUAL_MOMENTUM, UnknownMomentum,
};
pub use node::{AccountView, IncomingView, NeighbourView, Node, NodeState, OutgoingView, STALEST_ROUNDS, pace_factor};
pub use overlap::{TrainingOverlap, UnknownOverlap};
pub use payload::{MAX_DIMENSION, MAX_MAGNITUDE, NORM_TOLERANCE, Payload, PayloadError};
pub use push_sum::SMALLEST_WORKING_MASS;
#[doc(hidden)]
#[cfg(feature = "kernels")]
pub use push_sum::bench;
pub use record::{Books, Chain, InBooks, OutBooks, Owed, Record};
pub use reference::ReferenceId;
pub use schedule::{
    COLUMN_TOLERANCE, Encodings, MAX_NODES, MAX_PERIOD, NodeId, OutShare, Schedule, ScheduleError, Step,
};
pub use statement::{Fate, Keys, Mac, NoKeys, OtherProcess, ProcessStatement, Signature, SignedIdentity};
pub use time::Time;
