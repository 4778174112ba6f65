//! A neighbour, and the links with it, in a snapshot.

use std::fmt;

use mingle_protocol::{AccountView, Clipped};
use serde::{Deserialize, Serialize};

use super::LinkMulticast;

/// A neighbour as this peer sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourStatus {
    /// Its node in the plan.
    pub node: usize,
    /// Its PeerId.
    pub peer: String,
    /// The state of the link with it.
    pub state: LinkState,
    /// The reason for which it is suspended.
    pub reason: Option<String>,
    /// The last round trip to it, while it is up; none before the first.
    #[serde(default)]
    pub round_trip_ms: Option<f64>,
    /// Its known incarnation; 0 before its first message.
    pub incarnation: u64,
    /// The link to it.
    pub outgoing: Option<OutgoingLink>,
    /// The link from it.
    pub incoming: Option<IncomingLink>,
    /// The weight that it took and gave of late; none where a problem is solved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<WeightAccount>,
    /// Steps of the plan that it is behind this peer, as far as is known.
    pub steps_behind: u64,
    /// Bytes written to its streams since this process follows the plan.
    pub sent_bytes: u64,
    /// Bytes read from its streams since this process follows the plan.
    pub received_bytes: u64,
    /// Payloads by multicast; none where all streams are those of peers that do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<LinkMulticast>,
}

/// The state of the link with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// It takes part.
    Up,
    /// It is not connected, or has not greeted yet.
    Down,
    /// It is neither waited for nor sent to until it sends again.
    Suspended,
    /// It has left for good.
    Left,
}

/// The link to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutgoingLink {
    /// Parcels written to its streams, in the time that its bytes are counted over.
    pub parcels: u64,
    /// Parcels on its streams that it has not acknowledged.
    pub unacknowledged_parcels: usize,
    /// The weight of unacknowledged parcels, in units of 2^-40.
    pub unacknowledged_units: u64,
    /// The weight that the neighbour was given by this plan and did not return.
    #[serde(default)]
    pub given_weight: f64,
}

/// The link from a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncomingLink {
    /// Parcels read from its streams, in the time that its bytes are counted over.
    pub parcels: u64,
    /// Parcels read from its streams that wait for their step.
    pub queued_parcels: usize,
    /// The weight that came from the neighbour by this plan.
    #[serde(default)]
    pub received_weight: f64,
    /// The clipping of its models since this process follows the plan; none where they are taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<Clipped>,
}

/// The weight that a neighbour took and gave in the last rounds, beside that of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightAccount {
    /// The weight that it took, as a part of that in the plan; none before any was due.
    pub taken: Option<f64>,
    /// The weight that it gave, as a part of that in the plan; none before any was due.
    pub given: Option<f64>,
    /// Periods of the plan by which it took more than it gave, less what this peer forgave.
    pub periods_ahead: f64,
    /// Periods by which it may be ahead now; none without limit.
    pub credit_periods: Option<f64>,
}

impl From<AccountView> for WeightAccount {
    fn from(AccountView { taken, given, ahead, credit }: AccountView) -> Self {
        Self { taken, given, periods_ahead: ahead, credit_periods: credit }
    }
}

impl LinkState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Suspended, Self::Left];

    /// The name in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Suspended => "suspended",
            Self::Left => "left",
        }
    }
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl NeighbourStatus {
    /// The directions of the links between the two in the plan, seen from this peer.
    pub fn directions(&self) -> &'static str {
        match (&self.outgoing, &self.incoming) {
            (Some(_), Some(_)) => "out,in",
            (Some(_), None) => "out",
            (None, Some(_)) => "in",
            (None, None) => "-",
        }
    }
}
