//! Transient gain: the part of a change of the nodes' values that a number of periods leaves as disagreement. It is a
//! norm, not an eigenvalue.
//!
//! A tracking average adds the changes of its inputs to the sums that the nodes hold, mixes `R` periods, and divides by
//! the weights. A change `v` of the inputs is read as
//!
//! ```text
//!   diag(1 / w) P^R v      instead of  mean(v) 1       P: product of the period's steps,  w = n pi: the settled weights
//! ```
//!
//! and the largest ratio of the difference to `v` is the norm `|| diag(1/w) P^R - J ||_2`, `J = 1 1' / n`. In the long
//! run it falls like `|lambda_2|^R`. But the columns of a plan that was tuned for its eigenvalues are far from
//! orthogonal, and the norm exceeds 1 for some periods first (transient growth of a non-normal matrix; Trefethen and
//! Embree, "Spectra and Pseudospectra", 2005). So a bound at a given `R` needs the norm.
//!
//! Uses additions, multiplications, divisions and square roots only: every machine gets the same bits.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::step::MixingStep;

/// Seed of the vector that the power iteration starts from.
const SEED: u64 = 0x7472_616e_7369;

/// Steps of a power iteration. It approaches the norm from below; where two singular values are close to each other,
/// either is close to the norm.
const POWER_STEPS: usize = 24;

/// The most multiplications spent on the weights, and on all norms of a search.
const WORK_LIMIT: usize = 2_000_000_000;

/// Weights have settled when each moves by a smaller share than this in a period.
const SETTLED: f64 = 1e-9;

/// The fewest periods, from `least` on, that leave at most `gain` of any change of the inputs:
/// `|| diag(1/w) P^R - J ||_2 <= gain`. Up to an eighth more than the fewest where these are many. `None` where finding
/// them takes more than 2e9 multiplications.
///
/// The steps are those of a plan: repeating them brings all nodes to one value.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design, transient::periods_to_gain};
/// let plan = design(&Topology::generate("complete:n=4")?, Method::DPsgd, &DesignOptions::default())?;
/// assert_eq!(periods_to_gain(4, plan.steps(), 1, 0.5), Some(1)); // one step averages exactly
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Complexity
///
/// O(R links) for each of O(R) periods tried while they are few, and of O(log R) where they are many.
#[must_use]
pub fn periods_to_gain(node_count: usize, steps: &[MixingStep], least: usize, gain: f64) -> Option<usize> {
    let mut left = WORK_LIMIT;
    let reading = Reading::settled(node_count, steps, &mut left)?;
    let mut periods = least.max(1);
    loop {
        let work = periods.checked_mul(2 * POWER_STEPS)?.checked_mul(work_of_period(node_count, steps))?;
        left = left.checked_sub(work)?;
        if reading.gain(steps, periods) <= gain {
            return Some(periods);
        }
        periods += (periods / 8).max(1);
    }
}

/// `|| diag(1/w) P^R - J ||_2` for `R` periods. `None` where that takes more than 2e9 multiplications.
#[must_use]
pub fn gain(node_count: usize, steps: &[MixingStep], periods: usize) -> Option<f64> {
    let mut left = WORK_LIMIT;
    let reading = Reading::settled(node_count, steps, &mut left)?;
    let work = periods.checked_mul(2 * POWER_STEPS)?.checked_mul(work_of_period(node_count, steps))?;
    left.checked_sub(work).map(|_| reading.gain(steps, periods))
}

fn work_of_period(node_count: usize, steps: &[MixingStep]) -> usize {
    steps.iter().map(|step| node_count + step.links().len()).sum()
}

/// The steps of a period after which nodes read their averages, and the weights they divide by.
struct Reading {
    node_count: usize,
    /// By step of the period: the nodes that read after it, each with the inverse of its weight. A node reads after the
    /// last step of a period at whose end it has weight.
    after: Vec<Vec<(usize, f64)>>,
}

impl Reading {
    /// Mixes equal weights until they move no more.
    fn settled(node_count: usize, steps: &[MixingStep], left: &mut usize) -> Option<Self> {
        let mut weights = vec![1.0; node_count];
        let mut scratch = vec![0.0; node_count];
        loop {
            *left = left.checked_sub(work_of_period(node_count, steps))?;
            let before = weights.clone();
            steps.iter().for_each(|step| step.mix(&mut weights, &mut scratch));
            if weights.iter().zip(&before).all(|(a, b)| (a - b).abs() <= SETTLED * a.max(SETTLED)) {
                break;
            }
        }
        let mut last = vec![(0, 0.0); node_count];
        for (number, step) in steps.iter().enumerate() {
            step.mix(&mut weights, &mut scratch);
            let held = weights.iter().enumerate().filter(|(_, weight)| **weight > SETTLED);
            held.for_each(|(node, weight)| last[node] = (number, 1.0 / weight));
        }
        let mut after = vec![Vec::new(); steps.len()];
        last.into_iter().enumerate().for_each(|(node, (number, inverse))| after[number].push((node, inverse)));
        Some(Self { node_count, after })
    }

    /// `|| diag(1/w) P^R - J ||_2` by power iteration on the product of the operator's transpose and the operator.
    fn gain(&self, steps: &[MixingStep], periods: usize) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let draw = |_| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        let mut direction: Vec<f64> = (0..self.node_count).map(draw).collect();
        let mut gain = 0.0;
        for _ in 0..POWER_STEPS {
            let length = norm(&direction);
            if length <= f64::MIN_POSITIVE {
                return gain;
            }
            direction.iter_mut().for_each(|x| *x /= length);
            let left = self.disagreement(steps, periods, &direction);
            gain = norm(&left).max(gain);
            direction = self.transposed(steps, periods, &left);
        }
        gain
    }

    /// `diag(1/w) P^R v - mean(v) 1`.
    fn disagreement(&self, steps: &[MixingStep], periods: usize, inputs: &[f64]) -> Vec<f64> {
        let mut sums = inputs.to_vec();
        let mut scratch = vec![0.0; self.node_count];
        for _ in 1..periods {
            steps.iter().for_each(|step| step.mix(&mut sums, &mut scratch));
        }
        let mut read = vec![-mean(inputs); self.node_count];
        for (step, readers) in steps.iter().zip(&self.after) {
            step.mix(&mut sums, &mut scratch);
            readers.iter().for_each(|&(node, inverse)| read[node] += sums[node] * inverse);
        }
        read
    }

    /// `(P')^R diag(1/w) u - mean(u) 1`.
    fn transposed(&self, steps: &[MixingStep], periods: usize, read: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.node_count];
        let mut scratch = vec![0.0; self.node_count];
        for (step, readers) in steps.iter().zip(&self.after).rev() {
            readers.iter().for_each(|&(node, inverse)| sums[node] += read[node] * inverse);
            step.mix_transposed(&mut sums, &mut scratch);
        }
        for _ in 1..periods {
            steps.iter().rev().for_each(|step| step.mix_transposed(&mut sums, &mut scratch));
        }
        let mean = mean(read);
        sums.iter_mut().for_each(|sum| *sum -= mean);
        sums
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn mean(vector: &[f64]) -> f64 {
    vector.iter().sum::<f64>() / vector.len() as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use faer::Mat;

    use super::*;
    use crate::{
        DesignOptions, Medium, Method, Topology, design,
        design::{exponential_offsets, exponential_step},
        plan::StepDraft,
        spectrum::symmetric_eigen,
    };

    fn steps_of(expression: &str, method: Method) -> (usize, Vec<MixingStep>) {
        let options = DesignOptions { medium: Medium::PointToPoint, effort: 1, ..DesignOptions::default() };
        let plan = design(&Topology::generate(expression).unwrap(), method, &options).unwrap();
        (plan.node_count(), plan.steps().to_vec())
    }

    /// The norm from its definition, for periods at whose end every node has weight: the matrix, and an eigenvalue.
    fn norm_by_definition(node_count: usize, steps: &[MixingStep], periods: usize) -> f64 {
        let mut scratch = vec![0.0; node_count];
        let mut apply = |mut x: Vec<f64>, times: usize| {
            (0..times).for_each(|_| steps.iter().for_each(|step| step.mix(&mut x, &mut scratch)));
            x
        };
        let weights = apply(vec![1.0; node_count], 2_000);
        let columns: Vec<Vec<f64>> = (0..node_count)
            .map(|source| apply((0..node_count).map(|node| f64::from(u8::from(node == source))).collect(), periods))
            .collect();
        let entry = |row: usize, column: usize| columns[column][row] / weights[row] - 1.0 / node_count as f64;
        let product =
            Mat::from_fn(node_count, node_count, |a, b| (0..node_count).map(|row| entry(row, a) * entry(row, b)).sum());
        symmetric_eigen(&product).unwrap().0[node_count - 1].sqrt()
    }

    #[test]
    fn the_gain_is_the_norm_of_the_operator() {
        for (expression, method) in [
            ("rg:n=12,r=0.5,seed=3", Method::Tuned),
            ("rg:n=16,r=0.5,seed=2", Method::NguyenHe),
            ("rg:n=16,r=0.5,seed=1", Method::SgpUniform),
            ("exponential:n=12", Method::OnePeerExponential),
        ] {
            let (n, steps) = steps_of(expression, method);
            for periods in [1, 2, 5] {
                let (found, expected) = (gain(n, &steps, periods).unwrap(), norm_by_definition(n, &steps, periods));
                // From below.
                assert!(
                    found <= expected * (1.0 + 1e-9) && found > 0.97 * expected - 1e-9,
                    "{expression} {method} {periods}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn symmetric_matrices_have_the_gain_of_their_eigenvalue() {
        let (n, steps) = steps_of("ring:n=9", Method::LazyMetropolis);
        let lambda_2 = crate::spectrum::second_modulus(n, &steps).unwrap();
        for periods in [1_usize, 3, 10] {
            let found = gain(n, &steps, periods).unwrap();
            assert!((found / lambda_2.powi(i32::try_from(periods).unwrap()) - 1.0).abs() < 1e-3, "{periods}: {found}");
        }
    }

    /// Nodes that gather and scatter hold nothing in between, and some nothing at the end of a step: they read when
    /// they last hold weight.
    #[test]
    fn an_exact_average_leaves_nothing_of_any_change() {
        for expression in ["rg:n=14,r=0.5,seed=3", "star:n=9"] {
            let (n, steps) = steps_of(expression, Method::ExactAverage);
            assert!(gain(n, &steps, 1).unwrap() < 1e-9, "{expression}");
        }
    }

    #[test]
    fn as_few_periods_are_found_as_leave_what_is_asked_for() {
        for (expression, method) in [("rg:n=12,r=0.5,seed=3", Method::Tuned), ("ring:n=24", Method::SgpUniform)] {
            let (n, steps) = steps_of(expression, method);
            let periods = periods_to_gain(n, &steps, 1, 0.8).unwrap();
            assert!(gain(n, &steps, periods).unwrap() <= 0.8, "{expression}");
            let fewer = periods - periods.div_ceil(8);
            assert!(fewer == 0 || gain(n, &steps, fewer).unwrap() > 0.8, "{expression}: {periods}");
            assert_eq!(periods_to_gain(n, &steps, periods + 3, 0.8), Some(periods + 3));
        }
    }

    #[test]
    fn large_graphs_are_within_the_limit_and_what_would_take_too_long_is_not_begun() {
        let matrix = exponential_step(4096, &exponential_offsets(4096));
        let (keep, links) = matrix.into_parts();
        let steps = [MixingStep::sorted(StepDraft { keep, links, slots: Vec::new() })];
        assert_eq!(periods_to_gain(4096, &steps, 1, 0.9), Some(1));
        assert_eq!(periods_to_gain(4096, &steps, 1_000, 0.9), None);
        assert_eq!(periods_to_gain(4096, &steps, usize::MAX, 0.9), None);
    }
}
