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
