//! The certificates that nodes give of their solution.

use std::fs;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_solver::Regression;
use mingle_solving::{Answer, CommunicationPlan, Problem, Solution, schedule};

use crate::support::{coefficients, in_one_place, regression, solve_all};

/// Compares the certificate of a regression with one computed from all rows in one place, after so few iterations that
/// nodes differ.
#[test]
fn the_certificate_of_a_regression_is_that_of_one_place_at_the_mean_of_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::NguyenHe] {
        for iterations in [1, 5, 20] {
            let more = format!("tolerance = 1e-15\niterations = {iterations}\n");
            let (_, problem, communication) = regression(folder.path(), method, &more);
            let solutions = solve_all(&problem, &communication);
            let models: Vec<Vec<f64>> = solutions.iter().map(coefficients).collect();
            let mean: Vec<f64> =
                (0..3).map(|at| models.iter().map(|model| model[at]).sum::<f64>() / models.len() as f64).collect();
            let (whole, scaling) = in_one_place(&problem);
            let terms =
                Regression { lambda: 0.01, ..Regression::default() }.terms(&whole, &scaling, whole.row_count() as f64);
            let mut gradient = vec![0.0; 3];
            terms.smooth.gradient(&mean, &mut gradient);
            for solution in &solutions {
                let expected = mingle_solver::optimality(&*terms.nonsmooth, &mean, &gradient, solution.step);
                let (kkt, violation) = (solution.certificate.kkt, solution.certificate.violation);
                assert!((kkt - expected).abs() <= 1e-9 * (1.0 + expected), "{method} {iterations}: {kkt} {expected}");
                assert!(iterations == 20 || kkt > 1e-3, "{method} {iterations}: {kkt}");
                let apart = models.iter().map(|model| (model[0] - models[0][0]).abs()).fold(0.0, f64::max);
                assert!(violation >= apart, "{method} {iterations}: {violation} {apart}");
            }
        }
    }
}

/// Two cliques of three that share a node. The certified violation is never less than the one that remains with the
/// best prices, and little more.
#[test]
fn the_certificate_of_budgets_says_how_far_numbers_are_from_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)];
    let topology = Topology::new((0..5).map(|node| node.to_string()).collect(), &edges).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
    let communication = Arc::new(CommunicationPlan::of(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
    for (iterations, at_least, at_most) in [(1, 1e-2, 100.0), (5, 1e-4, 100.0), (20, 0.0, 10.0), (5_000, 0.0, 1e-7)] {
        let mut text = format!(
            "kind = \"resource-allocation\"\ntolerance = 1e-12\niterations = {iterations}\n\
             [[clique]]\nname = \"a\"\nmembers = [0, 1, 2]\nbudget = 9\n\
             [[clique]]\nname = \"b\"\nmembers = [2, 3, 4]\nbudget = 3\n"
        );
        (0..5).for_each(|node| {
            text += &format!("[[node]]\nnode = {node}\nwish = {}\nweight = {}\nlower = -inf\n", node * node, node + 1);
        });
        let path = folder.path().join("budgets.toml");
        fs::write(&path, text).unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        let solutions = solve_all(&problem, &communication);
        let number = |solution: &Solution| match solution.answer {
            Answer::ResourceAllocation { number, .. } => number,
            _ => f64::NAN,
        };
        // The gradient of each node's own cost.
        let gradient = |solution: &Solution| {
            let node = solution.node as f64;
            (node + 1.0) * (number(solution) - node * node)
        };
        let left: Vec<f64> = solutions.iter().map(gradient).collect();
        let kkt = solutions[0].certificate.kkt;
        // Without bounds, the gradients of nodes 0 and 1 would have to be equal, and those of nodes 3 and 4.
        let apart = |a: f64, b: f64| (a - b).abs() / 2.0;
        let least = apart(left[0], left[1]).max(apart(left[3], left[4]));
        assert!(kkt >= least - 1e-12 && kkt >= at_least && kkt <= at_most, "{iterations}: {kkt} {least}");
    }
}
