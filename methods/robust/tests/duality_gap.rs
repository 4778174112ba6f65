//! The duality gap of the method, compared with the whole problem as one cone program, and the set of weights as a place.
#![allow(clippy::unwrap_used)]

mod instances;

use instances::{BOX, hinge, patients, small_unequal};
use mingle_robust::{
    LinearSamples, Linearisation, Loss, LpmmLimits, Penalty, RobustLoss, RobustProblem, SiteSamples, SiteWeights,
    WeightNorm, solve_by_lpmm, solve_directly,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: u64 = 40;
const TOLERANCE: f64 = 1e-4;
const LIMITS: LpmmLimits = LpmmLimits { tolerance: TOLERANCE, iterations: 2_000 };
/// The accuracy of a cone program.
const ROUNDING: f64 = 1e-7;

/// Runs the method with its defaults, and holds its end against the cone program. Returns the iterations.
fn ends_within_its_gap(name: &str, problem: &RobustProblem) -> u64 {
    let judge = solve_directly(problem).unwrap();
    let scale = problem.scale().unwrap().loss;
    // A gap of at most 1e-4, also where the losses are larger than 1.
    let limits = LpmmLimits { tolerance: TOLERANCE / scale.max(1.0), ..LIMITS };
    let found = solve_by_lpmm(problem, Penalty::default(), limits).unwrap();
    let (gap, end) = (found.gap.gap(), found.iterations);
    let name = format!("{name}: gap {gap:e} after {end}, value {} bound {}", found.gap.value, found.gap.bound);
    assert!(found.converged && end <= LIMITS.iterations && gap <= TOLERANCE, "{name} scale {scale}");
    // The value is that of a model, and so not below the optimum.
    assert!(found.gap.value >= judge.value - ROUNDING, "{name}: {}", judge.value);
    assert!(found.gap.value - judge.value <= gap + ROUNDING, "{name}: {}", judge.value);
    assert!(found.gap.bound <= judge.value + ROUNDING, "{name}: {}", judge.value);
    let losses: Vec<f64> = problem
        .sites
        .iter()
        .map(|site| problem.robust.worst_loss(&found.model, &site.samples, site.radius).unwrap())
        .collect();
    assert!((problem.weights.worst(&losses).1 - found.gap.value).abs() < 1e-12, "{name}");
    end
}

#[test]
fn small_cases_of_all_losses_and_supports_at_unequal_sites_end_with_a_gap_that_holds_the_optimum() {
    for case in 0..CASES {
        ends_within_its_gap(&format!("case {case}"), &small_unequal(case));
    }
}

#[test]
#[ignore = "needs ../shared/data"]
fn published_patients_at_four_unequal_sites_end_within_the_usual_limits() {
    for seed in 0..3 {
        for theta in [0.0, 0.1] {
            let problem = patients(seed, theta).unwrap();
            let end = ends_within_its_gap(&format!("seed {seed} theta {theta}"), &problem);
            println!("seed {seed}, theta {theta}: {end} iterations");
        }
    }
}

#[test]
fn the_paper_s_own_iteration_has_a_gap_that_holds_the_optimum_too() {
    let problem = hinge(1);
    let judge = solve_directly(&problem).unwrap().value;
    for linearisation in [Linearisation::Least, Linearisation::Paper] {
        let gaps = [10, 50, 200, 400].map(|iterations| {
            let limits = LpmmLimits { tolerance: -1.0, iterations };
            let gap = solve_by_lpmm(&problem, Penalty::constant(0.1, linearisation), limits).unwrap().gap;
            assert!(gap.bound <= judge + ROUNDING && gap.value >= judge - ROUNDING, "{iterations}: {gap:?} {judge}");
            gap.gap()
        });
        assert!(gaps[3] < 0.1 * gaps[0], "{linearisation:?}: {gaps:?}");
    }
}

#[test]
fn data_in_other_units_take_as_many_iterations() {
    let problem = instances::regression(1);
    let Loss::Huber { epsilon } = problem.robust.loss else { panic!() };
    let mut scaled = problem.clone();
    // Targets a thousand times as large, with the bend where it was among them: the losses are 1e6 times as large.
    scaled.robust.loss = Loss::Huber { epsilon: 1e3 * epsilon };
    for site in &mut scaled.sites {
        let columns = site.samples.columns();
        let (values, targets): (Vec<Vec<f64>>, Vec<f64>) =
            site.samples.rows().map(|(row, target)| (row.to_vec(), 1e3 * target)).unzip();
        site.samples = LinearSamples::new(columns, columns, values.concat(), targets).unwrap();
    }
    scaled.robust.kappa /= 1e3;
    problem.robust.check(6).unwrap();
    let found = [&problem, &scaled].map(|problem| solve_by_lpmm(problem, Penalty::default(), LIMITS).unwrap());
    assert!(found.iter().all(|found| found.converged), "{} {}", found[0].iterations, found[1].iterations);
    assert!(found[1].iterations <= 2 * found[0].iterations + 20, "{} {}", found[0].iterations, found[1].iterations);
}

/// A random point of a set of weights: nominal ones, moved towards a random distribution as far as is allowed.
fn random_weights(dice: &mut ChaCha8Rng, set: &SiteWeights) -> Vec<f64> {
    let raw: Vec<f64> = set.nominal().iter().map(|_| -dice.random_range(1e-9_f64..1.0).ln()).collect();
    let sum: f64 = raw.iter().sum();
    set.nearest(&raw.iter().map(|value| value / sum).collect::<Vec<_>>())
}

#[test]
fn the_nearest_and_the_worst_weights_are_those_of_the_set() {
    let mut dice = ChaCha8Rng::seed_from_u64(3);
    for case in 0..300 {
        let sites = 1 + case % 7;
        let raw: Vec<f64> = (0..sites).map(|_| dice.random_range(0.05..1.0)).collect();
        let sum: f64 = raw.iter().sum();
        let nominal: Vec<f64> = raw.iter().map(|value| value / sum).collect();
        let theta = [0.0, 0.02, 0.2, 0.7, 3.0][dice.random_range(0..5_usize)];
        for norm in [WeightNorm::One, WeightNorm::Two, WeightNorm::Infinity] {
            let set = SiteWeights::new(nominal.clone(), theta, norm).unwrap();
            let name = format!("case {case} {norm:?} theta {theta}");
            let is_in = |weights: &[f64]| {
                let apart = weights.iter().zip(&nominal).map(|(weight, nominal)| (weight - nominal).abs());
                let distance = match norm {
                    WeightNorm::One => apart.sum(),
                    WeightNorm::Two => apart.map(|apart| apart * apart).sum::<f64>().sqrt(),
                    WeightNorm::Infinity => apart.fold(0.0, f64::max),
                };
                let is_distribution = weights.iter().all(|weight| *weight >= 0.0);
                is_distribution && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && distance <= theta + 1e-12
            };
            let x: Vec<f64> = (0..sites).map(|_| dice.random_range(-1.0..1.5)).collect();
            let (nearest, (worst, mean)) = (set.nearest(&x), set.worst(&x));
            assert!(is_in(&nearest) && is_in(&worst), "{name}: {nearest:?} {worst:?}");
            let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            // The nearest point is the one from which no point of the set is in the direction of x.
            let off: Vec<f64> = x.iter().zip(&nearest).map(|(x, nearest)| x - nearest).collect();
            assert!(set.worst(&off).1 - product(&off, &nearest) <= 1e-9, "{name}: {x:?} {nearest:?}");
            for _ in 0..20 {
                let other = random_weights(&mut dice, &set);
                assert!(is_in(&other) && product(&other, &x) <= mean + 1e-9, "{name}: {x:?} {worst:?} {other:?}");
            }
        }
    }
}

#[test]
fn the_worst_weights_are_those_of_a_cone_program_with_samples_of_those_losses() {
    // Sites of one constant sample: no model changes a loss, so the program maximises over the weights alone.
    let losses = [0.9, 0.2, 0.5, 0.7];
    for norm in [WeightNorm::One, WeightNorm::Two, WeightNorm::Infinity] {
        for theta in [0.05, 0.3, 0.8] {
            let set = SiteWeights::new(vec![0.4, 0.3, 0.2, 0.1], theta, norm).unwrap();
            let sites = losses.map(|loss| SiteSamples {
                samples: LinearSamples::new(1, 1, vec![0.0], vec![loss + 0.1]).unwrap(),
                radius: 0.0,
            });
            let robust = RobustLoss { loss: Loss::EpsilonInsensitive { epsilon: 0.1 }, support: BOX, kappa: 1.0 };
            let problem = RobustProblem { robust, sites: sites.to_vec(), weights: set.clone() };
            let judge = solve_directly(&problem).unwrap().value;
            assert!((set.worst(&losses).1 - judge).abs() < 1e-7, "{norm:?} {theta}: {} {judge}", set.worst(&losses).1);
        }
    }
}
