//! Peers that solve a convex problem: their solution, compared with the same problem in one place, and with each peer
//! alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_builtin::errors;
use mingle_lab::comparison::{self, Comparison};
use mingle_lab::solving::{Conditions, solve_here};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::stop::StopRequests;
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use mingle_planner::Plan;
use mingle_solver::{Regression, RegressionTable, Standardization};
use mingle_solving::{Answer, Problem, Solution};
use serde::Serialize;

use super::given::{self, ConvexKind, GivenProblem};
use super::{FinishedPeers, ProblemDemo, ProgressReport, Swarm, Tell};
use crate::options::{PeerProgram, ProblemOptions, check_peers};
use crate::output::Output;
use crate::plan::bind_to_new_homes;

/// The tolerance of the optimality conditions in one place, and the most steps: rounding may not allow to reach it.
const ALONE: (f64, usize) = (1e-14, 100_000);
/// The largest difference between the swarm and one place: what the tolerance of the problem allows.
const MOST_DIFFERENCE: f64 = 1e-7;

/// A demo of a convex problem for peers on this machine.
pub struct ConvexDemo {
    given: GivenProblem,
    output: Output,
}

impl ConvexDemo {
    /// Makes the plan, the problem, and a part of the data for each peer.
    ///
    /// # Errors
    /// The options are invalid, or the folder holds something else.
    pub fn prepare(options: &ProblemOptions, kind: ConvexKind) -> Result<Self> {
        check_peers(options.peers)?;
        if let Some(rounds) = options.rounds {
            let message = format!("--rounds {rounds}: peers that solve a convex problem iterate to a tolerance");
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave --rounds away"));
        }
        let given = GivenProblem::new(options, kind)?;
        Ok(Self { given, output: Output::at(&options.output)? })
    }

    /// The plan, whose nodes have no key yet.
    pub fn plan(&self) -> &Plan {
        &self.given.plan
    }
}

impl ProblemDemo for ConvexDemo {
    type Report = ConvexReport;

    fn introduction(&self) -> String {
        self.given.introduction()
    }

    fn output(&self) -> &Output {
        &self.output
    }

    async fn run(&self, program: PeerProgram, tell: Tell<'_>, stop: &mut StopRequests) -> Result<ConvexReport> {
        let Self { given, output } = self;
        output.make()?;
        let mut plan = given.plan.clone();
        let homes = bind_to_new_homes(&mut plan, output)?;
        plan::write(&plan, &output.plan())?;
        given.write(output)?;
        let progress = ProgressReport { tell, metrics: &[], each: 1 };
        let ended = Swarm::run(output, progress, &homes, program, stop).await?;
        let report = ConvexReport::new(given, &homes, &ended)?;
        report.write(output)?;
        Ok(report)
    }
}

/// The report of a demo of a convex problem.
#[derive(Serialize)]
pub struct ConvexReport {
    schema: &'static str,
    /// Peer processes.
    pub peers: usize,
    /// Seconds from the start of the first process to the end of the last.
    pub seconds: f64,
    /// The largest resident memory of any peer, where the system reports it.
    pub peak_resident_bytes: Option<u64>,
    /// The solution of the same problem in one place.
    pub one_place: OnePlace,
    /// The largest difference between a number of any peer and that in one place.
    pub difference: f64,
    /// The solutions of each hospital alone: least and largest scaled coefficient of each column.
    pub alone: Vec<(f64, f64)>,
    /// A robust model compared with its competitors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The solution of each peer.
    pub solutions: Vec<Solution>,
}

/// The solution of a problem in one place.
#[derive(Serialize)]
pub struct OnePlace {
    /// The method that solved it.
    pub method: &'static str,
    /// The objective there.
    pub objective: f64,
    /// Each column's scaled coefficient, or each node's number.
    pub numbers: Vec<f64>,
}

impl ConvexReport {
    fn new(given: &GivenProblem, homes: &[Home], ended: &FinishedPeers) -> Result<Self> {
        let solutions = homes.iter().map(read).collect::<Result<Vec<Solution>>>()?;
        let folder = homes[0].root().parent().and_then(|peers| peers.parent()).unwrap_or(homes[0].root());
        let file = folder.join("problem.toml");
        let (one_place, alone, comparison) = match given.kind {
            ConvexKind::SparseRegression => (OnePlace::regression(&given.tables)?, alone(&given.tables), None),
            ConvexKind::ResourceAllocation => (OnePlace::one_process(given, &file)?, Vec::new(), None),
            ConvexKind::RobustClassification => {
                let comparison = compare(given, &file, &folder.join(given::TEST), &solutions)?;
                (OnePlace::one_process(given, &file)?, Vec::new(), comparison)
            }
        };
        let mut difference: f64 = 0.0;
        for solution in &solutions {
            let found = numbers(solution);
            let of_node = solution.node * found.len();
            let wanted = match solution.answer {
                Answer::SparseRegression { .. } | Answer::Robust { .. } => &one_place.numbers[..],
                _ => &one_place.numbers[of_node..of_node + found.len()],
            };
            difference = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(difference, f64::max);
        }
        Ok(Self {
            schema: "mingle.demo.problem/1",
            peers: homes.len(),
            seconds: ended.took.as_secs_f64(),
            peak_resident_bytes: ended.peak_bytes,
            one_place,
            difference,
            alone,
            comparison,
            solutions,
        })
    }

    fn write(&self, output: &Output) -> Result {
        let text = serde_json::to_string_pretty(self).context(ErrorKind::Unexpected, "cannot encode the report")?;
        output.write("report.json", format!("{text}\n").as_bytes())?;
        let picture = output.home(0).join("residuals.svg");
        let doing = format!("cannot read {}", picture.display());
        output.write("residuals.svg", &fs::read(&picture).context(ErrorKind::BadInput, doing)?)
    }

    /// Checks that the swarm found the solution in one place.
    ///
    /// # Errors
    /// The solutions differ by too much, or one did not converge.
    pub fn check(&self) -> Result {
        if self.difference <= MOST_DIFFERENCE && self.solutions.iter().all(|solution| solution.converged) {
            return Ok(());
        }
        let message = format!("the swarm's solution differs by {:.1e} from that in one place", self.difference);
        Err(Error::new(ErrorKind::Integrity, message))
    }
}

fn compare(given: &GivenProblem, file: &Path, test: &Path, solutions: &[Solution]) -> Result<Option<Comparison>> {
    let Some(solution) = solutions.first() else { return Ok(None) };
    let problem = Problem::read(file, &given.plan).map_err(Explain::explain)?;
    let test = test.display().to_string();
    comparison::compare(&problem, solution, &test, given.seed).map(Some).map_err(errors::comparison_error)
}

impl OnePlace {
    /// Solves with all rows in one table, by a method that shares nothing with the swarm's.
    fn regression(tables: &[RegressionTable]) -> Result<Self> {
        let mut all = tables[0].clone();
        for table in &tables[1..] {
            all.append(table).map_err(|_| Error::new(ErrorKind::Unexpected, "the tables of the demo differ"))?;
        }
        let found = regression().solve(&all, &scaling(&all), ALONE.0, ALONE.1);
        Ok(Self { method: "proximal gradient descent", objective: found.objective, numbers: found.x })
    }

    /// Solves with all nodes in this process.
    fn one_process(given: &GivenProblem, problem: &Path) -> Result<Self> {
        let problem = Problem::read(problem, &given.plan).map_err(Explain::explain)?;
        let ways = Arc::new(
            problem.communication(&given.plan, Arc::new(plan::schedule(&given.plan)?)).map_err(Explain::explain)?,
        );
        let solved = solve_here(&problem, &ways, Conditions::default(), |_, _| {}).map_err(errors::swarm_error)?;
        let objective = solved.solutions.first().map_or(f64::NAN, |solution| solution.objective);
        Ok(Self {
            method: "all nodes in one process",
            objective,
            numbers: solved.solutions.iter().flat_map(numbers).collect(),
        })
    }
}

fn regression() -> Regression {
    Regression { lambda: given::LAMBDA, ..Regression::default() }
}

fn scaling(table: &RegressionTable) -> Standardization {
    let centered = Standardization::centering(&table.sums());
    centered.clone().with_deviations(&table.squares(&centered), table.row_count() as f64)
}

/// The least and the largest coefficient of each column over peers that each solve alone, in the scale of their own
/// patients.
fn alone(tables: &[RegressionTable]) -> Vec<(f64, f64)> {
    let columns = tables.first().map_or(0, |table| table.columns().len());
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); columns];
    for table in tables {
        let found = regression().solve(table, &scaling(table), ALONE.0, ALONE.1).x;
        for ((least, most), x) in ranges.iter_mut().zip(found) {
            *least = least.min(x);
            *most = most.max(x);
        }
    }
    ranges
}

fn numbers(solution: &Solution) -> Vec<f64> {
    match &solution.answer {
        Answer::SparseRegression { coefficients, .. }
        | Answer::Robust { coefficients, .. }
        | Answer::NetworkLasso { coefficients, .. } => coefficients.iter().map(|column| column.scaled).collect(),
        Answer::ResourceAllocation { number, .. } => vec![*number],
        Answer::CliqueCoupling { variables, .. } => variables.clone(),
    }
}

fn read(home: &Home) -> Result<Solution> {
    let path = home.root().join("solution.json");
    let doing = format!("cannot read {}", path.display());
    let text = fs::read_to_string(&path).context(ErrorKind::Integrity, &doing)?;
    serde_json::from_str(&text).context(ErrorKind::Integrity, doing)
}
