//! All nodes of a plan in one process: the network changes how long a solution takes, not the solution.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_lab::solving::{Conditions, Solved, SwarmError, solve_here};
use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_solving::{AveragingScheme, CommunicationPlan, Problem, SolveError, schedule};

/// A regression over nodes with a few rows each of one table, and its communication.
fn regression(folder: &Path, topology: &str, method: Method) -> (Problem, CommunicationPlan) {
    let mut table = "a,b,c,y\n".to_owned();
    for row in 0_u32..36 {
        let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        table += &format!("{a},{b},{c},{}\n", 2.0 * a - b + 0.05 * f64::from(row % 5));
    }
    fs::write(folder.join("table.csv"), table).unwrap();
    let path = folder.join("problem.toml");
    let text = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.01\n";
    fs::write(&path, text).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let topology = Topology::generate(topology).unwrap();
    let plan = mingle_planner::design(&topology, method, &options).unwrap();
    let communication = CommunicationPlan::of(&plan, Arc::new(schedule(&plan).unwrap())).unwrap();
    (Problem::read(&path, &plan).unwrap(), communication)
}

#[test]
fn losses_and_delays_change_how_long_it_takes_and_no_bit_of_the_solutions() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::NguyenHe] {
        let (problem, communication) = regression(folder.path(), "rg:n=6,r=0.6,seed=1", method);
        let communication = Arc::new(communication);
        let solve = |loss, seed| {
            solve_here(&problem, &communication, Conditions { loss, seed, ..Conditions::default() }, |_, _| {}).unwrap()
        };
        let undisturbed: Solved = solve(0.0, 0);
        assert_eq!(undisturbed.lost, 0);
        for (loss, seed) in [(0.0, 7), (0.2, 0), (0.2, 1)] {
            let disturbed = solve(loss, seed);
            assert_eq!(disturbed.solutions, undisturbed.solutions, "{method}, loss {loss}, seed {seed}");
            assert_eq!(disturbed.residuals, undisturbed.residuals, "{method}, loss {loss}, seed {seed}");
            assert_ne!(disturbed.virtual_s, undisturbed.virtual_s, "{method}, loss {loss}, seed {seed}");
            assert_eq!(disturbed.lost > 0, loss > 0.0, "{method}, loss {loss}, seed {seed}");
            let again = solve(loss, seed);
            assert_eq!((again.messages, again.lost), (disturbed.messages, disturbed.lost), "{method}, seed {seed}");
        }
    }
}

#[test]
fn an_iteration_that_diverges_ends_with_the_error_of_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, communication) = regression(folder.path(), "rg:n=8,r=0.5,seed=1", Method::NguyenHe);
    // The roughest averages: one step an iteration.
    let communication =
        Arc::new(CommunicationPlan { agreement: AveragingScheme::Tracking { steps: 1 }, ..communication });
    let mut last = 0;
    let failed = solve_here(&problem, &communication, Conditions::default(), |iteration, _| last = iteration);
    let Err(SwarmError::Solve(SolveError::Diverged { iteration, .. })) = failed else { panic!("it does not diverge") };
    assert!(iteration <= 500 && last <= iteration, "{iteration} {last}");
}
