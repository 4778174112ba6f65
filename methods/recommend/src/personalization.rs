//! The share of each client in the mean of all.

use serde::{Deserialize, Serialize};

use crate::similarity::similarity;

/// The rule for a client's share in the mean of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Personalization {
    /// The similarity of its graph to the reference, and at least this share: 0 in the paper.
    Similarity {
        /// The least share.
        floor: f64,
    },
    /// The same share for all clients.
    Uniform {
        /// The share.
        share: f64,
    },
    /// The mean as it is: FedAvg.
    None,
    /// No share: each client learns alone.
    Alone,
}

/// Returns `true` if a round, counted from 0, ends with the mean of all: all but the first `frozen` ones, unless
/// clients learn alone.
pub fn aggregates(personalization: Personalization, round: u64, frozen: u64) -> bool {
    personalization != Personalization::Alone && round >= frozen
}

impl Personalization {
    /// The share of a client, given the divergences of all.
    pub fn share(self, own: f64, all: &[f64]) -> f64 {
        match self {
            Self::Similarity { floor } => similarity(own, all, floor),
            Self::Uniform { share } => share,
            Self::None => 1.0,
            Self::Alone => 0.0,
        }
    }
}
