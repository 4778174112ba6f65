//! The sequence of samples that local steps see.
//!
//! Every epoch is one shuffle of all samples, cut into batches of equal size; the few left over
//! wait for the next shuffle. Epoch `e` of a seed is stream `e` of one ChaCha generator, so the
//! batch of step `s` follows from the seed and `s` alone: a peer that restarts at step `s`
//! continues exactly where it would have been.
//!
//! Windows of a text overlap, so they have no epochs: those of step `s` begin at places that stream `s` draws
//! independently, as nanoGPT draws them.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The batches of one peer, one per step.
#[derive(Clone, Debug)]
pub struct Batches {
    seed: u64,
    batch_size: usize,
    /// All samples in the order of an epoch; for windows, only the batch drawn last.
    order: Vec<u32>,
    /// The epoch that `order` belongs to.
    epoch: Option<u64>,
    /// The places at which a window can begin, where windows are drawn.
    places: Option<u32>,
    step: u64,
}

impl Batches {
    /// Batches of `batch_size` out of `samples`, or of all samples if there are fewer.
    ///
    /// Both are at least 1, and `samples` is below 2^32.
    pub fn new(samples: u32, batch_size: usize, seed: u64) -> Self {
        let batch_size = batch_size.min(samples as usize);
        Self { seed, batch_size, order: (0..samples).collect(), epoch: None, places: None, step: 0 }
    }

    /// Batches of `batch_size` windows, each of which begins at one of `places` places.
    ///
    /// Both are at least 1.
    pub fn of_windows(places: u32, batch_size: usize, seed: u64) -> Self {
        Self { seed, batch_size, order: Vec::new(), epoch: None, places: Some(places), step: 0 }
    }

    /// Samples in each batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// The number of batches taken so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Continues as if `step` batches had been taken.
    pub fn resume_at(&mut self, step: u64) {
        self.step = step;
    }

    /// The samples of the next batch, or the places at which its windows begin.
    pub fn next_batch(&mut self) -> &[u32] {
        if let Some(places) = self.places {
            return self.next_windows(places);
        }
        let per_epoch = (self.order.len() / self.batch_size) as u64;
        let epoch = self.step / per_epoch;
        if self.epoch != Some(epoch) {
            self.shuffle(epoch);
        }
        let start = (self.step % per_epoch) as usize * self.batch_size;
        self.step += 1;
        &self.order[start..start + self.batch_size]
    }

    fn next_windows(&mut self, places: u32) -> &[u32] {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.step);
        self.step += 1;
        self.order.clear();
        self.order.extend((0..self.batch_size).map(|_| rng.random_range(0..places)));
        &self.order
    }

    fn shuffle(&mut self, epoch: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(epoch);
        // Sorted first, so that an epoch does not depend on the ones before it.
        self.order.sort_unstable();
        self.order.shuffle(&mut rng);
        self.epoch = Some(epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_shows_each_sample_once_and_the_next_one_in_another_order() {
        let mut batches = Batches::new(12, 4, 5);
        let mut epoch = || -> Vec<u32> { (0..3).flat_map(|_| batches.next_batch().to_vec()).collect() };
        let (first, second) = (epoch(), epoch());
        assert_ne!(first, second);
        for mut order in [first, second] {
            order.sort_unstable();
            assert_eq!(order, (0..12).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn samples_left_over_by_one_epoch_come_in_another() {
        let mut batches = Batches::new(10, 4, 1);
        let mut seen = [false; 10];
        for _ in 0..40 {
            let batch = batches.next_batch();
            assert_eq!(batch.len(), 4);
            batch.iter().for_each(|&sample| seen[sample as usize] = true);
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn a_restarted_peer_continues_with_the_batch_it_would_have_seen() {
        let mut all = Batches::new(50, 7, 3);
        let expected: Vec<Vec<u32>> = (0..40).map(|_| all.next_batch().to_vec()).collect();
        for start in [0, 1, 6, 7, 8, 39] {
            let mut restarted = Batches::new(50, 7, 3);
            restarted.resume_at(start as u64);
            assert_eq!(restarted.next_batch(), expected[start], "from step {start}");
        }
    }

    #[test]
    fn windows_follow_from_the_seed_and_the_step_and_begin_everywhere() {
        let mut all = Batches::of_windows(50, 7, 3);
        let expected: Vec<Vec<u32>> = (0..40).map(|_| all.next_batch().to_vec()).collect();
        for start in [0, 1, 17, 39] {
            let mut restarted = Batches::of_windows(50, 7, 3);
            restarted.resume_at(start as u64);
            assert_eq!(restarted.next_batch(), expected[start], "from step {start}");
        }
        let places: std::collections::BTreeSet<u32> = expected.concat().into_iter().collect();
        assert_eq!((places.first(), places.last(), places.len()), (Some(&0), Some(&49), 50));
        let mut one = Batches::of_windows(1, 3, 3);
        assert_eq!(one.next_batch(), [0, 0, 0], "more windows than places");
    }

    #[test]
    fn a_batch_is_never_larger_than_the_samples() {
        let mut batches = Batches::new(3, 64, 0);
        assert_eq!(batches.next_batch().len(), 3);
    }
}
