//! Simulated push-sum with a plan's matrices: the number of steps until the nodes agree.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::step::MixingStep;

/// Seed of the starting values: part of the forecast's definition, so that every machine computes the same one.
const SEED: u64 = 0x006d_696e_676c_6531;

/// The most starts of which the median is taken, if they cost at most `AFFORDABLE_WORK` together.
pub const MOST_STARTS: usize = 101;

/// The most multiplications spent on the first start before giving up.
const FIRST_WORK: usize = 300_000_000;

/// The most multiplications that all starts may cost together, estimated from the first one.
const AFFORDABLE_WORK: usize = 200_000_000;

/// The most multiplications spent on all starts before giving up: starts that take longer than the first are known only
/// once they have been run.
const ALL_WORK: usize = 2 * AFFORDABLE_WORK;

/// The number of steps until push-sum without gradients has agreed to `accuracy`, the period repeated as often as
/// needed. The estimates `z = x / w` are then for the first time within `accuracy` times their first distance from the
/// average, in root mean square. It is the median over [`MOST_STARTS`] starts: single ones can pass long before the
/// others by chance.
///
/// A start is independent uniform values, and `w = 1`, drawn one after the other with a fixed seed. Where all of them
/// would take more than 2e8 multiplications, judged by the first one, there are fewer: an odd number, down to the first
/// alone. `None` if half of the starts do not arrive within 7e8 multiplications. Uses additions, multiplications,
/// divisions and square roots only: the same answer on every machine.
///
/// # Complexity
///
/// O(n + links) for each step and start, up to the start in the middle.
#[must_use]
pub fn steps_to_accuracy(node_count: usize, steps: &[MixingStep], accuracy: f64) -> Option<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let first = RandomStart::draw(&mut rng, node_count, accuracy);
    let count = passage(node_count, steps, vec![first], 1, FIRST_WORK)?;
    let per_period: usize = steps.iter().map(|step| work(node_count, step)).sum();
    let each = count.div_ceil(steps.len()) * per_period;
    let starts = (AFFORDABLE_WORK / each.max(1)).min(MOST_STARTS);
    // In the middle of an odd number of starts is one of them.
    let starts = starts.saturating_sub(usize::from(starts.is_multiple_of(2)));
    if starts <= 1 {
        return Some(count);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let drawn = (0..starts).map(|_| RandomStart::draw(&mut rng, node_count, accuracy)).collect();
    passage(node_count, steps, drawn, starts / 2 + 1, ALL_WORK)
}

/// The values of the nodes, evolving from a random start.
struct RandomStart {
    x: Vec<f64>,
    average: f64,
    /// The error at which the start has arrived.
    target: f64,
}

impl RandomStart {
    fn draw(rng: &mut ChaCha8Rng, node_count: usize, accuracy: f64) -> Self {
        let x: Vec<f64> = (0..node_count).map(|_| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).collect();
        let average = x.iter().sum::<f64>() / node_count as f64;
        let target = accuracy * error(&x, &vec![1.0; node_count], average);
        Self { x, average, target }
    }

    fn has_arrived(&self, w: &[f64]) -> bool {
        error(&self.x, w, self.average) <= self.target
    }
}

/// The number of steps until `wanted` of the starts have arrived; `None` beyond `most_work` multiplications.
fn passage(
    node_count: usize,
    steps: &[MixingStep],
    mut starts: Vec<RandomStart>,
    wanted: usize,
    most_work: usize,
) -> Option<usize> {
    let still_on_the_way = starts.len() - wanted;
    let mut w = vec![1.0; node_count];
    let mut scratch = vec![0.0; node_count];
    // Number of nodes without mass, whose estimates are infinitely far off.
    let mut without_mass = 0;
    let mut spent = 0;
    for period in 0.. {
        for (number, step) in steps.iter().enumerate() {
            // While a node has no mass, there is no error to compute.
            let each = if without_mass == 0 { work(node_count, step) } else { step.work() };
            spent += (starts.len() + 1) * each;
            if spent > most_work {
                return None;
            }
            without_mass -= empty_of_changed(step, &w);
            step.mix(&mut w, &mut scratch);
            without_mass += empty_of_changed(step, &w);
            starts.iter_mut().for_each(|start| step.mix(&mut start.x, &mut scratch));
            if without_mass == 0 {
                starts.retain(|start| !start.has_arrived(&w));
            }
            if starts.len() <= still_on_the_way {
                return Some(period * steps.len() + number + 1);
            }
        }
    }
    None
}

/// Multiplications of one step of one start and its error.
fn work(node_count: usize, step: &MixingStep) -> usize {
    node_count + step.links().len()
}

/// The number of nodes without mass among those that a step can change.
fn empty_of_changed(step: &MixingStep, w: &[f64]) -> usize {
    let mut nodes: Vec<usize> = step.changed().filter(|&node| w[node] <= 0.0).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}

/// The root mean square distance of `x / w` from the average; infinite where a node holds no mass.
fn error(x: &[f64], w: &[f64], average: f64) -> f64 {
    let squared = |(x, w): (&f64, &f64)| {
        if *w > 0.0 { (x / w - average).powi(2) } else { f64::INFINITY }
    };
    (x.iter().zip(w).map(squared).sum::<f64>() / x.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{DesignOptions, Method, Topology, design};

    /// The number of steps after which each start arrives on its own, in the order in which they are drawn.
    fn passages(node_count: usize, steps: &[MixingStep]) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let drawn = (0..MOST_STARTS).map(|_| RandomStart::draw(&mut rng, node_count, 1e-2));
        drawn.map(|start| passage(node_count, steps, vec![start], 1, FIRST_WORK).unwrap()).collect()
    }

    #[test]
    fn the_count_is_the_median_of_the_starts_and_not_the_luck_of_the_first() {
        let mut lucky = 0;
        for (expression, method) in [
            ("ring:n=9", Method::SgpUniform),
            ("grid:rows=3,cols=4", Method::DPsgd),
            ("rg:n=14,r=0.5,seed=3", Method::NguyenHe),
            ("rg:n=14,r=0.5,seed=3", Method::Matcha),
        ] {
            let plan = design(&Topology::generate(expression).unwrap(), method, &DesignOptions::default()).unwrap();
            let mut each = passages(plan.node_count(), plan.steps());
            let first = each[0];
            each.sort_unstable();
            let median = each[MOST_STARTS / 2];
            assert_eq!(steps_to_accuracy(plan.node_count(), plan.steps(), 1e-2), Some(median), "{expression} {method}");
            lucky += usize::from(5 * first < 4 * median);
        }
        assert!(lucky > 0, "the first start would have done");
    }
}
