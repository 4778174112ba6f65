//! The ways in which a simulation fails: broken invariants, and runs that do not end.

use std::any::Any;

use thiserror::Error;

use crate::config::NodeError;
use crate::injected_bug::InjectionError;
use crate::mass::Mass;
use crate::record::{RecordError, RecoveryError, SlotError};
use crate::schedule::NodeId;
use crate::time::Time;
use crate::wire::WireError;

/// The reason why a simulation ended early. All but `Node`, `Injection` and `NotDrained` mean a bug in the node.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SimError {
    /// A node could not be made.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A bug was wanted in a node, and this program cannot inject any.
    #[error(transparent)]
    Injection(#[from] InjectionError),
    /// A node's mass changed by something else than the parcels it sent and applied.
    #[error("at {now} node {id} holds {holds} units and should hold {should_hold}")]
    NodeMass { now: Time, id: NodeId, holds: u128, should_hold: i128 },
    /// A node refused the parcel of a member that is as sound as itself.
    #[error("at {now} node {id} refused a parcel of {mass} from node {from}, where nobody lies")]
    SoundParcelRefused { now: Time, id: NodeId, from: NodeId, mass: Mass },
    /// A node named a neighbour as one that keeps weight, where all are sound.
    #[error("at {now} node {id} named node {peer} as one that keeps weight, where nobody lies")]
    SoundNeighbourSuspected { now: Time, id: NodeId, peer: NodeId },
    /// The swarm's mass is not what the founders brought.
    #[error("at {now} the swarm has {total} units, and its founders brought {expected}")]
    TotalMass { now: Time, total: u128, expected: u128 },
    /// The mass on all disks together is not what the founders brought.
    #[error(
        "at {now}, with a record of node {id} written, the disks hold {total} units, and founders brought {expected}"
    )]
    DurableMass {
        /// The time.
        now: Time,
        /// The node whose record was written last.
        id: NodeId,
        /// The mass there is.
        total: u128,
        /// The mass there should be.
        expected: u128,
    },
    /// The sum of numerators drifted further than rounding can explain.
    #[error("at {now} the numerators add up to {total}, and what they began with and learnt to {expected}")]
    Numerators { now: Time, total: f64, expected: f64 },
    /// A node applied a parcel that was never sent, or applied it twice.
    #[error("at {now} node {to} applied parcel {seq} of node {from}, which is not under way")]
    UnknownParcel { now: Time, from: NodeId, to: NodeId, seq: u64 },
    /// A node sent a parcel that is in no record it has handed in, or another one under the same number.
    #[error("at {now} node {from} sends node {to} parcel {seq}, which is not the one it has recorded")]
    UnrecordedParcel { now: Time, from: NodeId, to: NodeId, seq: u64 },
    /// A node that starts again finds another record on its disk than was last written to it.
    #[error("at {now} node {id} finds {}, and what it wrote last is {}", found_on_disk(found), recorded(*written))]
    NotRecovered {
        /// The time.
        now: Time,
        /// The node.
        id: NodeId,
        /// The number of the record it finds, if any, or the error of the recovery.
        found: Result<Option<u64>, RecoveryError>,
        /// The number of the last record that is complete.
        written: Option<u64>,
    },
    /// A record breaks a rule of its format.
    #[error("at {now} node {id} wrote a record that nobody may read: {error}")]
    Record { now: Time, id: NodeId, error: RecordError },
    /// There is no slot for a record.
    #[error("at {now} a record of node {id} cannot be written: {error}")]
    Slots { now: Time, id: NodeId, error: SlotError },
    /// A node hands in records faster than any disk takes them.
    #[error("at {now} node {id} has handed in {records} records, and none of them is on disk yet")]
    RecordsPileUp { now: Time, id: NodeId, records: u32 },
    /// A node believed a neighbour that claims more progress than is possible.
    #[error("at {now} node {id} goes on at step {to}, to which nobody can have come")]
    Misled { now: Time, id: NodeId, to: u64 },
    /// A sound node lost more than half of its usual weight to members that attack.
    #[error("at {now} node {id} has {share:.3} of its weight in the plan, and had {usual:.3} before the attack")]
    Drained {
        /// The time.
        now: Time,
        /// The node.
        id: NodeId,
        /// Its mean share since it has had time to settle.
        share: f64,
        /// Its mean share before.
        usual: f64,
    },
    /// A sound node lost more than half of its usual pace to members that attack.
    #[error("at {now} node {id} finishes {rounds:.3} rounds a second, and finished {usual:.3} before the attack")]
    Slowed {
        /// The time.
        now: Time,
        /// The node.
        id: NodeId,
        /// Rounds a second since it has had time to settle, without those that it skipped.
        rounds: f64,
        /// Rounds a second before.
        usual: f64,
    },
    /// A sound node followed the claims of members that attack.
    #[error("at {now} node {id} skips {skipped:.3} rounds a second and finishes {rounds:.3}")]
    LedAstray { now: Time, id: NodeId, skipped: f64, rounds: f64 },
    /// A sound node ended its run because of members that attack.
    #[error("at {now} node {id} has ended, which members that attack cannot ask for")]
    EndedBySiege { now: Time, id: NodeId },
    /// A node left for good with mass that it should have handed over.
    #[error("at {now} node {id} left with weight {mass}")]
    LeftWithMass { now: Time, id: NodeId, mass: Mass },
    /// A message did not survive the wire format.
    #[error("at {now} a message from {from} to {to} cannot be decoded: {error}")]
    Wire { now: Time, from: NodeId, to: NodeId, error: WireError },
    /// Virtual time stands still.
    #[error("at {now} the swarm keeps itself busy without time passing, last at node {id}")]
    Livelock { now: Time, id: NodeId },
    /// Time ran out.
    #[error("at {now} {} of the nodes have not drained: {}", waiting.len(), listed(waiting))]
    NotDrained { now: Time, waiting: Vec<NodeId> },
    /// A node panicked.
    #[error("at {now} a node panicked: {message}")]
    Panicked { now: Time, message: String },
}

impl SimError {
    /// A panic as an error, with its message, which is nearly always a string.
    pub(super) fn panicked(now: Time, payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::Panicked { now, message: text.unwrap_or("it did not say why").to_owned() }
    }

    /// The time when it happened; `None` where no node ever ran.
    pub fn at(&self) -> Option<Time> {
        match self {
            Self::Node(_) | Self::Injection(_) => None,
            Self::NodeMass { now, .. }
            | Self::SoundParcelRefused { now, .. }
            | Self::SoundNeighbourSuspected { now, .. }
            | Self::TotalMass { now, .. }
            | Self::DurableMass { now, .. }
            | Self::Numerators { now, .. }
            | Self::UnknownParcel { now, .. }
            | Self::UnrecordedParcel { now, .. }
            | Self::NotRecovered { now, .. }
            | Self::Wire { now, .. }
            | Self::Record { now, .. }
            | Self::Slots { now, .. }
            | Self::Misled { now, .. }
            | Self::RecordsPileUp { now, .. }
            | Self::Drained { now, .. }
            | Self::Slowed { now, .. }
            | Self::LedAstray { now, .. }
            | Self::EndedBySiege { now, .. }
            | Self::LeftWithMass { now, .. }
            | Self::Livelock { now, .. }
            | Self::NotDrained { now, .. }
            | Self::Panicked { now, .. } => Some(*now),
        }
    }
}

fn listed(nodes: &[NodeId]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn found_on_disk(found: &Result<Option<u64>, RecoveryError>) -> String {
    match found {
        Ok(number) => recorded(*number),
        Err(error) => format!("records that cannot be relied on ({error})"),
    }
}

fn recorded(number: Option<u64>) -> String {
    number.map_or_else(|| "no record".to_owned(), |number| format!("record {number}"))
}
