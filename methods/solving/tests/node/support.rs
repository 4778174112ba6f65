//! Problems, plans for them, and peers whose messages all arrive.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology};
use mingle_protocol::NodeId;
use mingle_solver::{RegressionTable, Standardization};
use mingle_solving::{
    Answer, CommunicationPlan, Part, Problem, Solution, SolveError, SolverPeer, SumPolicy, Sums, schedule,
};

pub(crate) const NODES: usize = 6;

/// A regression over six nodes with a few rows each, its plan and its communication.
pub(crate) fn regression(folder: &Path, method: Method, more: &str) -> (Plan, Problem, Arc<CommunicationPlan>) {
    regression_over(folder, &format!("rg:n={NODES},r=0.6,seed=1"), method, Medium::PointToPoint, more)
}

/// A regression over any topology, with its plan and its communication.
pub(crate) fn regression_over(
    folder: &Path,
    topology: &str,
    method: Method,
    medium: Medium,
    more: &str,
) -> (Plan, Problem, Arc<CommunicationPlan>) {
    let mut table = "a,b,c,y\n".to_owned();
    for row in 0_u32..36 {
        let [a, b, c] = [7, 11, 13].map(|step| f64::from(row * step % 17) / 8.0 - 1.0);
        table += &format!("{a},{b},{c},{}\n", 2.0 * a - b + 0.05 * f64::from(row % 5));
    }
    fs::write(folder.join("table.csv"), table).unwrap();
    let path = folder.join("problem.toml");
    let text = "kind = \"sparse-regression\"\ndata = \"table.csv\"\ndeal = true\ntarget = \"y\"\nlambda = 0.01\n";
    fs::write(&path, format!("{text}{more}")).unwrap();
    let options = DesignOptions { medium, ..DesignOptions::default() };
    let topology = Topology::generate(topology).unwrap();
    let plan = mingle_planner::design(&topology, method, &options).unwrap();
    let problem = Problem::read(&path, &plan).unwrap();
    let communication = Arc::new(CommunicationPlan::of(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
    (plan, problem, communication)
}

pub(crate) fn coefficients(solution: &Solution) -> Vec<f64> {
    let Answer::SparseRegression { coefficients, .. } = &solution.answer else { panic!("{solution:?}") };
    coefficients.iter().map(|column| column.scaled).collect()
}

pub(crate) fn tables(problem: &Problem) -> Vec<RegressionTable> {
    let table = |part| if let Part::Regression { table, .. } = part { table } else { panic!("no table") };
    problem.parts().unwrap().into_iter().map(table).collect()
}

/// All rows in one place.
pub(crate) fn in_one_place(problem: &Problem) -> (RegressionTable, Standardization) {
    let mut all = tables(problem);
    let mut whole = all.remove(0);
    all.iter().for_each(|table| whole.append(table).unwrap());
    let centered = Standardization::centering(&whole.sums());
    let scaling = centered.clone().with_deviations(&whole.squares(&centered), whole.row_count() as f64);
    (whole, scaling)
}

/// The protection of sums that node `me` of a simulation has by default.
pub(crate) fn sums(me: usize, nodes: usize) -> Sums {
    let protection = SumPolicy::default().protection(nodes).unwrap();
    Sums::simulated(protection, nodes, 1).swap_remove(me)
}

/// The outcomes of peers whose messages all arrive.
pub(crate) fn outcomes(mut peers: Vec<SolverPeer>) -> Vec<Result<Solution, SolveError>> {
    loop {
        let mut is_quiet = true;
        for from in 0..peers.len() {
            while let Some((to, envelope)) = peers[from].poll() {
                is_quiet = false;
                let from = NodeId(u32::try_from(from).unwrap());
                peers[to.index()].handle(from, &envelope).unwrap();
            }
        }
        if is_quiet {
            return peers
                .into_iter()
                .map(|peer| peer.into_outcome().unwrap().map(|found| found.solution().unwrap().clone()))
                .collect();
        }
    }
}

/// The solutions of all nodes.
pub(crate) fn solve_all(problem: &Problem, communication: &Arc<CommunicationPlan>) -> Vec<Solution> {
    let parts = problem.parts().unwrap().into_iter().enumerate();
    let peers = parts
        .map(|(me, part)| {
            SolverPeer::new(me, problem, part, Arc::clone(communication), 0, sums(me, communication.schedule.nodes()))
        })
        .collect();
    outcomes(peers).into_iter().map(Result::unwrap).collect()
}
