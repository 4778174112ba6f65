//! Random problems.
#![allow(dead_code, clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use mingle_robust::{
    HalfSpace, LinearSamples, Loss, RobustLoss, RobustProblem, SiteSamples, SiteWeights, Support, WeightNorm,
};
use rand::seq::SliceRandom;
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

/// Support constraints of the random cases.
#[derive(Clone, Copy)]
enum Kind {
    Unbounded,
    Box,
    Polyhedron,
}

/// The half-spaces of a box, and one across it.
fn polyhedron(columns: usize, target: f64) -> Support {
    let faces = (0..columns).flat_map(|column| {
        [1.0, -1.0].map(|sign| {
            let mut coefficients = vec![0.0; columns];
            coefficients[column] = sign;
            HalfSpace { coefficients, target: 0.0, bound: 1.0 }
        })
    });
    let across = HalfSpace { coefficients: vec![1.0; columns], target, bound: columns as f64 + 4.0 };
    Support::Polyhedron(faces.chain([across]).collect())
}

/// A random small case: any loss with any support it allows, 2 to 6 sites of 3 to 60 samples, 2 to 8 columns.
pub(crate) fn small_unequal(case: u64) -> RobustProblem {
    let kinds = [
        (Loss::Hinge, Kind::Unbounded),
        (Loss::Hinge, Kind::Box),
        (Loss::Hinge, Kind::Polyhedron),
        (Loss::SmoothHinge, Kind::Unbounded),
        (Loss::Logistic, Kind::Unbounded),
        (Loss::Huber { epsilon: 0.5 }, Kind::Unbounded),
        (Loss::Huber { epsilon: 1.35 }, Kind::Unbounded),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, Kind::Unbounded),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, Kind::Box),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, Kind::Polyhedron),
        (Loss::Pinball { epsilon: 0.3 }, Kind::Unbounded),
        (Loss::Pinball { epsilon: 0.3 }, Kind::Box),
        (Loss::Pinball { epsilon: 0.7 }, Kind::Polyhedron),
    ];
    let dice = &mut ChaCha8Rng::seed_from_u64(1_000 + case);
    let (loss, kind) = kinds[case as usize % kinds.len()];
    let columns = dice.random_range(2..9_usize);
    let sites = dice.random_range(2..7_usize);
    let has_intercept = dice.random_bool(0.5);
    let rule: Vec<f64> = (0..columns).map(|_| dice.random_range(-1.0..1.0)).collect();
    let is_classification = loss.is_classification();
    let support = match kind {
        Kind::Unbounded => Support::Unbounded,
        Kind::Box => BOX,
        Kind::Polyhedron => polyhedron(columns, if is_classification { 0.0 } else { 0.5 }),
    };
    let radius = [0.0, 0.005, 0.05, 0.2][dice.random_range(0..4_usize)];
    let theta = [0.0, 0.05, 0.3, 2.0][dice.random_range(0..4_usize)];
    let norm = [WeightNorm::One, WeightNorm::Two, WeightNorm::Infinity][dice.random_range(0..3_usize)];
    let kappa = [0.3, 1.0, f64::INFINITY][dice.random_range(0..3_usize)];
    let mut site = |_| {
        let size = [3, 5, 8, 15, 30, 60][dice.random_range(0..6_usize)];
        let shift = dice.random_range(-0.3..0.3);
        let (mut values, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..size {
            let sample: Vec<f64> = (0..columns).map(|_| dice.random_range(-1.0..1.0)).collect();
            let product: f64 = sample.iter().zip(&rule).map(|(x, w)| x * w).sum();
            let said = product + shift + dice.random_range(-0.5..0.5);
            let label = if said > 0.0 { 1.0 } else { -1.0 };
            targets.push(if is_classification { label } else { said });
            values.extend(sample.into_iter().chain(has_intercept.then_some(1.0)));
        }
        let samples = LinearSamples::new(columns + usize::from(has_intercept), columns, values, targets).unwrap();
        SiteSamples { samples, radius }
    };
    let sites: Vec<SiteSamples> = (0..sites).map(&mut site).collect();
    let counts: Vec<f64> = sites.iter().map(|site| site.samples.count() as f64).collect();
    let all: f64 = counts.iter().sum();
    let equal = vec![1.0 / counts.len() as f64; counts.len()];
    let nominal = if dice.random_bool(0.5) { equal } else { counts.iter().map(|count| count / all).collect() };
    let weights = SiteWeights::new(nominal, theta, norm).unwrap();
    RobustProblem { robust: RobustLoss { loss, support, kappa }, sites, weights }
}

/// 75 patients of the breast cancer data of Wisconsin, 6 columns from -1 to 1 and an intercept, at sites of 40, 20, 10
/// and 5; drawn by a seed, the first ones with seed 0. `None` where the data are not at hand.
pub(crate) fn patients(seed: u64, theta: f64) -> Option<RobustProblem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/tables/wdbc.data");
    let text = fs::read_to_string(path).ok()?;
    let mut rows: Vec<(Vec<f64>, f64)> = text
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2..8].iter().map(|cell| cell.parse().unwrap()).collect(), if cells[1] == "B" { 1.0 } else { -1.0 })
        })
        .collect();
    if seed > 0 {
        rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    }
    rows.truncate(75);
    for column in 0..6 {
        let least = rows.iter().map(|row| row.0[column]).fold(f64::INFINITY, f64::min);
        let most = rows.iter().map(|row| row.0[column]).fold(f64::NEG_INFINITY, f64::max);
        rows.iter_mut().for_each(|row| row.0[column] = 2.0 * (row.0[column] - least) / (most - least) - 1.0);
    }
    let mut rest = rows.as_slice();
    let sites = [40, 20, 10, 5].map(|size| {
        let (own, others) = rest.split_at(size);
        rest = others;
        let values = own.iter().flat_map(|(row, _)| row.iter().copied().chain([1.0])).collect();
        let labels = own.iter().map(|row| row.1).collect();
        SiteSamples { samples: LinearSamples::new(7, 6, values, labels).unwrap(), radius: 0.05 }
    });
    Some(RobustProblem {
        robust: RobustLoss { loss: Loss::Hinge, support: Support::Unbounded, kappa: 1.0 },
        sites: sites.to_vec(),
        weights: SiteWeights::new(vec![0.25; 4], theta, WeightNorm::Two).unwrap(),
    })
}
