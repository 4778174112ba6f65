//! Transmissions after their end, as pictures need them.

use std::time::Duration;

use crate::frame::Recipient;

/// A transmission that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTransmission {
    /// The node that sent it.
    pub sender: usize,
    /// The node, or the nodes, that it was for.
    pub recipient: Recipient,
    /// `true` for an acknowledgement of the link layer.
    pub is_acknowledgement: bool,
    /// Its begin.
    pub began: Duration,
    /// Its end.
    pub ended: Duration,
    /// The nodes at which it overlapped with another transmission, or that were sending, ascending.
    pub spoiled_at: Vec<usize>,
}
