//! The life of a node, and the generation that it takes part in.

use serde::{Deserialize, Serialize};

/// The ledger that mass belongs to: a counter, and the plan it was started with.
///
/// Counter and hash together, so that a counter used twice after a rollback is not mistaken for the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts the generations of a swarm from 0.
    pub counter: u64,
    /// BLAKE3 of the plan.
    pub plan_hash: [u8; 32],
}

/// One life of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incarnation {
    /// 1 for a founder, larger after every restart that may have lost state.
    pub incarnation: u64,
    /// Differs between any two processes, so that two of them with the same incarnation can be distinguished.
    pub boot_nonce: u64,
}
