//! The view of all members at once, and the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values that are compared of a masked message.
const LOOKED_AT: usize = 32;
/// The difference below which two wide masked numbers are related: of 128 bits, some 2^-17 of random ones are.
const RELATED: u128 = 1 << 110;

/// The witness of a swarm, which all members report to.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Observations>>);

/// A life of a process within an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life {
    pub(super) process: u32,
    pub(super) attempt: u64,
}

/// The beginnings of what a member sent under one number, with the life in which each was sent.
type SentParts = Vec<(Life, Vec<u64>)>;
/// The release of each member, if it has made one.
type ReleasesOfAll = Vec<Option<Vec<f32>>>;

#[derive(Default)]
pub(super) struct Observations {
    nodes: usize,
    /// The member that lies.
    liar: Option<usize>,
    /// The root of the trees, where every sum is complete first.
    root: usize,
    /// The releases that a member may make.
    budget: u64,
    /// The present life of each member.
    lives: Vec<Life>,
    /// The releases of a round in an attempt, by member.
    released: BTreeMap<(u64, u64), ReleasesOfAll>,
    /// Rounds and attempts of which the root got the sum, in order.
    summed: Vec<(u64, u64)>,
    /// Rounds whose mean a member has taken, while no disk was lost or put back and all are honest.
    known: BTreeSet<u64>,
    has_lost_disks: bool,
    /// Different releases of each member since its disk was last empty or put back.
    left: Vec<Vec<Vec<f32>>>,
    /// The beginnings of masked messages: by sender and number, with the life in which each was sent.
    masked: BTreeMap<(usize, u64), SentParts>,
    hasher: blake3::Hasher,
    pub(super) checks: u64,
    pub(super) sums: u64,
    pub(super) failure: Option<String>,
}

impl Witness {
    pub(super) fn new(nodes: usize, root: usize, liar: Option<usize>, budget: u64) -> Self {
        let observations = Observations {
            nodes,
            liar,
            root,
            budget,
            lives: vec![Life::default(); nodes],
            left: vec![Vec::new(); nodes],
            ..Observations::default()
        };
        Self(Arc::new(Mutex::new(observations)))
    }

    /// Locks despite poisoning: a member that panicked fails the seed anyway.
    pub(super) fn see(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observations {
    pub(super) fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    pub(super) fn lives(&mut self, node: usize, life: Life) {
        self.lives[node] = life;
    }

    /// The disk of a member is no longer its own.
    pub(super) fn disk_changed(&mut self, node: usize) {
        self.left[node].clear();
        self.has_lost_disks = true;
        self.known.clear();
    }

    /// Takes note of an event. Noise is drawn by the system, so the numbers themselves are others in each run.
    fn note(&mut self, event: &str, node: usize, round: u64) {
        let Life { process, attempt } = self.lives[node];
        self.hasher.update(event.as_bytes());
        for number in [node as u64, round, process.into(), attempt] {
            self.hasher.update(&number.to_le_bytes());
        }
    }

    fn fail(&mut self, message: impl FnOnce() -> String) {
        self.failure.get_or_insert_with(message);
    }

    /// A member lets a contribution go, and has counted so many on its disk.
    pub(super) fn released(&mut self, node: usize, round: u64, vector: &[f32], counted: u64) {
        let attempt = self.lives[node].attempt;
        self.note("released", node, round);
        let nodes = self.nodes;
        let of_all = self.released.entry((round, attempt)).or_insert_with(|| vec![None; nodes]);
        of_all[node] = Some(vector.to_vec());
        if !self.left[node].iter().any(|before| before == vector) {
            self.left[node].push(vector.to_vec());
        }
        self.checks += 1;
        // A member with nothing left to spend sends noise alone, which is not counted.
        let left = (self.left[node].len() as u64).min(self.budget);
        if counted < left {
            self.fail(|| format!("member {node} has counted {counted} releases, and {left} have left it"));
        }
        if self.known.contains(&round) {
            self.fail(|| format!("member {node} releases round {round} once more, whose mean another member has kept"));
        }
    }

    /// A member takes the mean of a round.
    pub(super) fn took(&mut self, node: usize, round: u64, mean: &[f32]) {
        self.note("took", node, round);
        let attempt = self.lives[node].attempt;
        let of_all = self.released.get(&(round, attempt)).cloned().unwrap_or_default();
        let parts: Vec<Vec<f32>> = of_all.into_iter().flatten().collect();
        if node == self.root {
            self.sums += 1;
            self.compare_with_earlier(round, attempt);
            self.summed.push((round, attempt));
        }
        if self.liar.is_some() {
            return;
        }
        if !self.has_lost_disks {
            self.known.insert(round);
        }
        self.checks += 1;
        let sum = |at: usize| parts.iter().map(|part| f64::from(part[at])).sum::<f64>();
        let is_mean = |(at, value): (usize, &f32)| ((sum(at) / self.nodes as f64) as f32).to_bits() == value.to_bits();
        if parts.len() != self.nodes || !mean.iter().enumerate().all(is_mean) {
            self.fail(|| {
                format!("member {node} got a sum of round {round} in attempt {attempt} that is not that of all")
            });
        }
    }

    /// Compares the parts of this sum with those of earlier sums of the same round.
    fn compare_with_earlier(&mut self, round: u64, attempt: u64) {
        let earlier: Vec<u64> =
            self.summed.iter().filter(|(of, at)| *of == round && *at != attempt).map(|(_, at)| *at).collect();
        for before in earlier {
            let [one, other] = [before, attempt].map(|at| self.released.get(&(round, at)).cloned().unwrap_or_default());
            let honest = (0..self.nodes).filter(|node| Some(*node) != self.liar);
            let differing: Vec<usize> = honest.clone().filter(|node| one[*node] != other[*node]).collect();
            self.checks += 1;
            if !differing.is_empty() && differing.len() < honest.count() {
                self.fail(|| {
                    format!("two sums of round {round}, in attempts {before} and {attempt}, differ by the parts of {differing:?} alone")
                });
            }
        }
    }

    /// A member sends a masked message that is not of a whole sum.
    pub(super) fn sent(&mut self, node: usize, operation: u64, words: &[u64]) {
        let life = self.lives[node];
        let beginning: Vec<u64> = words.iter().take(2 * LOOKED_AT).copied().collect();
        let before = self.masked.entry((node, operation)).or_default();
        if before.iter().any(|(of, _)| *of == life) {
            return;
        }
        let related = before.iter().find(|(_, other)| are_related(other, &beginning)).map(|(of, _)| *of);
        let comparisons = before.len() as u64;
        before.push((life, beginning));
        self.checks += comparisons;
        if let Some(other) = related {
            self.fail(|| {
                format!("member {node} sent two parts of sum {operation} under one mask: {other:?}, {life:?}")
            });
        }
    }
}

/// Returns `true` if two sequences of wide numbers differ by little in most places.
fn are_related(one: &[u64], other: &[u64]) -> bool {
    let pairs = one.as_chunks().0.iter().zip(other.as_chunks().0);
    let distance = |(one, other): (&[u64; 2], &[u64; 2])| {
        let [one, other] = [one, other].map(|[low, high]| u128::from(*low) | u128::from(*high) << 64);
        one.wrapping_sub(other).min(other.wrapping_sub(one))
    };
    let places = one.len().min(other.len()) / 2;
    2 * pairs.map(distance).filter(|distance| *distance < RELATED).count() > places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_inputs_under_one_mask_are_noticed() {
        let mut seen = Observations { nodes: 1, lives: vec![Life::default()], ..Observations::default() };
        let mask: Vec<u64> = (1..=8_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        seen.sent(0, 5, &mask);
        seen.lives(0, Life { process: 1, attempt: 1 });
        let unrelated: Vec<u64> = mask.iter().map(|word| word.rotate_left(23)).collect();
        seen.sent(0, 5, &unrelated);
        assert_eq!(seen.failure, None);
        seen.lives(0, Life { process: 1, attempt: 2 });
        let of_another_input: Vec<u64> =
            mask.iter().enumerate().map(|(at, word)| word ^ ((at as u64 + 1) % 2)).collect();
        seen.sent(0, 5, &of_another_input);
        assert!(seen.failure.is_some_and(|failure| failure.contains("under one mask")));
    }
}
