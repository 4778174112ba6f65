//! A convex problem for peers on this machine: a plan, a problem file, and a part of the data for each.

use std::collections::BTreeSet;
use std::fs;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_planner::{DesignOptions, Plan, Topology};
use mingle_solver::example::{HEART, HEART_TARGET};
use mingle_solver::{RegressionTable, Selection};

use crate::options::ProblemOptions;
use crate::output::Output;
use crate::plan;

/// The penalty that leaves out findings of little influence on a heart disease.
pub(super) const LAMBDA: f64 = 0.05;
/// Parts of the patients; two of the five are held out to test the robust model.
const FIFTHS: usize = 5;
/// The mean drift of measuring devices over patients: the radius of the Wasserstein ball.
const RADIUS: f64 = 0.1;
/// The file of the test patients, in the demo's folder.
pub(super) const TEST: &str = "test.csv";
/// Wards that share a budget of beds; the last ward of a group is the first of the next.
const GROUP: usize = 4;
/// Beds of a group for each of its wards.
const BEDS_PER_WARD: usize = 6;

/// The convex problems of demos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvexKind {
    /// A sparse regression: the findings that indicate a heart disease.
    SparseRegression,
    /// Shared budgets: the number of beds for each ward.
    ResourceAllocation,
    /// A robust classification: the patients with a heart disease, though measuring devices drift.
    RobustClassification,
}

/// The plan and the problem.
pub(super) struct GivenProblem {
    pub(super) kind: ConvexKind,
    pub(super) plan: Plan,
    /// Each peer's patients, where it has any.
    pub(super) tables: Vec<RegressionTable>,
    /// Patients of no peer, to test a model on.
    test: Option<RegressionTable>,
    problem: String,
    /// Seed of topology, plan, the dealing of patients, and noise on test data.
    pub(super) seed: u64,
}

impl GivenProblem {
    pub(super) fn new(options: &ProblemOptions, kind: ConvexKind) -> Result<Self> {
        match kind {
            ConvexKind::SparseRegression => Self::hospitals(options),
            ConvexKind::ResourceAllocation => Self::wards(options),
            ConvexKind::RobustClassification => Self::drifting_devices(options),
        }
    }

    /// A regression over hospitals with some of the patients each.
    fn hospitals(options: &ProblemOptions) -> Result<Self> {
        let all = patients()?.shuffled(options.seed);
        let tables = (0..options.peers).map(|peer| all.dealt(peer, options.peers)).collect();
        let topology = places(options)?;
        let problem = format!(
            "# Which findings tell of a heart disease? Each hospital keeps its patients.\n\
             kind = \"sparse-regression\"\n\
             data = \"tables/{{node}}.csv\"\n\
             target = \"{HEART_TARGET}\"\n\
             lambda = {LAMBDA}\n"
        );
        let kind = ConvexKind::SparseRegression;
        let plan = design(options, &topology)?;
        Ok(Self { kind, plan, tables, test: None, problem, seed: options.seed })
    }

    /// A robust classification over hospitals with three fifths of the patients; the others are to test the model on.
    fn drifting_devices(options: &ProblemOptions) -> Result<Self> {
        let all = patients()?.shuffled(options.seed);
        let fifths = |first: usize, others: &[usize]| {
            let mut part = all.dealt(first, FIFTHS);
            for &other in others {
                part.append(&all.dealt(other, FIFTHS))
                    .map_err(|_| Error::new(ErrorKind::Unexpected, "parts of one table differ"))?;
            }
            Ok::<_, Error>(part)
        };
        let training = fifths(0, &[2, 4])?;
        let test = fifths(1, &[3])?;
        let tables = (0..options.peers).map(|peer| training.dealt(peer, options.peers)).collect();
        let topology = places(options)?;
        let problem = format!(
            "# Who has a heart disease? A model that still tells when measuring devices drift.\n\
             kind = \"robust-classification\"\n\
             data = \"tables/{{node}}.csv\"\n\
             target = \"{HEART_TARGET}\"\n\
             labels = [\"0\", \"1\"]\n\
             support = \"box\"\n\
             radius = {RADIUS}\n\
             theta = 0.1\n\
             tolerance = 1e-4\n"
        );
        let kind = ConvexKind::RobustClassification;
        let plan = design(options, &topology)?;
        Ok(Self { kind, plan, tables, test: Some(test), problem, seed: options.seed })
    }

    /// Shared budgets of wards in a row of overlapping groups.
    fn wards(options: &ProblemOptions) -> Result<Self> {
        let names: Vec<String> = (0..options.peers).map(|ward| format!("ward-{ward}")).collect();
        let mut groups = Vec::new();
        let mut first = 0;
        while first + 1 < names.len() {
            let last = (first + GROUP).min(names.len());
            groups.push(first..last);
            first = last - 1;
        }
        let edges: BTreeSet<(usize, usize)> = groups
            .iter()
            .flat_map(|group| group.clone().flat_map(move |a| (a + 1..group.end).map(move |b| (a, b))))
            .collect();
        let edges: Vec<(usize, usize)> = edges.into_iter().collect();
        let topology = Topology::new(names.clone(), &edges).context(ErrorKind::Unexpected, "the wards")?;
        let mut problem = "# How many beds does each ward get? Groups of wards have so many together.\n\
                           kind = \"resource-allocation\"\n"
            .to_owned();
        for (at, group) in groups.iter().enumerate() {
            let members: Vec<String> = names[group.clone()].iter().map(|name| format!("\"{name}\"")).collect();
            problem += &format!(
                "\n[[clique]]\nname = \"group-{at}\"\nmembers = [{}]\nbudget = {}\n",
                members.join(", "),
                group.len() * BEDS_PER_WARD
            );
        }
        for (ward, name) in names.iter().enumerate() {
            // Some wards want many beds, others few.
            let wish = 3 + ward * 5 % 9;
            problem += &format!("\n[[node]]\nnode = \"{name}\"\nwish = {wish}\nupper = 10\n");
        }
        let plan = design(options, &topology)?;
        let kind = ConvexKind::ResourceAllocation;
        Ok(Self { kind, plan, tables: Vec::new(), test: None, problem, seed: options.seed })
    }

    /// Writes the problem file, and each peer's part beside it.
    pub(super) fn write(&self, output: &Output) -> Result {
        output.write("problem.toml", self.problem.as_bytes())?;
        if self.tables.is_empty() {
            return Ok(());
        }
        let folder = output.root().join("tables");
        fs::create_dir_all(&folder).context(ErrorKind::BadInput, format!("cannot create {}", folder.display()))?;
        for ((name, _), table) in self.plan.nodes().zip(&self.tables) {
            output.write(&format!("tables/{name}.csv"), table.to_csv(HEART_TARGET).as_bytes())?;
        }
        if let Some(test) = &self.test {
            output.write(TEST, test.to_csv(HEART_TARGET).as_bytes())?;
        }
        Ok(())
    }

    /// An introduction to the demo, in a few lines.
    pub(super) fn introduction(&self) -> String {
        let peers = self.plan.node_count();
        let method = self.plan.method();
        match self.kind {
            ConvexKind::SparseRegression => {
                let rows = self.tables.iter().map(RegressionTable::row_count).sum::<usize>();
                format!(
                    "{peers} hospitals have {rows} patients between them. No row leaves its hospital; sums of columns go to the next\n\
                     peer on the way to the root of a tree, iterates and gradients to neighbours.\n\
                     Which findings tell of a heart disease? Least squares with few coefficients (lambda {LAMBDA}), plan {method}\n"
                )
            }
            ConvexKind::RobustClassification => {
                let rows = self.tables.iter().map(RegressionTable::row_count).sum::<usize>();
                let others = self.test.as_ref().map_or(0, RegressionTable::row_count);
                format!(
                    "{peers} hospitals have {rows} patients between them; {others} others are there to try the model on. No row leaves its\n\
                     hospital; what is averaged goes to neighbours, each hospital's worst loss to all. Who has a heart disease?\n\
                     A model for the worst measuring devices within {RADIUS} (columns run from -1 to 1), plan {method}\n"
                )
            }
            ConvexKind::ResourceAllocation => format!(
                "{peers} wards share out beds: each group of {GROUP} has {BEDS_PER_WARD} a ward. What a ward wants stays in its file;\n\
                 its group sees its number and gradient in every iteration. Plan {method}\n"
            ),
        }
    }
}

/// All patients of the embedded table.
fn patients() -> Result<RegressionTable> {
    let selection = Selection { target: HEART_TARGET.to_owned(), columns: Vec::new() };
    RegressionTable::read(HEART.as_bytes(), &selection).context(ErrorKind::Unexpected, "the embedded table")
}

/// The topology of the hospitals.
pub(super) fn places(options: &ProblemOptions) -> Result<Topology> {
    plan::topology(options.peers, options.seed)
}

/// The requested design on it.
pub(super) fn design(options: &ProblemOptions, topology: &Topology) -> Result<Plan> {
    plan::design(&options.method, topology, &DesignOptions { seed: options.seed, ..DesignOptions::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_seed_draws_which_patients_are_whose_and_which_are_for_the_test() {
        let given = |kind: ConvexKind, seed: u64| {
            let (method, output) = ("d-psgd".to_owned(), PathBuf::new());
            let options = ProblemOptions { peers: 4, rounds: None, method, seed, output };
            GivenProblem::new(&options, kind).unwrap()
        };
        for kind in [ConvexKind::SparseRegression, ConvexKind::RobustClassification] {
            let [first, again, other] = [1, 1, 2].map(|seed| given(kind, seed));
            assert_eq!((&first.tables, &first.test), (&again.tables, &again.test));
            assert!(first.tables != other.tables && (first.test.is_none() || first.test != other.test), "{kind:?}");
            let rows = |given: &GivenProblem| {
                given.tables.iter().chain(&given.test).map(RegressionTable::row_count).sum::<usize>()
            };
            assert_eq!((rows(&first), rows(&other)), (270, 270), "every patient is somewhere");
        }
    }
}
