//! All clients in one place, as with a server: the reference for the serverless form.

use serde::{Deserialize, Serialize};

use crate::client::RecommenderClient;
use crate::error::RecommendError;
use crate::similarity::{Kernel, Size, reference_shares, similarity};

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

/// The share of each client in the mean of all.
///
/// # Errors
/// [`RecommendError::FewNodes`] where the reference is too small, [`RecommendError::Spectrum`].
pub fn similarities(
    clients: &[RecommenderClient],
    personalization: Personalization,
    kernel: Kernel,
    frequencies: usize,
    seed: u64,
) -> Result<Vec<f64>, RecommendError> {
    let sizes: Vec<Size> = clients.iter().map(RecommenderClient::size).collect();
    let reference = reference_shares(Size::mean(&sizes), kernel, frequencies, seed)?;
    let all: Vec<f64> = clients.iter().map(|client| client.divergence(&reference)).collect();
    Ok(all.iter().map(|own| personalization.share(*own, &all)).collect())
}

/// One round of all clients: each trains for some epochs and, if `aggregates`, takes its share of the mean.
///
/// # Errors
/// [`RecommendError::Device`].
pub fn federate(
    clients: &mut [RecommenderClient],
    shares: &[f64],
    epochs: u32,
    aggregates: bool,
) -> Result<(), RecommendError> {
    let mut sum: Vec<f64> = Vec::new();
    for client in clients.iter_mut() {
        client.train(epochs)?;
        let shared = client.shared()?;
        sum.resize(shared.len(), 0.0);
        sum.iter_mut().zip(shared).for_each(|(sum, value)| *sum += f64::from(value));
    }
    if !aggregates {
        return Ok(());
    }
    let count = clients.len() as f64;
    let mean: Vec<f32> = sum.into_iter().map(|sum| (sum / count) as f32).collect();
    clients.iter_mut().zip(shares).try_for_each(|(client, share)| client.take(&mean, *share))
}
