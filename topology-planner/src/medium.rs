//! The medium of the links.

use serde::{Deserialize, Serialize};

/// The kind of medium: how links share the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// One channel for all: links are active in slots, and interfere.
    Broadcast,
    /// A connection for each link: no slots.
    PointToPoint,
}
