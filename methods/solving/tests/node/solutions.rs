//! The solutions of all nodes, compared with the same problem in one place.

use std::fs;

use mingle_planner::{Medium, Method, transient};
use mingle_protocol::collective::tracking_rounds;
use mingle_solver::{MixedNode, Mixing, NidsNode, Regression, SolverNode, Standardization};
use mingle_solving::{AveragingScheme, Problem};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{NODES, coefficients, in_one_place, regression, regression_over, solve_all, tables};

#[test]
fn over_messages_nids_goes_through_the_bits_that_it_goes_through_without() {
    let folder = tempfile::tempdir().unwrap();
    let more = "standardize = false\ntolerance = 1e-15\niterations = 60\n";
    let (_, problem, communication) = regression(folder.path(), Method::CliquePhi, more);
    let solutions = solve_all(&problem, &communication);
    let AveragingScheme::Mixing(rows) = &communication.agreement else { panic!("the plan is symmetric") };
    let terms = || {
        let regression = Regression { lambda: 0.01, ..Regression::default() };
        tables(&problem)
            .into_iter()
            .map(move |table| regression.terms(&table, &Standardization::none(3), 36.0 / NODES as f64))
    };
    let smoothness = terms().map(|terms| terms.smooth.smoothness()).fold(0.0, f64::max);
    let mixing = Mixing::new(rows.to_vec()).unwrap();
    let mut nodes: Vec<NidsNode> = terms().map(|terms| NidsNode::new(terms, 1.0 / smoothness)).collect();
    for _ in 0..60 {
        let messages: Vec<Vec<f64>> = nodes.iter_mut().map(MixedNode::message).collect();
        nodes.iter_mut().enumerate().for_each(|(at, node)| node.absorb(&mixing.mix(at, &messages)));
    }
    for (solution, expected) in solutions.iter().zip(nodes.iter().map(SolverNode::solution)) {
        assert_eq!(solution.step.to_bits(), (1.0 / smoothness).to_bits());
        assert_eq!(coefficients(solution), expected);
        assert!(!solution.converged && solution.iterations == 60);
    }
}

#[test]
fn every_way_to_agree_leads_to_the_solution_in_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::DPsgd, Method::NguyenHe, Method::ExactAverage] {
        let (_, problem, communication) = regression(folder.path(), method, "");
        let solutions = solve_all(&problem, &communication);
        let mut all = tables(&problem);
        let mut whole = all.remove(0);
        all.iter().for_each(|table| whole.append(table).unwrap());
        let centered = Standardization::centering(&whole.sums());
        let scaling = centered.clone().with_deviations(&whole.squares(&centered), 36.0);
        let expected = Regression { lambda: 0.01, ..Regression::default() }.solve(&whole, &scaling, 1e-14, 100_000);
        for solution in &solutions {
            let off = coefficients(solution).iter().zip(&expected.x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{method}: {off:e}");
            assert!((solution.objective - expected.objective).abs() < 1e-12, "{method}");
            assert!(solution.certificate.kkt < 1e-8 && solution.certificate.violation < 1e-8, "{solution:?}");
        }
    }
}

/// Matrices tuned for their eigenvalues are far from normal: one period amplifies some changes, though they fall to a
/// third in the long run. The number of periods follows from a norm.
#[test]
fn plans_whose_eigenvalues_promise_more_than_their_norm_keeps_are_solved() {
    let mut beyond = 0;
    for (n, seed) in [(8, 1), (12, 1), (12, 3), (16, 2), (20, 1), (20, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let topology = format!("rg:n={n},r=0.5,seed={seed}");
        for (method, medium) in [(Method::Tuned, Medium::Broadcast), (Method::NguyenHe, Medium::PointToPoint)] {
            let (plan, problem, communication) = regression_over(folder.path(), &topology, method, medium, "");
            let AveragingScheme::Tracking { steps } = communication.agreement else {
                panic!("{topology} {method} is symmetric")
            };
            let by_eigenvalue = tracking_rounds(plan.forecast().lambda_2.unwrap()).unwrap();
            let gain = |periods: u64| transient::gain(n, plan.steps(), usize::try_from(periods).unwrap()).unwrap();
            beyond += u32::from(gain(by_eigenvalue) > 1.0);
            assert!(gain(steps) <= 0.8 && steps >= by_eigenvalue, "{topology} {method}: {steps} {}", gain(steps));
            let solutions = solve_all(&problem, &communication);
            let (whole, scaling) = in_one_place(&problem);
            let expected = Regression { lambda: 0.01, ..Regression::default() }.solve(&whole, &scaling, 1e-14, 100_000);
            for solution in &solutions {
                let pairs = coefficients(solution).into_iter().zip(&expected.x);
                let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(solution.converged && off < 1e-8, "{topology} {method}: {off:e} {solution:?}");
            }
        }
    }
    assert!(beyond >= 3, "{beyond} of the plans would be solved with the eigenvalue alone too");
}

#[test]
fn groups_nonnegativity_and_ridge_are_solved_too() {
    let folder = tempfile::tempdir().unwrap();
    for (more, zero) in [("nonnegative = true\n", 1), ("groups = [[\"a\", \"b\"], [\"c\"]]\n", 2), ("ridge = 0.1\n", 2)]
    {
        let (_, problem, communication) = regression(folder.path(), Method::CliquePhi, more);
        let solutions = solve_all(&problem, &communication);
        for solution in &solutions {
            assert!(solution.converged && solution.certificate.kkt < 1e-8, "{more}: {solution:?}");
            assert!(coefficients(solution)[zero].abs() < 0.05, "{more}: {solution:?}");
        }
    }
}

/// 100 columns, of which any two have this correlation, and 30 rows. Mixing alone ends after 20,000 iterations with a
/// violation of 1e-3 where columns are alike or lambda is small.
#[test]
fn more_columns_than_rows_are_solved_to_the_certificate_over_every_kind_of_plan() {
    for (method, alike, lambda) in [
        (Method::CliquePhi, 0.0, 0.05),
        (Method::CliquePhi, 0.0, 0.001),
        (Method::CliquePhi, 0.9, 0.001),
        (Method::CliquePhi, 0.99, 0.0001),
        (Method::NguyenHe, 0.9, 0.01),
        (Method::ExactAverage, 0.9, 0.01),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let medium = Medium::PointToPoint;
        let (plan, _, communication) = regression_over(folder.path(), "ring:n=6", method, medium, "");
        fs::write(folder.path().join("table.csv"), wide_table(alike)).unwrap();
        let path = folder.path().join("problem.toml");
        let text = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\n";
        fs::write(&path, format!("{text}lambda = {lambda}\n")).unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        let (whole, scaling) = in_one_place(&problem);
        let expected = Regression { lambda, ..Regression::default() }.solve(&whole, &scaling, 1e-12, 100_000);
        assert!(expected.optimality <= 1e-12, "{method} {alike} {lambda}: {expected:?}");
        let solutions = solve_all(&problem, &communication);
        eprintln!("{method} {alike} {lambda}: {} {:e}", solutions[0].iterations, solutions[0].certificate.kkt);
        for solution in &solutions {
            assert!(solution.converged && solution.certificate.kkt < 1e-8, "{method} {alike} {lambda}: {solution:?}");
            assert!(solution.iterations < 500, "{method} {alike} {lambda}: {}", solution.iterations);
            assert!(solution.certificate.violation < 1e-12, "{method} {alike} {lambda}: {solution:?}");
            let off = (solution.objective - expected.objective).abs();
            assert!(off < 1e-9, "{method} {alike} {lambda}: {off:e}");
        }
    }
}

fn wide_table(alike: f64) -> String {
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let mut draw = || (0..12).map(|_| dice.random_range(-0.5..0.5)).sum::<f64>();
    let names: Vec<String> = (0..100).map(|column| format!("c{column}")).collect();
    let mut table = format!("{},y\n", names.join(","));
    for _ in 0..30 {
        let shared = alike.sqrt() * draw();
        let row: Vec<f64> = names.iter().map(|_| shared + (1.0 - alike).sqrt() * draw()).collect();
        row.iter().for_each(|value| table += &format!("{value},"));
        table += &format!("{}\n", row[0] - 2.0 * row[1] + 0.5 * row[2] + 0.1 * draw());
    }
    table
}
