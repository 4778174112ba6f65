//! Running a plan's matrices: how many steps until the nodes agree.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::plan::Step;

/// Seed of the starting values: part of what the forecast means, so that everyone computes the same one.
const SEED: u64 = 0x006d_696e_676c_6531;

/// The most multiplications spent before giving up.
const WORK_LIMIT: usize = 300_000_000;

/// Push-sum without gradients: after how many steps, the period repeated as often as it takes, the estimates `z = x / w`
/// are for the first time, in root mean square, within `accuracy` times their first distance from the average.
///
/// Starts from independent uniform values of a fixed seed and from `w = 1`. `None` if it takes more than 3e8
/// multiplications. Uses additions, multiplications, divisions and square roots only: the same answer on every machine.
#[must_use]
pub fn steps_to_accuracy(node_count: usize, steps: &[Step], accuracy: f64) -> Option<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut x: Vec<f64> = (0..node_count).map(|_| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).collect();
    let mut w = vec![1.0; node_count];
    let average = x.iter().sum::<f64>() / node_count as f64;
    let target = accuracy * error(&x, &w, average);
    let mut scratch = vec![0.0; node_count];
    // Nodes without mass, whose estimates are infinitely far off.
    let (mut without_mass, mut work) = (0, 0);
    for period in 0.. {
        for (number, step) in steps.iter().enumerate() {
            // As long as a node has no mass, there is no error to compute.
            work += 2 * if without_mass == 0 { node_count + step.links().len() } else { step.work() };
            if work > WORK_LIMIT {
                return None;
            }
            let mut is_empty: Vec<usize> = step.changed().filter(|&node| w[node] <= 0.0).collect();
            without_mass -= distinct(&mut is_empty);
            step.mix(&mut x, &mut scratch);
            step.mix(&mut w, &mut scratch);
            let mut is_empty: Vec<usize> = step.changed().filter(|&node| w[node] <= 0.0).collect();
            without_mass += distinct(&mut is_empty);
            if without_mass == 0 && error(&x, &w, average) <= target {
                return Some(period * steps.len() + number + 1);
            }
        }
    }
    None
}

/// How many different nodes are listed.
fn distinct(nodes: &mut Vec<usize>) -> usize {
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
