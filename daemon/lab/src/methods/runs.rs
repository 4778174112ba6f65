//! The runs of a suite of methods, and their results.

use std::path::Path;
use std::sync::Arc;

use mingle_planner::Plan;
use mingle_solving::{Problem, RoundRecord, RoundTask, schedule};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::suite::{MethodEntry, MethodSuite, with_method};
use crate::evaluation::{Keyed, SuiteError};
use crate::solving::{Conditions, SwarmError, learn_here};

/// The version of results: those of another version are run again.
const VERSION: u32 = 2;
const SCHEMA: &str = "mingle.method-run/1";

/// One problem with one method and one seed.
#[derive(Clone, Debug)]
pub struct MethodRun {
    /// The name of the method.
    pub method: String,
    /// The problem's seed.
    pub seed: u64,
    /// The lines of the problem.
    pub problem: Table,
    plan: Arc<Plan>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    schema: String,
    /// A hash of everything that determines the result.
    pub key: String,
    /// The method, by its name in the suite.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Rounds done.
    pub rounds: u64,
    /// The number of rounds after which the model was kept.
    pub best_round: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The names of the metrics.
    pub metrics: Vec<String>,
    /// The metrics of the kept model, as means over clients.
    pub mean: Vec<Option<f64>>,
    /// The metrics of the kept model of each client.
    pub clients: Vec<Vec<Option<f64>>>,
    /// The metrics after each round, as means over clients.
    pub curve: Vec<Vec<Option<f64>>>,
}

impl Keyed for MethodRecord {
    fn key(&self) -> &str {
        &self.key
    }
}

/// The runs of a suite: all methods with a seed before the next seed, so that cached results of that seed are reused.
/// `usual` returns the methods of a suite that names none.
///
/// # Errors
/// The methods cannot be compared, or the problem file cannot be read.
pub fn all_method_runs(
    suite: &MethodSuite,
    usual: impl FnOnce(&Table) -> Vec<MethodEntry>,
    plan: Plan,
    path: &Path,
) -> Result<Vec<MethodRun>, SuiteError> {
    let problem = suite.read_problem()?;
    let methods = if suite.method.is_empty() { usual(&problem) } else { suite.method.clone() };
    let wrong = |what: String| SuiteError::Entry { path: path.to_owned(), what };
    if methods.is_empty() {
        return Err(wrong("it needs at least one [[method]]".to_owned()));
    }
    suite.check_methods(&methods).map_err(wrong)?;
    let plan = Arc::new(plan);
    let run = |seed: u64, method: &MethodEntry| MethodRun {
        method: method.name.clone(),
        seed,
        problem: with_method(&problem, method, seed),
        plan: Arc::clone(&plan),
    };
    Ok(suite
        .seeds
        .iter()
        .flat_map(|seed| methods.iter().map(|method| run(*seed, method)).collect::<Vec<_>>())
        .collect())
}

impl MethodRun {
    /// The identity of this run: BLAKE3, in hexadecimal. The contents of the files that the problem names are no part
    /// of it.
    pub fn key(&self) -> String {
        let plan = self.plan.hash().to_string();
        let identity =
            serde_json::json!([VERSION, env!("CARGO_PKG_VERSION"), plan, self.method, self.seed, self.problem]);
        blake3::hash(identity.to_string().as_bytes()).to_hex()[..32].to_owned()
    }

    /// The name of this run, for people.
    pub fn name(&self) -> String {
        format!("{}, seed {}", self.method, self.seed)
    }

    /// Learns with all clients in this process; `task` has to be that of its [problem](Self::problem).
    ///
    /// # Errors
    /// Any error of a client.
    pub fn execute(
        &self,
        task: Arc<dyn RoundTask>,
        tell: impl FnMut(&RoundRecord),
    ) -> Result<MethodRecord, SwarmError> {
        let names: Vec<String> = self.plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let metrics = task.rules().metrics().to_vec();
        let problem = Problem::of_rounds(task, Arc::new(names));
        let schedule = Arc::new(schedule(&self.plan)?);
        let communication = Arc::new(problem.communication(&self.plan, schedule)?);
        let solved =
            learn_here(&problem, &communication, Conditions { seed: self.seed, ..Conditions::default() }, tell)?;
        let first = solved.learned.first().ok_or(SwarmError::Unfinished)?;
        Ok(MethodRecord {
            schema: SCHEMA.to_owned(),
            key: self.key(),
            method: self.method.clone(),
            seed: self.seed,
            rounds: first.rounds,
            best_round: first.best_round,
            bytes: solved.bytes,
            metrics,
            mean: first.best().map(|best| best.mean.clone()).unwrap_or_default(),
            clients: solved
                .learned
                .iter()
                .map(|learned| learned.best().map(|best| best.own.clone()).unwrap_or_default())
                .collect(),
            curve: first.history.iter().map(|record| record.mean.clone()).collect(),
        })
    }
}
