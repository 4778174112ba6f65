//! Failures that keep nodes from a solution, and their reports at all nodes.

use std::fs;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_solver::{RegressionTable, Selection};
use mingle_solving::{AveragingScheme, CommunicationPlan, Part, Problem, SolveError, SolverPeer, schedule};

use crate::support::{NODES, outcomes, regression, regression_over, sums};

#[test]
fn an_iteration_that_diverges_is_told_early_by_all_and_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, problem, communication) =
        regression_over(folder.path(), "rg:n=8,r=0.5,seed=1", Method::NguyenHe, Medium::PointToPoint, "");
    // The roughest averages: one step an iteration.
    let communication =
        Arc::new(CommunicationPlan { agreement: AveragingScheme::Tracking { steps: 1 }, ..(*communication).clone() });
    let part = |node: usize| {
        SolverPeer::new(
            node,
            &problem,
            problem.part(node).unwrap(),
            Arc::clone(&communication),
            0,
            sums(node, plan.node_count()),
        )
    };
    let outcomes = outcomes((0..plan.node_count()).map(part).collect());
    let told = outcomes[0].as_ref().unwrap_err();
    let SolveError::Diverged { iteration, remedy, .. } = *told else { panic!("{told}") };
    assert!(iteration <= 500, "{told}");
    assert!(told.to_string().starts_with("the iteration diverges: the residual was"), "{told}");
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap_err() == told), "{outcomes:?}");
    assert!(remedy == communication.agreement.remedy() && remedy.contains("clique-phi"), "{remedy}");
}

#[test]
fn more_columns_than_rows_are_cautioned_of_before_and_named_as_the_reason_after() {
    let folder = tempfile::tempdir().unwrap();
    let more = "iterations = 10\n";
    let (plan, problem, communication) =
        regression_over(folder.path(), "complete:n=3", Method::CliquePhi, Medium::PointToPoint, more);
    assert_eq!(problem.caution().unwrap(), None, "36 rows of 3 columns");
    let row =
        |row: u32| (1..9).map(|column| ((row * row * column + 3 * row) % 11).to_string()).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (1..7).map(|at| format!("{},{at}", row(at))).collect();
    fs::write(folder.path().join("table.csv"), format!("a,b,c,d,e,f,g,h,y\n{}\n", rows.join("\n"))).unwrap();
    let caution = problem.caution().unwrap().unwrap();
    assert!(caution.starts_with("8 columns and 6 rows") && caution.contains("within 10 iterations"), "{caution}");
    let part = |node: usize| {
        SolverPeer::new(
            node,
            &problem,
            problem.part(node).unwrap(),
            Arc::clone(&communication),
            0,
            sums(node, plan.node_count()),
        )
    };
    for outcome in outcomes((0..plan.node_count()).map(part).collect()) {
        let failure = outcome.unwrap().not_solved().unwrap();
        assert!(
            failure.iterations == 10 && failure.remedy.starts_with("there are more columns than rows"),
            "{failure:?}"
        );
    }
}

#[test]
fn tables_that_do_not_fit_together_are_named_by_every_peer_before_anything_is_solved() {
    let folder = tempfile::tempdir().unwrap();
    let (_, problem, communication) = regression(folder.path(), Method::CliquePhi, "");
    let peer = |me: usize| {
        let part = match problem.part(me).unwrap() {
            Part::Regression { task, .. } if me == 4 => {
                let selection = Selection { target: "y".to_owned(), columns: Vec::new() };
                let table = RegressionTable::read("a,b,dose,y\n1,2,3,4\n".as_bytes(), &selection).unwrap();
                Part::Regression { task, table }
            }
            part => part,
        };
        SolverPeer::new(me, &problem, part, Arc::clone(&communication), 0, sums(me, NODES))
    };
    for (me, outcome) in outcomes((0..NODES).map(peer).collect()).into_iter().enumerate() {
        let message = outcome.unwrap_err().to_string();
        let own = if me == 4 { "a, b, dose" } else { "a, b, c" };
        assert!(message.contains("node") && message.contains('4') && message.ends_with(own), "{message}");
    }
}

#[test]
fn a_budget_that_bounds_rule_out_is_named_by_every_peer_though_none_knows_the_others_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let topology = Topology::new(["x", "y", "z"].map(str::to_owned).to_vec(), &[(0, 1), (1, 2)]).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
    let communication = Arc::new(CommunicationPlan::of(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
    let shared = "kind = \"resource-allocation\"\n\
                  [[clique]]\nname = \"far\"\nmembers = [\"x\", \"y\"]\nbudget = 5\n\
                  [[clique]]\nname = \"near\"\nmembers = [\"y\", \"z\"]\nbudget = 1\n";
    // Each file has its own node's preference, and no other.
    let peer = |me: usize| {
        let path = folder.path().join(format!("{me}.toml"));
        fs::write(&path, format!("{shared}[[node]]\nnode = {me}\nwish = 1\nupper = 2\n")).unwrap();
        let problem = Problem::read(&path, &plan).unwrap();
        assert_eq!(problem.defaulted().len(), 2, "the others' wishes are not at hand");
        SolverPeer::new(me, &problem, problem.part(me).unwrap(), Arc::clone(&communication), 0, sums(me, 3))
    };
    let outcomes = outcomes((0..3).map(peer).collect());
    assert!(outcomes[0].as_ref().unwrap_err().to_string().contains("far cannot share out 5"), "{outcomes:?}");
    assert!(outcomes[2].as_ref().unwrap_err().to_string().contains("found that clique far cannot"), "{outcomes:?}");
}
