//! Momentum across rounds: the largest factor under which the nodes still agree.
//!
//! Every node adds to its change of a round a share of its movement since the round before (Lin et al., "Quasi-Global
//! Momentum: Accelerating Decentralized Deep Learning on Heterogeneous Data", arXiv:2102.04761):
//!
//! ```text
//!   y = z + d        z <- W (y + gamma (y - y_prev))
//! ```
//!
//! Without the changes `d` a round maps `(y, y_prev)` to `((1 + gamma) W y - gamma W y_prev, y)`: the block companion
//! matrix of `W (1 + gamma)` and `-gamma W`. The average of all nodes moves as heavy-ball momentum moves it, with the
//! eigenvalues 1 and `gamma`, whatever the plan; it is left out. All other eigenvalues of the product over a period must
//! lie within the unit circle, or differences between nodes grow from period to period.
//!
//! Nodes compare ratios `z = x / w`, and momentum moves numerators by `w` times as much. Where the push-sum weights `w`
//! change from round to round of a period, the `W` of a round is thus `diag(w')^-1 W diag(w)`, with the weights `w` before
//! and `w'` after it.

use faer::Mat;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{MAX_DENSE_NODES, Unresolved, dense, eigenvalues, moduli};
use crate::{
    recurrence::{RecurrenceError, recurrent_nodes},
    step::MixingStep,
};

/// The largest momentum in hundredths: at 1, the average of all nodes would never stop.
const MOST_HUNDREDTHS: u32 = 99;

/// The most nodes for which the companion matrix of a period of several rounds is solved. Above, random starts are
/// followed instead.
const MAX_COMPANION_NODES: usize = 32;

/// Starts that are followed together.
const STARTS: usize = 3;

/// The most multiplications spent on following the starts under one momentum.
const WORK_LIMIT: usize = 40_000_000;

/// The most periods followed under one momentum, and the fewest that tell anything.
const MOST_PERIODS: usize = 2_000;
const FEWEST_PERIODS: usize = 16;

/// The logarithm of the factor by which starts have to shrink in the second half of the periods followed.
const SHRUNK: f64 = -1.0;

/// A mode is stable below this modulus; the rest is the accuracy of the eigenvalue solver.
const STABLE: f64 = 1.0 - 1e-9;

/// The largest momentum across rounds that a plan bears, in hundredths from 0 to 0.99: under it, and under the smaller
/// tenths, the differences between nodes shrink. `round_length` steps make a round, from one training to the next.
///
/// From the eigenvalues of the matrix up to [`MAX_DENSE_NODES`] nodes where a period is one round, and from those of the
/// companion matrix of the period up to 32 nodes where it has several. Larger ones follow random starts, which may give
/// a smaller answer, where differences shrink slowly, but not a larger one.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design};
/// let bears = |method| {
///     let plan = design(&Topology::generate("complete:n=8")?, method, &DesignOptions::default())?;
///     Ok::<f64, Box<dyn std::error::Error>>(plan.largest_momentum()?)
/// };
/// assert_eq!(bears(Method::ExactAverage)?, 0.99);
/// assert_eq!(bears(Method::OnePeerExponential)?, 0.61);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The eigenvalue solver failed, differences shrink too slowly to be followed, or a node has no weight, and thus no
/// training, at the start of some rounds of a period.
pub fn largest_momentum(node_count: usize, steps: &[MixingStep], round_length: usize) -> Result<f64, Unresolved> {
    let period: Vec<&[MixingStep]> = steps.chunks(round_length.max(1)).collect();
    if let ([round], true) = (&period[..], node_count <= MAX_DENSE_NODES) {
        let modes = eigenvalues(&deviations(node_count, round))?;
        return largest(|momentum| Ok(modes.iter().all(|&mode| is_mode_stable(mode, momentum))));
    }
    let rounds = weighted(node_count, &period, steps)?;
    if node_count <= MAX_COMPANION_NODES {
        return largest(|momentum| Ok(ln_companion_modulus(node_count, &rounds, momentum)? < 0.0));
    }
    if !shrinks(node_count, &rounds, 0.0) {
        let reason = "differences between nodes shrink too slowly to say which momentum the plan bears";
        return Err(Unresolved { reason: reason.to_owned() });
    }
    largest(|momentum| Ok(shrinks(node_count, &rounds, momentum)))
}

/// A round with the push-sum weights of the nodes in the long run.
struct Round<'a> {
    steps: &'a [MixingStep],
    /// The weights before the round, `[nodes]`.
    before: Vec<f64>,
    /// The weights after the round, `[nodes]`.
    after: Vec<f64>,
}

/// The rounds of a period with their weights.
fn weighted<'a>(
    node_count: usize,
    period: &[&'a [MixingStep]],
    steps: &[MixingStep],
) -> Result<Vec<Round<'a>>, Unresolved> {
    let unresolved = |error: RecurrenceError| Unresolved { reason: error.to_string() };
    let recurrent = recurrent_nodes(node_count, steps).map_err(unresolved)?;
    let mut weights = super::perron_weights(node_count, steps, &recurrent)?;
    let mut scratch = vec![0.0; node_count];
    let round = |steps: &&'a [MixingStep]| {
        let before = weights.clone();
        steps.iter().for_each(|step| step.mix(&mut weights, &mut scratch));
        Round { steps, before, after: weights.clone() }
    };
    let rounds: Vec<Round<'a>> = period.iter().map(round).collect();
    match rounds.iter().find_map(|round| round.before.iter().position(|weight| *weight <= 0.0)) {
        None => Ok(rounds),
        Some(node) => Err(Unresolved { reason: format!("node {node} has no weight at the start of some rounds") }),
    }
}

/// The largest number of hundredths up to which all tenths, and then all hundredths, are stable.
fn largest(is_stable: impl Fn(f64) -> Result<bool, Unresolved>) -> Result<f64, Unresolved> {
    let mut stable = 0;
    for stride in [10, 1] {
        while stable + stride <= MOST_HUNDREDTHS && is_stable(f64::from(stable + stride) / 100.0)? {
            stable += stride;
        }
    }
    Ok(f64::from(stable) / 100.0)
}

/// The product of a round's steps less `J / n`, which has the eigenvalue 0 in place of the 1 of the average.
fn deviations(node_count: usize, round: &[MixingStep]) -> Mat<f64> {
    let product = dense::product(node_count, round);
    let mean = 1.0 / node_count as f64;
    Mat::from_fn(node_count, node_count, |row, column| product[(row, column)] - mean)
}

/// Returns `true` if both roots of `mu^2 - (1 + gamma) lambda mu + gamma lambda` lie within the unit circle.
fn is_mode_stable(mode: (f64, f64), momentum: f64) -> bool {
    let (re, im) = mode;
    let half = ((1.0 + momentum) * re / 2.0, (1.0 + momentum) * im / 2.0);
    let discriminant = (half.0 * half.0 - half.1 * half.1 - momentum * re, 2.0 * half.0 * half.1 - momentum * im);
    let modulus = discriminant.0.hypot(discriminant.1);
    let root = (((modulus + discriminant.0) / 2.0).max(0.0).sqrt(), ((modulus - discriminant.0) / 2.0).max(0.0).sqrt());
    let root = if discriminant.1 < 0.0 { (root.0, -root.1) } else { root };
    let plus = (half.0 + root.0).hypot(half.1 + root.1);
    let minus = (half.0 - root.0).hypot(half.1 - root.1);
    plus.max(minus) < STABLE
}

/// The logarithm of the largest modulus of the product of all rounds' companion matrices, on differences between nodes,
/// over that of [`STABLE`].
fn ln_companion_modulus(node_count: usize, rounds: &[Round<'_>], momentum: f64) -> Result<f64, Unresolved> {
    let unit = |at: usize| {
        let mut now = vec![0.0; node_count];
        let mut before = now.clone();
        (if at < node_count { &mut now } else { &mut before })[at % node_count] = 1.0;
        Movement { now, before }
    };
    let mut columns: Vec<Movement> = (0..2 * node_count).map(unit).collect();
    let mut scratch = vec![0.0; node_count];
    let mut scale = 0.0;
    for round in rounds {
        columns.iter_mut().for_each(|column| column.pass(round, momentum, &mut scratch));
        let largest = columns.iter().map(Movement::largest).fold(0.0, f64::max);
        if largest == 0.0 {
            return Ok(f64::NEG_INFINITY);
        }
        columns.iter_mut().for_each(|column| column.divide(largest));
        scale += largest.ln();
    }
    let matrix = Mat::from_fn(2 * node_count, 2 * node_count, |row, column| columns[column].at(row));
    let modulus = moduli(&matrix)?.first().copied().unwrap_or(0.0);
    Ok(scale + modulus.ln() - STABLE.ln())
}

/// Returns `true` if the differences between nodes shrink from random starts.
fn shrinks(node_count: usize, rounds: &[Round<'_>], momentum: f64) -> bool {
    let work: usize =
        rounds.iter().map(|round| round.steps.iter().map(MixingStep::work).sum::<usize>() + 4 * node_count).sum();
    let periods = (WORK_LIMIT / (STARTS * work).max(1)).clamp(FEWEST_PERIODS, MOST_PERIODS);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut draw = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    let mut vector = || (0..node_count).map(|_| draw()).collect::<Vec<f64>>();
    let mut starts: Vec<Movement> = (0..STARTS).map(|_| Movement { now: vector(), before: vector() }).collect();
    let mut scratch = vec![0.0; node_count];
    let mut second_half = 0.0;
    for period in 0..periods {
        for round in rounds {
            starts.iter_mut().for_each(|start| start.pass(round, momentum, &mut scratch));
        }
        let largest = starts.iter().map(Movement::largest).fold(0.0, f64::max);
        if largest == 0.0 {
            return true;
        }
        starts.iter_mut().for_each(|start| start.divide(largest));
        if 2 * period >= periods {
            second_half += largest.ln();
        }
    }
    second_half < SHRUNK
}

/// The differences between the ratios of the nodes, now and a round before.
#[derive(Clone)]
struct Movement {
    now: Vec<f64>,
    before: Vec<f64>,
}

impl Movement {
    /// Passes a round: the momentum is added, and the round's steps mix the numerators that result. What all nodes have
    /// in common is taken away.
    fn pass(&mut self, round: &Round<'_>, momentum: f64, scratch: &mut [f64]) {
        let mut sum = 0.0;
        for ((now, before), weight) in self.now.iter_mut().zip(&mut self.before).zip(&round.before) {
            let moved = *now + momentum * (*now - *before);
            *before = *now;
            *now = moved;
            sum += weight * moved;
        }
        let mean = sum / self.now.len() as f64;
        self.now.iter_mut().zip(&round.before).for_each(|(value, weight)| *value = weight * (*value - mean));
        round.steps.iter().for_each(|step| step.mix(&mut self.now, scratch));
        self.now.iter_mut().zip(&round.after).for_each(|(value, weight)| *value /= weight);
    }

    fn largest(&self) -> f64 {
        self.now.iter().chain(&self.before).fold(0.0, |most, value| most.max(value.abs()))
    }

    fn divide(&mut self, by: f64) {
        self.now.iter_mut().chain(&mut self.before).for_each(|value| *value /= by);
    }

    fn at(&self, row: usize) -> f64 {
        self.now.get(row).or_else(|| self.before.get(row - self.now.len())).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::plan::{StepDraft, WeightedLink};

    /// A circle of `n` nodes in which each gives equal shares to itself and to the nodes at these offsets.
    fn circle(n: usize, offsets: &[usize]) -> MixingStep {
        let share = 1.0 / (offsets.len() + 1) as f64;
        let link =
            |from| offsets.iter().map(move |offset| WeightedLink { from, to: (from + offset) % n, weight: share });
        MixingStep::sorted(StepDraft {
            keep: vec![share; n],
            links: (0..n).flat_map(link).collect(),
            slots: Vec::new(),
        })
    }

    /// One step in which everybody gets the average.
    fn exact(n: usize) -> MixingStep {
        circle(n, &(1..n).collect::<Vec<_>>())
    }

    fn bears(steps: &[MixingStep]) -> f64 {
        largest_momentum(steps[0].node_count(), steps, 1).unwrap()
    }

    #[test]
    fn known_plans_bear_what_their_companion_matrices_say() {
        let one_peer = [1, 2, 4].map(|offset| circle(8, &[offset]));
        assert_eq!(bears(&[exact(8)]), 0.99);
        assert_eq!(bears(&[circle(8, &[1, 7])]), 0.99, "ring");
        assert_eq!(bears(&one_peer), 0.61, "the golden ratio less 1, in hundredths");
        assert_eq!(bears(&[circle(8, &[1, 6])]), 0.55, "directed ring with chords");
        assert_eq!(bears(&[&one_peer[..], &[exact(8)]].concat()), 0.99, "three one-peer steps and an exact average");
    }

    #[test]
    fn steps_of_one_round_count_as_their_product() {
        let ring = [circle(8, &[1]), circle(8, &[7])];
        let product = largest_momentum(8, &ring, 2).unwrap();
        assert_eq!(product, bears(&[circle(8, &[1, 7])]), "a symmetric product");
        assert!(bears(&ring) <= product);
    }

    #[test]
    fn following_starts_gives_the_answer_of_the_eigenvalues_or_slightly_less() {
        for n in [8, 16, 32] {
            let offsets = std::iter::successors(Some(1), |offset| Some(2 * offset)).take_while(|offset| *offset < n);
            let steps: Vec<MixingStep> = offsets.map(|offset| circle(n, &[offset])).collect();
            let rounds = weighted(n, &steps.chunks(1).collect::<Vec<_>>(), &steps).unwrap();
            let followed = largest(|momentum| Ok(shrinks(n, &rounds, momentum))).unwrap();
            let solved = bears(&steps);
            assert!((solved - 0.011..=solved).contains(&followed), "{n}: {followed} of {solved}");
        }
    }

    #[test]
    fn a_mode_of_a_real_matrix_has_the_limit_of_its_formula() {
        // A negative eigenvalue -a is stable up to (1 - a) / 2 a, a positive one always.
        for a in [0.4, 0.6, 0.9] {
            let limit = (1.0 - a) / (2.0 * a);
            assert!(is_mode_stable((-a, 0.0), limit - 1e-6) && !is_mode_stable((-a, 0.0), limit + 1e-6), "{a}");
            assert!(is_mode_stable((a, 0.0), 0.99));
        }
    }
}
