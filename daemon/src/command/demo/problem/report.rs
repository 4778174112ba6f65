//! What the peers found, beside the same problem in one place, and beside what each would find alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mingle_builtin::errors;
use mingle_lab::comparison::{self, Comparison};
use mingle_lab::solving::{Conditions, solve_here};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::{Error, ErrorKind, Home, Result, plan, units};
use mingle_solver::{Regression, Scaling, Table};
use mingle_solving::{Answer, Problem, Solution};
use serde::Serialize;

use super::super::output::Output;
use super::Ended;
use super::given::{self, ConvexKind, Given};
use crate::out;
use crate::solving_report::print_solutions;

/// In one place, the optimality conditions hold to this, or as well as rounding lets them after so many steps.
const ALONE: (f64, usize) = (1e-14, 100_000);
/// The swarm and one place may differ by so much: what the tolerance of the problem leaves.
const MOST_DIFFERENCE: f64 = 1e-7;

/// What came of it.
#[derive(Serialize)]
pub(super) struct Report {
    schema: &'static str,
    peers: usize,
    /// From the start of the first process to the end of the last.
    seconds: f64,
    /// The largest resident memory of any peer, where the system tells.
    peak_resident_bytes: Option<u64>,
    one_place: OnePlace,
    /// Largest difference of any number of any peer from that in one place.
    difference: f64,
    /// What each hospital would find alone: least and largest scaled coefficient of each column.
    alone: Vec<(f64, f64)>,
    /// A robust model beside its competitors.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    solutions: Vec<Solution>,
}

/// The same problem in one place.
#[derive(Serialize)]
struct OnePlace {
    /// How it was solved.
    method: &'static str,
    objective: f64,
    /// Each column's scaled coefficient, or each node's number.
    numbers: Vec<f64>,
}

impl Report {
    pub(super) fn new(given: &Given, homes: &[Home], ended: &Ended) -> Result<Self> {
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
            let wanted = match solution.answer {
                Answer::SparseRegression { .. } | Answer::Robust { .. } => &one_place.numbers[..],
                Answer::ResourceAllocation { .. } => &one_place.numbers[solution.node..=solution.node],
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

    pub(super) fn write(&self, output: &Output) -> Result {
        let text = serde_json::to_string_pretty(self).context(ErrorKind::Unexpected, "cannot encode the report")?;
        output.write("report.json", format!("{text}\n").as_bytes())?;
        let picture = output.home(0).join("residuals.svg");
        let doing = format!("cannot read {}", picture.display());
        output.write("residuals.svg", &fs::read(&picture).context(ErrorKind::BadInput, doing)?)
    }

    pub(super) fn print(&self, given: &Given, output: &Output, json: bool) {
        if json {
            out::line(serde_json::json!(self));
            return;
        }
        out::line("");
        match self.solutions.first().map(|solution| &solution.answer) {
            Some(Answer::SparseRegression { coefficients, .. }) => {
                out::line(format!("{:<24} {:>12} {:>12}   each alone", "scaled coefficient", "swarm", "one place"));
                let both = coefficients.iter().zip(&self.one_place.numbers).zip(&self.alone);
                for ((found, one_place), (least, most)) in both {
                    let column = &found.column;
                    let swarm = found.scaled;
                    out::line(format!("{column:<24} {swarm:>12.9} {one_place:>12.9}   {least:>6.3} to {most:>6.3}"));
                }
            }
            _ => {
                if let Ok(problem) = Problem::read(&given::file(output), &given.plan) {
                    print_solutions(&problem, &self.solutions);
                }
            }
        }
        self.comparison.iter().for_each(print_drift);
        self.print_end(output);
    }

    fn print_end(&self, output: &Output) {
        let Some(first) = self.solutions.first() else { return };
        let OnePlace { method, objective, .. } = &self.one_place;
        out::line("");
        out::line(format!(
            "{} peers, {} iterations, {:.1} s; KKT residual {:.1e}, constraints to {:.1e}",
            self.peers, first.iterations, self.seconds, first.certificate.kkt, first.certificate.violation
        ));
        out::line(format!("objective {:.12}, in one place {objective:.12} ({method})", first.objective));
        out::line(format!("largest difference of any number of any peer from one place: {:.1e}", self.difference));
        if let Some(bytes) = self.peak_resident_bytes {
            out::line(format!("memory of a peer: up to {:.0} MB", units::megabytes(bytes)));
        }
        let folder = output.root().display();
        out::line(format!(
            "wrote {folder}/report.json, {folder}/residuals.svg; again, in one process:\n  \
             mingle solve --problem {folder}/problem.toml --plan {folder}/plan.json"
        ));
    }

    /// # Errors
    /// The swarm found something else than one place.
    pub(super) fn check(&self) -> Result {
        if self.difference <= MOST_DIFFERENCE && self.solutions.iter().all(|solution| solution.converged) {
            return Ok(());
        }
        let message = format!("the swarm's solution differs by {:.1e} from that in one place", self.difference);
        Err(Error::new(ErrorKind::Integrity, message))
    }
}

fn compare(given: &Given, file: &Path, test: &Path, solutions: &[Solution]) -> Result<Option<Comparison>> {
    let Some(solution) = solutions.first() else { return Ok(None) };
    let problem = Problem::read(file, &given.plan).map_err(Explain::explain)?;
    let test = test.display().to_string();
    comparison::compare(&problem, solution, &test, 0).map(Some).map_err(errors::comparison_error)
}

/// Columns run from -1 to 1: a deviation of 0.1 is one of 5 % of all that was ever measured.
const PERCENT_OF_RANGE: f64 = 50.0;

/// How many patients are told right as measuring devices drift: for people who measure.
fn print_drift(comparison: &Comparison) {
    let named = |name: &str| comparison.models.iter().find(|model| model.name == name);
    let (Some(usual), Some(robust)) = (named("usual"), named("robust")) else { return };
    out::line("");
    out::line("Of 100 new patients, so many are told right when every device is off at random by so much of its range");
    let head = ["usual model", "robust model", "usual, worst site", "robust, worst site"];
    out::line(format!("{:<12} {:>12} {:>13} {:>18} {:>19}", "off by", head[0], head[1], head[2], head[3]));
    for (at, noise) in comparison.noises.iter().enumerate().filter(|(_, noise)| noise.mean == 0.0) {
        let of_100 = |scores: &[f64]| format!("{:.0}", 100.0 * scores[at]);
        let off = format!("{:.1} %", PERCENT_OF_RANGE * noise.deviation);
        let (means, worst) = ([&usual.mean, &robust.mean], [&usual.worst_site, &robust.worst_site]);
        let [a, b] = means.map(|scores| of_100(scores));
        let [c, d] = worst.map(|scores| of_100(scores));
        out::line(format!("{off:<12} {a:>12} {b:>13} {c:>18} {d:>19}"));
    }
}

impl OnePlace {
    /// All rows in one table, by a method that shares nothing with the swarm's.
    fn regression(tables: &[Table]) -> Result<Self> {
        let mut all = tables[0].clone();
        for table in &tables[1..] {
            all.append(table).map_err(|_| Error::new(ErrorKind::Unexpected, "the tables of the demo differ"))?;
        }
        let found = regression().solve(&all, &scaling(&all), ALONE.0, ALONE.1);
        Ok(Self { method: "proximal gradient descent", objective: found.objective, numbers: found.x })
    }

    /// All nodes in this process.
    fn one_process(given: &Given, problem: &Path) -> Result<Self> {
        let problem = Problem::read(problem, &given.plan).map_err(Explain::explain)?;
        let ways = Arc::new(
            problem.communication(&given.plan, Arc::new(plan::schedule(&given.plan)?)).map_err(Explain::explain)?,
        );
        let solved =
            solve_here(&problem, &ways, Conditions { loss: 0.0, seed: 0 }, |_, _| {}).map_err(errors::swarm_error)?;
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

fn scaling(table: &Table) -> Scaling {
    let centered = Scaling::centering(&table.sums());
    centered.clone().with_deviations(&table.squares(&centered), table.row_count() as f64)
}

/// What each would find alone: the least and the largest coefficient of each column, in the scale of its own patients.
fn alone(tables: &[Table]) -> Vec<(f64, f64)> {
    let columns = tables.first().map_or(0, |table| table.columns().len());
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); columns];
    for table in tables {
        let found = regression().solve(table, &scaling(table), ALONE.0, ALONE.1).x;
        for ((least, most), x) in ranges.iter_mut().zip(found) {
            (*least, *most) = (least.min(x), most.max(x));
        }
    }
    ranges
}

fn numbers(solution: &Solution) -> Vec<f64> {
    match &solution.answer {
        Answer::SparseRegression { coefficients, .. } | Answer::Robust { coefficients, .. } => {
            coefficients.iter().map(|column| column.scaled).collect()
        }
        Answer::ResourceAllocation { number, .. } => vec![*number],
    }
}

fn read(home: &Home) -> Result<Solution> {
    let path = home.root().join("solution.json");
    let doing = format!("cannot read {}", path.display());
    let text = fs::read_to_string(&path).context(ErrorKind::Integrity, &doing)?;
    serde_json::from_str(&text).context(ErrorKind::Integrity, doing)
}
