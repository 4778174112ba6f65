//! Sharing between clients: its rules, the weights that follow, and the measure of a model.

use crate::collaboration::{CollaborationGraph, CollaborationMode, CollaborationOptions};
use crate::error::ClientError;
use crate::scores::Score;
use crate::signature::Signatures;

/// The rule by which clients' parameters are combined after each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No sharing: each client learns alone.
    Local,
    /// The mean of all, weighed by training nodes (FedAvg).
    Average,
    /// Personal weights by signatures.
    Collaboration(CollaborationMode),
}

/// The seed of a client, derived from one for all.
pub fn client_seed(seed: u64, client: usize) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(client as u64)
}

/// The weights of clients with these signatures and numbers of training nodes.
///
/// # Errors
///
/// Options out of bounds, or signatures of different shapes.
pub fn weights(
    sharing: Sharing,
    options: &CollaborationOptions,
    signatures: &[Signatures],
    counts: &[f64],
) -> Result<CollaborationGraph, ClientError> {
    let orders = signatures.first().map_or(0, |signatures| signatures.shape().orders);
    match sharing {
        Sharing::Local => Ok(CollaborationGraph::local(counts.len(), orders)),
        Sharing::Average => Ok(CollaborationGraph::average(counts, orders)),
        Sharing::Collaboration(mode) => {
            Ok(CollaborationGraph::of(signatures, &CollaborationOptions { mode, ..*options })?)
        }
    }
}

/// The measure by which models are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeMetric {
    /// The share of nodes that are classified correctly.
    #[default]
    Accuracy,
    /// The area under the curve, for two classes of very different frequency.
    Auc,
}

impl NodeMetric {
    /// The value of a score by this measure.
    pub fn of(self, score: &Score) -> Option<f64> {
        match self {
            Self::Accuracy => score.accuracy,
            Self::Auc => score.auc,
        }
    }
}
