//! Random problems.

use mingle_robust::{LinearSamples, Loss, RobustLoss, RobustProblem, SiteSamples, SiteWeights, Support, WeightNorm};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const BOX: Support = Support::Box { lower: -1.0, upper: 1.0 };
pub(crate) const UNIT: Support = Support::Box { lower: 0.0, upper: 1.0 };

/// Sites of these sizes whose samples follow one linear rule, with a shift of each site and noise.
pub(crate) fn instance<const SITES: usize>(
    loss: Loss,
    support: Support,
    seed: u64,
    sizes: [usize; SITES],
    columns: usize,
) -> RobustProblem {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let (lower, upper) = match support {
        Support::Box { lower, upper } => (lower, upper),
        _ => (-1.0, 1.0),
    };
    let rule: Vec<f64> = (0..columns).map(|_| dice.random_range(-1.0..1.0)).collect();
    let sites = sizes.map(|size| {
        let (mut values, mut targets) = (Vec::new(), Vec::new());
        let shift = dice.random_range(-0.2..0.2);
        for _ in 0..size {
            let sample: Vec<f64> = (0..columns).map(|_| dice.random_range(lower..upper)).collect();
            let said: f64 =
                sample.iter().zip(&rule).map(|(x, w)| x * w).sum::<f64>() + shift + dice.random_range(-0.4..0.4);
            targets.push(if loss.is_classification() { if said > 0.0 { 1.0 } else { -1.0 } } else { said });
            values.extend(sample);
        }
        SiteSamples { samples: LinearSamples::new(columns, columns, values, targets).unwrap(), radius: 0.02 }
    });
    let weights = SiteWeights::new(vec![1.0 / SITES as f64; SITES], 0.1, WeightNorm::Two).unwrap();
    RobustProblem { robust: RobustLoss { loss, support, kappa: 0.5 }, sites: sites.to_vec(), weights }
}

/// Three sites with 40 samples of 6 columns each.
pub(crate) fn hinge(seed: u64) -> RobustProblem {
    instance(Loss::Hinge, BOX, seed, [40; 3], 6)
}

/// Three sites of a regression with the Huber loss, of the same sizes.
pub(crate) fn regression(seed: u64) -> RobustProblem {
    instance(Loss::Huber { epsilon: 0.5 }, Support::Unbounded, seed, [40; 3], 6)
}

/// The largest difference.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}
