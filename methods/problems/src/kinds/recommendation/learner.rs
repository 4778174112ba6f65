//! One client of LPSFed as a part in learning in rounds.
//!
//! Shared with all before the first round are the numbers of users, items and interactions that it trains on, and its
//! divergence from the reference. Shared in each round are the weights of pooling and prediction, its mean margin, and
//! its metrics. Interactions, embeddings, kernels and popularity tables stay at the client.

use mingle_models::Device;
use mingle_recommend::{
    Interactions, Kernel, Personalization, RecommendError, RecommenderClient, Size, SpectrumCache, aggregates,
    reference_shares,
};
use mingle_solving::{Aggregation, LearningError, RoundLearning, StatisticsTable};

use super::RECOMMENDER;
use super::file::RecommendationFile;

/// The most users, items or interactions that a client may report: a larger reference would not fit in memory.
const LARGEST: f64 = (1_u64 << 28) as f64;

/// A client, and its share of the mean.
pub(super) struct RecommendationLearner {
    client: RecommenderClient,
    node: usize,
    epochs: u32,
    frozen: u64,
    personalization: Personalization,
    kernel: Kernel,
    frequencies: usize,
    seed: u64,
    found: String,
    /// The share of the mean that it takes, once that is known.
    share: f64,
    /// The client's state at the last evaluation.
    state: Vec<u8>,
}

/// The numbers of users, items and interactions.
fn found(interactions: &Interactions) -> String {
    let numbers = [
        (interactions.users().len() as u64, "users"),
        (interactions.items().len() as u64, "items"),
        (interactions.count() as u64, "interactions"),
        (interactions.repeated(), "repeated lines, which count once"),
    ];
    let there = numbers.iter().filter(|(number, _)| *number > 0);
    there.map(|(number, what)| format!("{number} {what}")).collect::<Vec<_>>().join(", ")
}

impl RecommendationLearner {
    pub(super) fn new(
        file: &RecommendationFile,
        interactions: Interactions,
        node: usize,
        device: &Device,
        cache: Option<&SpectrumCache>,
    ) -> Result<Self, RecommendError> {
        let options = file.client();
        // Differs from the shared seed.
        let own_seed = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(node as u64 + 1);
        let found = found(&interactions);
        let client = RecommenderClient::new(interactions, options, own_seed, device, cache)?;
        Ok(Self {
            state: client.state()?,
            found,
            client,
            node,
            epochs: file.epochs,
            frozen: file.frozen_rounds,
            personalization: file.personalization(),
            kernel: options.kernel,
            frequencies: options.frequencies,
            seed: options.seed,
            share: 1.0,
        })
    }

    /// The client itself.
    #[cfg(test)]
    pub(super) fn into_client(self) -> RecommenderClient {
        self.client
    }

    /// The reference's frequencies: node 0 computes them, so that no two peers differ in a last bit. Zeros elsewhere.
    fn reference(&self, sizes: &StatisticsTable) -> Result<Vec<f64>, LearningError> {
        let sizes = sizes.iter().map(|row| size(row)).collect::<Result<Vec<Size>, LearningError>>()?;
        if self.node != 0 {
            return Ok(vec![0.0; self.frequencies]);
        }
        let mean = Size::mean(&sizes);
        reference_shares(mean, self.kernel, self.frequencies, self.seed).map_err(LearningError::of)
    }
}

/// Reads a client's size from its row of statistics.
fn size(row: &[f64]) -> Result<Size, LearningError> {
    let count = |at: usize| {
        let number = row.get(at).copied().unwrap_or(-1.0);
        let is_count = (1.0..=LARGEST).contains(&number) && number.fract() == 0.0;
        let absurd = || LearningError(format!("a client says that it has {number} users, items or interactions"));
        if is_count { Ok(number as usize) } else { Err(absurd()) }
    };
    Ok(Size { users: count(0)?, items: count(1)?, edges: count(2)? })
}

impl RoundLearning for RecommendationLearner {
    fn identity(&self) -> [u8; 32] {
        self.client.hash()
    }

    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        let is_personal = matches!(self.personalization, Personalization::Similarity { .. });
        match tables {
            [] => {
                let Size { users, items, edges } = self.client.size();
                Ok(Some(vec![users as f64, items as f64, edges as f64]))
            }
            [_] if !is_personal => {
                self.share = self.personalization.share(0.0, &[]);
                Ok(None)
            }
            [sizes] => self.reference(sizes).map(Some),
            [_, reference] => {
                let told = reference.first().map_or(&[][..], Vec::as_slice);
                Ok(Some(vec![self.client.divergence(told)]))
            }
            [_, _, divergences, ..] => {
                let all: Vec<f64> = divergences.iter().filter_map(|row| row.first().copied()).collect();
                self.share = self.personalization.share(all.get(self.node).copied().unwrap_or(0.0), &all);
                Ok(None)
            }
        }
    }

    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        self.client.train(self.epochs).map_err(LearningError::of)?;
        self.client.shared().map_err(LearningError::of)
    }

    fn aggregation(&self, round: u64) -> Aggregation {
        match aggregates(self.personalization, round, self.frozen) {
            true => Aggregation::Mean,
            false => Aggregation::None,
        }
    }

    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.client.take(aggregate, self.share).map_err(LearningError::of)
    }

    fn evaluate(&mut self, _: u64) -> Result<Vec<Option<f64>>, LearningError> {
        self.state = self.client.state().map_err(LearningError::of)?;
        let quality = self.client.evaluate().map_err(LearningError::of)?;
        Ok(quality.values().to_vec())
    }

    fn state(&self) -> Vec<u8> {
        self.state.clone()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        self.client.restore(state).map_err(LearningError::of)?;
        self.state = state.to_vec();
        Ok(())
    }

    fn found(&self) -> String {
        self.found.clone()
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        let recommender = self.client.recommender().and_then(|recommender| recommender.to_bytes());
        Ok(vec![(RECOMMENDER.to_owned(), recommender.map_err(LearningError::of)?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_none_are_refused() {
        assert_eq!(size(&[3.0, 4.0, 5.0]), Ok(Size { users: 3, items: 4, edges: 5 }));
        for row in [&[0.0, 1.0, 1.0][..], &[1.5, 1.0, 1.0], &[1.0, 1.0, 1e18], &[1.0, -2.0, 1.0], &[1.0]] {
            assert!(size(row).is_err(), "{row:?}");
        }
    }
}
