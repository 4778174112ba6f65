//! The method compared with the whole problem as one cone program, and properties of both.
#![allow(clippy::unwrap_used)]

mod instances;

use instances::{BOX, UNIT, distance, hinge, instance, regression};
use mingle_robust::{
    DataScale, HalfSpace, LinearSamples, Linearisation, Loss, LpmmLimits, Outside, Penalty, RobustError, RobustLoss,
    RobustProblem, SharedState, Site, SiteIteration, SiteTarget, SiteWeights, Steering, Support, WeightNorm,
    aggregate_then_robustify, project_on_ball, solve_by_lpmm, solve_directly,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const NORMS: [WeightNorm; 3] = [WeightNorm::One, WeightNorm::Two, WeightNorm::Infinity];

fn run(problem: &RobustProblem, linearisation: Linearisation, iterations: u64) -> mingle_robust::LpmmSolution {
    run_with(problem, 0.1, linearisation, iterations)
}

fn run_with(
    problem: &RobustProblem,
    c: f64,
    linearisation: Linearisation,
    iterations: u64,
) -> mingle_robust::LpmmSolution {
    // The tolerance cannot be reached, so all iterations are done.
    let penalty = Penalty::constant(c, linearisation);
    solve_by_lpmm(problem, penalty, LpmmLimits { tolerance: -1.0, iterations }).unwrap()
}

/// The same problem with the box as half-spaces, which take the paper's multipliers.
fn as_polyhedron(problem: &RobustProblem) -> RobustProblem {
    let Support::Box { lower, upper } = problem.robust.support else { panic!("no box") };
    let columns = problem.sites[0].samples.movable();
    let spaces = (0..columns).flat_map(|column| {
        [(1.0, upper), (-1.0, -lower)].map(|(sign, bound)| {
            let mut coefficients = vec![0.0; columns];
            coefficients[column] = sign;
            HalfSpace { coefficients, target: 0.0, bound }
        })
    });
    let mut other = problem.clone();
    other.robust.support = Support::Polyhedron(spaces.collect());
    other
}

#[test]
fn two_slacks_a_column_are_worth_as_much_as_multipliers_for_each_sample() {
    let losses = [Loss::Hinge, Loss::EpsilonInsensitive { epsilon: 0.1 }, Loss::Pinball { epsilon: 0.3 }];
    for seed in 0..3 {
        for support in [BOX, UNIT] {
            for loss in losses {
                let mut problem = instance(loss, support.clone(), seed, [12, 9], 4);
                problem.sites.iter_mut().for_each(|site| site.radius = [0.01, 0.05, 0.2][seed as usize]);
                let other = as_polyhedron(&problem);
                let (reduced, paper) = (solve_directly(&problem).unwrap(), solve_directly(&other).unwrap());
                let name = format!("{loss:?} {support:?} seed {seed}: {} {}", reduced.value, paper.value);
                assert!((reduced.value - paper.value).abs() < 1e-6, "{name}");
                // The worst loss of a model agrees too, by a search and by a linear program.
                for (site, of_other) in problem.sites.iter().zip(&other.sites) {
                    let search = problem.robust.worst_loss(&reduced.model, &site.samples, site.radius).unwrap();
                    let program = other.robust.worst_loss(&reduced.model, &of_other.samples, site.radius).unwrap();
                    assert!((search - program).abs() < 1e-7, "{name}: {search} {program}");
                }
            }
        }
    }
}

#[test]
fn the_worst_weights_are_worth_what_the_dual_says() {
    for norm in NORMS {
        for theta in [0.0, 0.05, 0.3, 3.0] {
            let mut problem = hinge(2);
            problem.weights = SiteWeights::new(vec![0.5, 0.3, 0.2], theta, norm).unwrap();
            let found = solve_directly(&problem).unwrap();
            let (weights, worst) = problem.weights.worst(&found.worst_losses);
            assert!((worst - found.value).abs() < 1e-6, "{norm:?} {theta}: {worst} {}", found.value);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-8 && weights.iter().all(|weight| *weight > -1e-8));
        }
    }
}

#[test]
fn projections_are_the_nearest_points_of_their_balls() {
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let length = |norm, x: &[f64]| match norm {
        WeightNorm::One => x.iter().map(|x| x.abs()).sum::<f64>(),
        WeightNorm::Two => x.iter().map(|x| x * x).sum::<f64>().sqrt(),
        WeightNorm::Infinity => x.iter().map(|x| x.abs()).fold(0.0, f64::max),
    };
    for case in 0..200 {
        let x: Vec<f64> = (0..1 + case % 7).map(|_| dice.random_range(-2.0..2.0)).collect();
        let radius = dice.random_range(0.0..2.0);
        for norm in NORMS {
            let nearest = project_on_ball(norm, &x, radius);
            assert!(length(norm, &nearest) <= radius + 1e-12, "{norm:?} {x:?} {radius}");
            // The nearest point is the one from which no point of the ball is in the direction of x:
            // max over y in the ball of <x - p, y - p> = radius ||x - p||_* - <x - p, p> = 0.
            let off: Vec<f64> = x.iter().zip(&nearest).map(|(x, p)| x - p).collect();
            let inner: f64 = off.iter().zip(&nearest).map(|(off, p)| off * p).sum();
            assert!(radius * length(norm.dual(), &off) - inner <= 1e-10, "{norm:?} {x:?} {radius}");
        }
    }
}

#[test]
fn the_method_finds_the_value_and_the_model_of_the_cone_program() {
    let problem = hinge(1);
    let judge = solve_directly(&problem).unwrap();
    let off = |found: &mingle_robust::LpmmSolution| (found.state.value() - judge.value).abs() / judge.value;
    assert!(off(&run(&problem, Linearisation::Least, 200)) < 1e-4);
    assert!(off(&run(&problem, Linearisation::Paper, 300)) < 1e-4);
    let found = run(&problem, Linearisation::Least, 400);
    assert!(off(&found) < 1e-6, "{} {}", found.state.value(), judge.value);
    assert!(distance(&found.model, &judge.model) < 1e-4, "{:?} {:?}", found.model, judge.model);
    assert_eq!(found.failures, 0);
    // With this seed the loss is flat around its least value, and models 0.01 apart have nearly the same worst loss. So
    // the worst losses are compared.
    let flat = hinge(0);
    let (judge_of_flat, found_of_flat) = (solve_directly(&flat).unwrap(), run(&flat, Linearisation::Least, 400));
    let worst =
        |site: &mingle_robust::SiteSamples| flat.robust.worst_loss(&found_of_flat.model, &site.samples, site.radius);
    let losses: Vec<f64> = flat.sites.iter().map(|site| worst(site).unwrap()).collect();
    let worth = flat.weights.worst(&losses).1;
    assert!((worth - judge_of_flat.value).abs() < 1e-6, "{worth} {}", judge_of_flat.value);
    // The multipliers are the worst weights.
    let (zeta, minus_sigma) = found.state.weights();
    assert!(distance(zeta, &judge.weights) < 1e-3 && distance(&minus_sigma, &judge.weights) < 1e-3);
    assert!(distance(found.state.worst_losses(), &judge.worst_losses) < 1e-4);
}

#[test]
fn it_stops_by_its_gap_near_the_solution() {
    let problem = hinge(1);
    let judge = solve_directly(&problem).unwrap();
    let limits = LpmmLimits { tolerance: 1e-5, iterations: 5000 };
    let found = solve_by_lpmm(&problem, Penalty::default(), limits).unwrap();
    assert!(found.converged && found.iterations < 1000, "{}", found.iterations);
    assert!(found.gap.gap() <= 1e-5 && (found.gap.value - judge.value).abs() <= 1e-5, "{:?}", found.gap);
}

#[test]
fn every_loss_has_the_value_of_its_cone_program() {
    let polyhedron = |target| {
        let space =
            |coefficients: [f64; 3], target, bound| HalfSpace { coefficients: coefficients.to_vec(), target, bound };
        Support::Polyhedron(vec![
            space([1.0, 1.0, 0.0], 0.0, 2.5),
            space([-1.0, 0.5, 1.0], target, 5.0),
            space([0.0, -1.0, -1.0], 0.0, 2.5),
        ])
    };
    let cases = [
        (Loss::Hinge, Support::Unbounded),
        (Loss::Hinge, UNIT),
        (Loss::Hinge, polyhedron(0.0)),
        (Loss::SmoothHinge, Support::Unbounded),
        (Loss::Logistic, Support::Unbounded),
        (Loss::Huber { epsilon: 0.5 }, Support::Unbounded),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, Support::Unbounded),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, BOX),
        (Loss::EpsilonInsensitive { epsilon: 0.1 }, polyhedron(0.5)),
        (Loss::Pinball { epsilon: 0.3 }, BOX),
        (Loss::Pinball { epsilon: 0.3 }, Support::Unbounded),
    ];
    for (loss, support) in cases {
        let problem = instance(loss, support.clone(), 3, [20, 14], 3);
        let judge = solve_directly(&problem).unwrap();
        // Squared residuals and quantiles are small where a hinge is about 1, and need a larger penalty.
        let c = if loss.is_classification() { 0.1 } else { 1.0 };
        let found = run_with(&problem, c, Linearisation::Least, 400);
        let name = format!("{loss:?} {support:?}: {} {}", found.state.value(), judge.value);
        assert!((found.state.value() - judge.value).abs() < 2e-6, "{name}");
        // Each site's evaluation of the model equals that of the program, by whichever method.
        for (site, expected) in problem.sites.iter().zip(&judge.worst_losses) {
            let worst = problem.robust.worst_loss(&judge.model, &site.samples, site.radius).unwrap();
            assert!((worst - expected).abs() < 1e-6, "{name}: {worst} {expected}");
            assert!(worst >= problem.robust.nominal(&judge.model, &site.samples) - 1e-12, "{name}");
        }
    }
}

/// The values of a sample, and its label.
type Labelled = (Vec<f64>, f64);

/// A change of a sample by the adversary.
struct Change {
    row: usize,
    to: Labelled,
    cost: f64,
}

#[test]
fn no_distribution_in_reach_is_worse_than_the_worst_loss() {
    // Samples are moved and labels changed at random as far as the mean cost allows: none may beat the bound.
    let mut dice = ChaCha8Rng::seed_from_u64(4);
    let problem = hinge(5);
    let (site, model) = (&problem.sites[0], solve_directly(&problem).unwrap().model);
    let (radius, kappa) = (0.3, problem.robust.kappa);
    let worst = problem.robust.worst_loss(&model, &site.samples, radius).unwrap();
    let (columns, rows) = (site.samples.columns(), site.samples.rows().collect::<Vec<_>>());
    let loss_of = |changed: &[(Vec<f64>, f64)]| {
        let (values, labels): (Vec<Vec<f64>>, Vec<f64>) = changed.iter().cloned().unzip();
        problem.robust.nominal(&model, &LinearSamples::new(columns, columns, values.concat(), labels).unwrap())
    };
    // Candidates with the most gain for each unit of cost: moving the column with the largest coefficient the adverse
    // way, or changing the label.
    let strongest = (0..columns).max_by(|&a, &b| model[a].abs().total_cmp(&model[b].abs())).unwrap();
    let moved = |sample: &[f64], label: f64, column: usize| {
        let mut moved = sample.to_vec();
        moved[column] = if model[column] * label > 0.0 { -1.0 } else { 1.0 };
        (moved, label)
    };
    let changes = |row: usize, column: usize| {
        let (sample, label) = rows[row];
        let there = moved(sample, label, column);
        let cost = (there.0[column] - sample[column]).abs();
        [(there, cost), ((sample.to_vec(), -label), kappa)]
    };
    let budget = radius * rows.len() as f64;
    let spend = |order: &[Change]| {
        let mut changed: Vec<Labelled> = rows.iter().map(|(sample, label)| (sample.to_vec(), *label)).collect();
        let (mut spent, mut touched) = (0.0, vec![false; rows.len()]);
        for Change { row, to, cost } in order {
            if spent + cost <= budget && !std::mem::replace(&mut touched[*row], true) {
                changed[*row] = to.clone();
                spent += cost;
            }
        }
        loss_of(&changed)
    };
    for _ in 0..500 {
        let at_random = (0..rows.len()).map(|_| {
            let row = dice.random_range(0..rows.len());
            let (to, cost) = changes(row, dice.random_range(0..columns))[dice.random_range(0..2)].clone();
            Change { row, to, cost }
        });
        let loss = spend(&at_random.collect::<Vec<_>>());
        assert!(loss <= worst + 1e-12, "{loss} {worst}");
    }
    // The most gainful changes first come near the bound. The bound may also split samples and move several columns of
    // one.
    let hinge_of = |(sample, label): &Labelled| {
        (1.0 - label * sample.iter().zip(&model).map(|(x, w)| x * w).sum::<f64>()).max(0.0)
    };
    let gain_by_cost = |change: &Change| {
        let (sample, label) = rows[change.row];
        (hinge_of(&change.to) - hinge_of(&(sample.to_vec(), label))) / change.cost.max(1e-9)
    };
    let mut order: Vec<Change> =
        (0..rows.len()).flat_map(|row| changes(row, strongest).map(|(to, cost)| Change { row, to, cost })).collect();
    order.sort_by(|a, b| gain_by_cost(b).total_cmp(&gain_by_cost(a)));
    let greedy = spend(&order);
    let nominal = problem.robust.nominal(&model, &site.samples);
    assert!(greedy <= worst + 1e-12 && greedy > nominal + 0.99 * (worst - nominal), "{nominal} {greedy} {worst}");
}

#[test]
fn its_limits_are_the_methods_it_generalises() {
    let problem = hinge(4);
    let value = |problem: &RobustProblem| solve_directly(problem).unwrap().value;
    let mean = |losses: Vec<f64>| {
        losses.iter().zip(problem.weights.nominal()).map(|(loss, weight)| loss * weight).sum::<f64>()
    };
    // Without either adversary: the weighted mean loss, whose least value one ball of radius 0 has too.
    let usual = value(&problem.nominal(0.0));
    let merged = aggregate_then_robustify(&problem, 0.0).unwrap();
    assert!((usual - mean(problem.losses(&merged))).abs() < 1e-6);
    // With all weights allowed: the worst site.
    for (norm, theta) in [(WeightNorm::One, 2.0), (WeightNorm::Two, 1.415), (WeightNorm::Infinity, 1.0)] {
        let mut worst = problem.nominal(theta);
        worst.weights = SiteWeights::new(problem.weights.nominal().to_vec(), theta, norm).unwrap();
        let found = solve_directly(&worst).unwrap();
        let largest = found.worst_losses.iter().copied().fold(0.0, f64::max);
        assert!((found.value - largest).abs() < 1e-5, "{norm:?}");
        // Many weights have nearly the same value where the losses of sites are nearly equal, as here: the last digits
        // converge slowly.
        let found = run_with(&worst, 0.3, Linearisation::Least, 800);
        assert!((found.state.value() - largest).abs() < 1.5e-4, "{norm:?} {} {largest}", found.state.value());
    }
    // Between both: agnostic.
    let agnostic = value(&problem.nominal(0.05));
    assert!(usual < agnostic && agnostic < value(&problem.nominal(2.0)));
    let by_method = run_with(&problem.nominal(0.0), 0.02, Linearisation::Least, 500);
    assert!((by_method.state.value() - usual).abs() < 1e-5, "{} {usual}", by_method.state.value());
}

#[test]
fn the_value_grows_with_both_radii_and_ends_where_no_model_helps() {
    let with = |radius: f64, theta| {
        let mut problem = hinge(6);
        problem.sites.iter_mut().for_each(|site| site.radius = radius);
        problem.weights = SiteWeights::new(problem.weights.nominal().to_vec(), theta, WeightNorm::Two).unwrap();
        solve_directly(&problem).unwrap()
    };
    let by_radius: Vec<f64> = [0.0, 1e-3, 1e-2, 0.05, 0.2, 1.0].map(|radius| with(radius, 0.1).value).to_vec();
    assert!(by_radius.is_sorted_by(|a, b| *a <= b + 1e-7), "{by_radius:?}");
    let by_theta: Vec<f64> = [0.0, 0.05, 0.1, 0.5, 1.5].map(|theta| with(0.02, theta).value).to_vec();
    assert!(by_theta.is_sorted_by(|a, b| *a <= b + 1e-7), "{by_theta:?}");
    let nothing = with(1.0, 0.1);
    assert!((nothing.value - 1.0).abs() < 1e-6 && nothing.model.iter().all(|value| value.abs() < 1e-4));
}

#[test]
fn the_huber_loss_converges_and_counts_the_cost_of_moving_targets() {
    let mut problem = regression(1);
    let judge = solve_directly(&problem).unwrap();
    let found = run(&problem, Linearisation::Least, 200);
    assert!((found.state.value() - judge.value).abs() < 1e-6, "{} {}", found.state.value(), judge.value);
    // With cheap targets the dual norm is 1 / kappa: radius * epsilon / kappa is added to the mean loss, whatever the
    // model.
    problem.robust.kappa = 0.01;
    let cheap = solve_directly(&problem).unwrap();
    let Loss::Huber { epsilon } = problem.robust.loss else { panic!() };
    for (site, worst) in problem.sites.iter().zip(&cheap.worst_losses) {
        let nominal = problem.robust.nominal(&cheap.model, &site.samples);
        assert!((worst - nominal - site.radius * epsilon / 0.01).abs() < 1e-6);
    }
}

#[test]
fn a_column_that_nobody_moves_costs_nothing() {
    // All labels 1: a constant column explains them at no risk, as long as labels are certain.
    let samples = LinearSamples::new(2, 1, vec![0.5, 1.0, -0.5, 1.0], vec![1.0, 1.0]).unwrap();
    let robust = RobustLoss { loss: Loss::Hinge, support: BOX, kappa: f64::INFINITY };
    let weights = SiteWeights::new(vec![1.0], 0.0, WeightNorm::Two).unwrap();
    let problem = RobustProblem { robust, sites: vec![mingle_robust::SiteSamples { samples, radius: 0.5 }], weights };
    let found = solve_directly(&problem).unwrap();
    assert!(found.value.abs() < 1e-7 && found.model[1] > 0.99, "{found:?}");
}

#[test]
fn samples_outside_the_support_are_refused_or_clipped() {
    let robust = RobustLoss { loss: Loss::Hinge, support: BOX, kappa: 1.0 };
    let mut samples = LinearSamples::new(2, 2, vec![0.0, 0.5, -1.5, 0.0, 0.2, 1.25], vec![1.0, -1.0, 1.0]).unwrap();
    let refused = robust.check_samples(&samples);
    let expected = Outside::Box { row: 1, column: 0, value: -1.5, lower: -1.0, upper: 1.0 };
    assert_eq!(refused, Err(RobustError::Outside(expected)));
    assert_eq!(samples.clip(-1.0, 1.0), 2);
    assert_eq!(robust.check_samples(&samples), Ok(()));
    let space = HalfSpace { coefficients: vec![1.0, 1.0], target: 0.0, bound: 1.0 };
    let outside = samples.check(&Support::Polyhedron(vec![space]));
    assert!(matches!(outside, Err(Outside::HalfSpace { row: 2, half_space: 0, .. })), "{outside:?}");
}

#[test]
fn what_is_no_problem_is_refused_with_its_reason() {
    let problem = hinge(0);
    let mut wrong = problem.clone();
    wrong.sites[1].radius = -0.1;
    assert_eq!(wrong.check(), Err(RobustError::Radius(-0.1)));
    wrong = problem.clone();
    wrong.robust.kappa = 0.0;
    assert_eq!(wrong.check(), Err(RobustError::Kappa(0.0)));
    wrong = problem.clone();
    wrong.robust.loss = Loss::Logistic;
    assert_eq!(wrong.check(), Err(RobustError::Support { loss: "logistic" }));
    wrong.robust = RobustLoss { loss: Loss::Pinball { epsilon: 1.0 }, ..problem.robust.clone() };
    assert!(matches!(wrong.check(), Err(RobustError::Epsilon { .. })));
    assert_eq!(SiteWeights::new(vec![0.5, 0.5], -1.0, WeightNorm::Two).err(), Some(RobustError::Theta(-1.0)));
    assert!(matches!(SiteWeights::new(vec![0.5, 0.6], 0.0, WeightNorm::Two), Err(RobustError::Weights { .. })));
    assert!(matches!(LinearSamples::new(1, 1, vec![f64::NAN], vec![1.0]), Err(RobustError::NotFinite { row: 0, .. })));
    let labels = LinearSamples::new(1, 1, vec![0.0, 0.0], vec![1.0, 0.0]).unwrap();
    assert_eq!(problem.robust.check_samples(&labels), Err(RobustError::Label { row: 1, value: 0.0 }));
}

#[test]
fn a_site_whose_worst_loss_is_allowed_solves_no_program_and_stays_where_it_is_wanted() {
    let problem = hinge(0);
    let model = vec![0.0; problem.sites[0].samples.columns()];
    let mut site =
        Site::new(&problem.robust, problem.sites[0].clone(), Steering::constant(0.1), model.clone()).unwrap();
    // The hinge loss of the zero model is 1, below what is allowed: no program is solved.
    let progress = site.advance(&model, SiteTarget { z: 2.0, zeta: 0.0 });
    assert_eq!((progress.worst, site.model()), (2.0, model.as_slice()));
    let progress = site.advance(&model, SiteTarget { z: 0.5, zeta: 0.0 });
    let worst = site.worst_loss(site.model()).unwrap();
    assert!(progress.worst < 1.0 && (worst - progress.worst).abs() < 1e-6, "{worst} {}", progress.worst);
}

#[test]
fn the_shared_state_is_a_function_of_what_it_is_told() {
    let weights = SiteWeights::new(vec![0.25; 4], 0.3, WeightNorm::One).unwrap();
    let mut states = [0, 1].map(|_| SharedState::new(weights.clone(), Penalty::default(), DataScale::ONE));
    let mut dice = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..50 {
        let mut site = || {
            let [worst, apart, moved, size, price] = [(); 5].map(|()| dice.random_range(0.0..1.0));
            SiteIteration { worst, apart, moved, size, price }
        };
        let sites: Vec<SiteIteration> = (0..4).map(|_| site()).collect();
        for state in &mut states {
            state.begin_iteration();
            state.finish_iteration(&sites);
        }
        let bits = |state: &SharedState| state.numbers().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(&states[0]), bits(&states[1]));
    }
}

#[test]
fn a_failed_subproblem_leaves_the_site_where_it_was_and_is_counted_until_one_succeeds() {
    let problem = hinge(0);
    let zero = vec![0.0; problem.sites[0].samples.columns()];
    let mut site = Site::new(&problem.robust, problem.sites[0].clone(), Steering::constant(0.1), zero.clone()).unwrap();
    let sound = site.advance(&zero, SiteTarget { z: 0.5, zeta: 0.0 });
    let before = site.model().to_vec();
    for failed in 1..=2 {
        // A target that makes the solver fail.
        let progress = site.advance(&zero, SiteTarget { z: f64::NAN, zeta: 0.0 });
        assert_eq!((progress.worst, site.model()), (sound.worst, before.as_slice()));
        let (all, in_a_row, last) = site.failures();
        assert_eq!((all, in_a_row), (failed, failed));
        assert!(matches!(last, Some(RobustError::Solver { .. })), "{last:?}");
    }
    site.advance(&zero, SiteTarget { z: 0.5, zeta: 0.0 });
    assert_eq!((site.failures().0, site.failures().1), (2, 0));
    assert!(site.model().iter().all(|value| value.is_finite()) && site.model() != before);
}

#[test]
fn a_site_whose_subproblems_fail_three_times_in_a_row_is_named() {
    let mut problem = hinge(0);
    problem.robust.support = Support::Unbounded;
    let columns = problem.sites[1].samples.columns();
    let absurd = (0..columns).map(|column| if column == 0 { 1e200 } else { -1e200 }).collect();
    problem.sites[1].samples = LinearSamples::new(columns, columns, absurd, vec![1.0]).unwrap();
    let limits = LpmmLimits { tolerance: 1e-5, iterations: 10 };
    let failure = solve_by_lpmm(&problem, Penalty::default(), limits).unwrap_err();
    assert!(matches!(failure, RobustError::Subproblem { site: 1, .. }), "{failure:?}");
    let told = failure.to_string();
    assert!(told.contains("site 1 failed 3 times in a row: scale its columns"), "{told}");
}
