//! Choices of a peer, and the reasons for them.

use serde::{Deserialize, Serialize};

/// The codec of a peer's parcels under its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecInUse {
    /// Its name.
    pub codec: String,
    /// The reason, where `auto` took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The wish of a peer's user for the end of the training before its last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedToEnd {
    /// `true` to ask, `false` to ask no longer.
    pub asks: bool,
}

/// The end of a training before its last round, on which the members have agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyEnd {
    /// Rounds in all after which it is over.
    pub last_round: u64,
}

/// The local steps in a round of the plans that a peer makes, and the times that they follow from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalStepsInUse {
    /// The number of local steps.
    pub steps: u32,
    /// Seconds that a local step takes, in the median of the members.
    pub local_step_s: f64,
    /// Seconds that an exchange takes, on the slowest of their links.
    pub exchange_s: f64,
}

/// The columns and classes of a peer's own data, which the other peers adopt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCard {
    /// Columns of a table; 0 for images.
    pub columns: usize,
    /// Classes.
    pub classes: usize,
}
