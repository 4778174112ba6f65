//! A node's part in a problem, without any network.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology};
use mingle_protocol::{Envelope, NodeId};
use mingle_solver::{Mixing, Regression, Scaling, Table, solve};
use proptest::prelude::*;

use super::peer::{Fault, Reception, SolverPeer};
use super::problem::{Part, Problem};
use super::solution::{Answer, Solution};
use super::swarm::{Conditions, solve_here};
use super::ways::{Agreement, Ways};
use crate::plan;

const NODES: usize = 6;
const UNDISTURBED: Conditions = Conditions { loss: 0.0, seed: 0 };

/// Six nodes with a few rows each, and how they come to agree.
fn regression(folder: &Path, method: Method, more: &str) -> (Plan, Problem, Arc<Ways>) {
    let mut table = "a,b,c,y\n".to_owned();
    for row in 0_u32..36 {
        let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        table += &format!("{a},{b},{c},{}\n", 2.0 * a - b + 0.05 * f64::from(row % 5));
    }
    fs::write(folder.join("table.csv"), table).unwrap();
    let path = folder.join("problem.toml");
    let text = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.01\n";
    fs::write(&path, format!("{text}{more}")).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let topology = Topology::generate(&format!("rg:n={NODES},r=0.6,seed=1")).unwrap();
    let plan = mingle_planner::design(&topology, method, &options).unwrap();
    let problem = Problem::read(&path, &plan).unwrap();
    let ways = Arc::new(Ways::of(&plan, Arc::new(plan::schedule(&plan).unwrap())).unwrap());
    (plan, problem, ways)
}

fn coefficients(solution: &Solution) -> Vec<f64> {
    let Answer::SparseRegression { coefficients, .. } = &solution.answer else { panic!("{solution:?}") };
    coefficients.iter().map(|column| column.scaled).collect()
}

fn tables(problem: &Problem) -> Vec<Table> {
    let table = |part| if let Part::Regression { table, .. } = part { table } else { panic!("no table") };
    problem.parts().unwrap().into_iter().map(table).collect()
}

#[test]
fn over_messages_nids_goes_through_the_bits_that_it_goes_through_without() {
    let folder = tempfile::tempdir().unwrap();
    let more = "standardize = false\ntolerance = 1e-15\niterations = 60\n";
    let (_, problem, ways) = regression(folder.path(), Method::CliquePhi, more);
    let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
    let Agreement::Mixing(rows) = &ways.agreement else { panic!("the plan is symmetric") };
    let terms = || {
        let regression = Regression { lambda: 0.01, ..Regression::default() };
        tables(&problem).into_iter().map(move |table| regression.terms(&table, &Scaling::none(3), 36.0 / NODES as f64))
    };
    let smoothness = terms().map(|terms| terms.smooth.smoothness()).fold(0.0, f64::max);
    let expected = solve::nids(terms().collect(), &Mixing::new(rows.to_vec()).unwrap(), 1.0 / smoothness, 60);
    for (solution, expected) in found.solutions.iter().zip(expected) {
        assert_eq!(solution.step.to_bits(), (1.0 / smoothness).to_bits());
        assert_eq!(coefficients(solution), expected);
        assert!(!solution.converged && solution.iterations == 60);
    }
}

#[test]
fn every_way_to_agree_leads_to_the_solution_in_one_place() {
    let folder = tempfile::tempdir().unwrap();
    for method in [Method::CliquePhi, Method::DPsgd, Method::NguyenHe, Method::ExactAverage] {
        let (_, problem, ways) = regression(folder.path(), method, "");
        let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        let mut all = tables(&problem);
        let mut whole = all.remove(0);
        all.iter().for_each(|table| whole.append(table).unwrap());
        let centered = Scaling::centering(&whole.sums());
        let scaling = centered.clone().with_deviations(&whole.squares(&centered), 36.0);
        let expected = Regression { lambda: 0.01, ..Regression::default() }.solve(&whole, &scaling, 1e-14, 100_000);
        for solution in &found.solutions {
            let off = coefficients(solution).iter().zip(&expected.x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{method}: {off:e}");
            assert!((solution.objective - expected.objective).abs() < 1e-12, "{method}");
            assert!(solution.certificate.kkt < 1e-8 && solution.certificate.violation < 1e-8, "{solution:?}");
        }
    }
}

#[test]
fn groups_nonnegativity_and_ridge_are_solved_too() {
    let folder = tempfile::tempdir().unwrap();
    for (more, zero) in [("nonnegative = true\n", 1), ("groups = [[\"a\", \"b\"], [\"c\"]]\n", 2), ("ridge = 0.1\n", 2)]
    {
        let (_, problem, ways) = regression(folder.path(), Method::CliquePhi, more);
        let found = solve_here(&problem, &ways, UNDISTURBED, |_, _| {}).unwrap();
        for solution in &found.solutions {
            assert!(solution.converged && solution.certificate.kkt < 1e-8, "{more}: {solution:?}");
            assert!(coefficients(solution)[zero].abs() < 0.05, "{more}: {solution:?}");
        }
    }
}

/// A peer of the swarm, with the envelopes that it begins with.
fn peer(folder: &Path, attempt: u64) -> (SolverPeer, Vec<(NodeId, Envelope)>) {
    let (_, problem, ways) = regression(folder, Method::CliquePhi, "");
    let mut peer = SolverPeer::new(0, &problem, problem.part(0).unwrap(), ways, attempt);
    let sent = std::iter::from_fn(|| peer.poll()).collect();
    (peer, sent)
}

#[test]
fn who_is_behind_hears_of_the_attempt_and_who_is_ahead_takes_all_along() {
    let folder = tempfile::tempdir().unwrap();
    let (mut peer, sent) = peer(folder.path(), 3);
    let (neighbour, own) = sent[0].clone();
    let nothing = |attempt| Envelope { attempt, frame: vec![0, 0], ..own.clone() };
    assert_eq!(peer.handle(neighbour, &nothing(2)).unwrap(), Reception::Taken);
    let (to, answer) = peer.poll().unwrap();
    assert_eq!((to, answer.attempt), (neighbour, 3));
    assert_eq!(peer.handle(neighbour, &nothing(5)).unwrap(), Reception::NewAttempt(5));
    assert!(std::iter::from_fn(|| peer.poll()).all(|(_, envelope)| envelope.attempt == 5));
    assert!(matches!(peer.handle(neighbour, &nothing(u64::MAX)), Err(Fault::Attempt(u64::MAX))));
    let other = Envelope { task: [9; 32], ..nothing(9) };
    assert_eq!(peer.handle(neighbour, &other).unwrap(), Reception::OtherProblem);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_of_a_neighbour_end_a_peer(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8), from in 0_u32..8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut peer, sent) = peer(folder.path(), 0);
        let own = sent[0].1.clone();
        for frame in frames {
            // What is wrong with it is said, and nothing else happens.
            let _ = peer.handle(NodeId(from), &Envelope { frame, ..own.clone() });
        }
        prop_assert!(peer.outcome().is_none());
    }
}
