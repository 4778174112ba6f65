//! Phases of a node's life and of its steps.

use crate::time::Time;

/// Stage of a node's life, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Waiting for every neighbour's Hello.
    Gathering,
    /// The host trains.
    Training,
    /// Waiting for room in neighbours' windows, or until a record is on disk.
    AwaitingRoom,
    /// Waiting for neighbours' parcels.
    AwaitingParcels,
    /// All steps are done; waiting until all sent parcels have been applied.
    Draining,
    /// Done.
    Drained,
}

/// The phase of a step, or of the node's life before and after its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Gathering { give_up_at: Option<Time> },
    BeforeStep,
    Training { give_up_at: Option<Time> },
    AwaitingRoom(Wait),
    AwaitingParcels(Wait),
    Draining { give_up_at: Time, end_at: Time },
    Drained,
}

/// The begin of a wait, and its end if nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since: Time,
    pub(super) deadline: Time,
}

impl Phase {
    /// The stage that people and metrics see.
    pub(super) fn state(self) -> NodeState {
        match self {
            Self::Gathering { .. } => NodeState::Gathering,
            Self::BeforeStep | Self::Training { .. } => NodeState::Training,
            Self::AwaitingRoom(_) => NodeState::AwaitingRoom,
            Self::AwaitingParcels(_) => NodeState::AwaitingParcels,
            Self::Draining { .. } => NodeState::Draining,
            Self::Drained => NodeState::Drained,
        }
    }
}
