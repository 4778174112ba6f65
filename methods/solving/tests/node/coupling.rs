//! Couplings that a program brings: solved by peers like those of files.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_solver::{CliqueCoupling, DistanceMetric, Preference};
use mingle_solving::{
    Answer, CoupledClique, CoupledTask, CouplingError, OwnTerms, Problem, Solution, StoppingCriteria, schedule,
};

use crate::support::solve_all;

/// The first member has twice the number of the second.
#[derive(Debug)]
struct Double;

impl CliqueCoupling for Double {
    fn prox(&self, _: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        let off = (v[0][0] - 2.0 * v[1][0]) / (weights[0] + 4.0 * weights[1]);
        v[0][0] -= weights[0] * off;
        v[1][0] += 2.0 * weights[1] * off;
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        (x[0][0] - 2.0 * x[1][0]).abs()
    }

    fn is_for(&self, members: usize, components: usize) -> bool {
        (members, components) == (2, 1)
    }
}

fn clique(members: [usize; 2]) -> CoupledClique {
    CoupledClique {
        name: format!("{members:?}"),
        word: "double".to_owned(),
        members: BTreeSet::from(members),
        cost: None,
        coupling: Some(Arc::new(Double)),
    }
}

fn task(cliques: Vec<CoupledClique>, wishes: &[f64]) -> Result<CoupledTask, CouplingError> {
    let own = |&wish: &f64| {
        let preference = Preference { wish, lower: f64::NEG_INFINITY, ..Preference::default() };
        Arc::new(vec![preference]) as Arc<dyn OwnTerms>
    };
    let own = wishes.iter().map(own).collect();
    CoupledTask::new(vec!["number".to_owned()], cliques, own, DistanceMetric::Memberships)
}

fn variable(solution: &Solution) -> f64 {
    let Answer::CliqueCoupling { variables, .. } = &solution.answer else { panic!("{solution:?}") };
    variables[0]
}

#[test]
fn a_coupling_that_a_program_brings_is_solved_by_peers_and_another_subject_is_another_problem() {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let topology = Topology::new(names.clone(), &[(0, 1), (1, 2)]).unwrap();
    let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    let plan = mingle_planner::design(&topology, Method::CliquePhi, &options).unwrap();
    let limits = StoppingCriteria { tolerance: 1e-12, iterations: 5_000 };
    let posed = |subject: &str| {
        let task = task(vec![clique([0, 1]), clique([1, 2])], &[7.0, 5.0, 1.0]).unwrap();
        Problem::coupled(task, names.clone(), limits, subject)
    };
    let problem = posed("doubles");
    let communication = Arc::new(problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
    problem.check_links(&communication).unwrap();
    let solutions = solve_all(&problem, &communication);
    // x = (4 t, 2 t, t), and t minimises (4 t - 7)^2 + (2 t - 5)^2 + (t - 1)^2.
    let t = (4.0 * 7.0 + 2.0 * 5.0 + 1.0) / 21.0;
    for (solution, expected) in solutions.iter().zip([4.0 * t, 2.0 * t, t]) {
        assert!((variable(solution) - expected).abs() < 1e-9, "{solution:?}");
        assert!(solution.converged && solution.certificate.kkt < 1e-9 && solution.certificate.violation < 1e-9);
    }
    assert_ne!(posed("triples").hash, problem.hash);
}

#[test]
fn cliques_that_do_not_fit_are_refused_by_name() {
    let refused = |cliques: Vec<CoupledClique>, wishes: &[f64]| task(cliques, wishes).unwrap_err().to_string();
    assert_eq!(refused(vec![clique([0, 3])], &[1.0, 2.0]), "clique [0, 3] has a member 3: the nodes are 0 to 1");
    assert_eq!(
        refused(vec![clique([0, 1])], &[1.0, 2.0, 3.0]),
        "node 2 is in no clique: nothing couples it to the others"
    );
    let three = CoupledClique { members: BTreeSet::from([0, 1, 2]), ..clique([0, 1]) };
    let unfit = "clique [0, 1]: its cost or coupling is not for 3 members with 1 components each";
    assert_eq!(refused(vec![three], &[0.0; 3]), unfit);
    let twice = CoupledClique { members: BTreeSet::from([1, 2]), ..clique([0, 1]) };
    assert_eq!(refused(vec![clique([0, 1]), twice], &[0.0; 3]), "two cliques are called [0, 1]");
    let of_two = vec!["x".to_owned(), "y".to_owned()];
    let free = CoupledClique { coupling: None, ..clique([0, 1]) };
    let own: Vec<Arc<dyn OwnTerms>> =
        (0..2).map(|_| Arc::new(vec![Preference::default()]) as Arc<dyn OwnTerms>).collect();
    let refused = CoupledTask::new(of_two, vec![free], own, DistanceMetric::Identity).unwrap_err();
    assert_eq!(refused, CouplingError::Dimension { node: 0, components: 2 });
}
