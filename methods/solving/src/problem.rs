//! Problem files: the task that all nodes share, and the part of each node in it.

mod coupled;
mod coupling_error;
mod error;
mod file;
mod file_defaults;
mod file_error;
mod kinds;
#[cfg(test)]
mod mutated_inputs;
mod network_lasso;
mod node_name;
mod robust;
mod tables;
mod words;

pub use coupled::{CoupledClique, CoupledTask, OwnTerms};
pub use coupling_error::CouplingError;
pub use error::{ProblemError, SampleError, TableFileError};
pub use file_error::FileError;
pub use kinds::CONVEX_KINDS;
pub use network_lasso::NetworkLassoTask;
pub(crate) use robust::ROW;
pub use robust::{ColumnScaling, NominalWeights, RobustTask};
use tables::{read_rows, read_table};

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_plaintext::InputFile;
use mingle_planner::Plan;
use mingle_protocol::Schedule;
use mingle_solver::{Budgets, DistanceMetric, Preference, Regression, RegressionTable, Selection};
use serde::Serialize;

use crate::clique_sizes::longest_message;
use crate::communication_plan::{Averaging, CommunicationPlan};
use crate::error::CommunicationPlanError;
use crate::learning::{CHUNK, MemoryStore, RoundPart, RoundStore, RoundTask};

/// Placeholder for the name of the node in the name of a table.
const NODE: &str = "{node}";

/// The longest problem file that is read.
const MOST_BYTES: u64 = 64 << 20;

/// A problem file, resolved for a plan.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The task.
    pub task: ProblemTask,
    /// The conditions for stopping.
    pub limits: StoppingCriteria,
    /// BLAKE3 of all that the peers have to agree on.
    pub hash: [u8; 32],
    /// The names of the nodes.
    pub names: Arc<Vec<String>>,
    file: PathBuf,
}

/// The task of a problem, as all nodes share it.
#[derive(Clone, Debug)]
pub enum ProblemTask {
    /// Sparse regression of a column on others.
    Regression(Arc<RegressionTask>),
    /// Budgets that cliques share out.
    Allocation(Arc<AllocationTask>),
    /// Variables of nodes that cliques couple.
    Coupled(Arc<CoupledTask>),
    /// Models of nodes that links draw together.
    NetworkLasso(Arc<NetworkLassoTask>),
    /// A distributionally robust model: the best one for the worst of near distributions.
    Robust(Arc<RobustTask>),
    /// Learning in rounds; not described by a problem file.
    Rounds(Arc<dyn RoundTask>),
}

/// The conditions for stopping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StoppingCriteria {
    /// The largest share of its solution by which a node may still move.
    pub tolerance: f64,
    /// The most iterations.
    pub iterations: u64,
}

/// A sparse regression.
#[derive(Clone, Debug)]
pub struct RegressionTask {
    /// The penalties, and the groups.
    pub regression: Regression,
    /// `true` if columns are scaled to mean 0 and deviation 1 over all nodes.
    pub standardize: bool,
    source: TableSource,
}

/// The source of the nodes' rows.
#[derive(Clone, Debug)]
struct TableSource {
    selection: Selection,
    data: String,
    deal: bool,
}

/// An allocation of shared budgets.
#[derive(Clone, Debug)]
pub struct AllocationTask {
    /// The cliques and their budgets.
    pub budgets: Budgets,
    /// The metric in which distances are measured.
    pub metric: DistanceMetric,
    /// Preferences of the nodes that have an entry in the file.
    preferences: BTreeMap<usize, Preference>,
}

impl AllocationTask {
    /// A node's preference: its entry in the file, else the defaults.
    fn preference(&self, node: usize) -> Preference {
        self.preferences.get(&node).copied().unwrap_or_default()
    }
}

/// The part of one node in a problem.
#[derive(Clone, Debug)]
pub enum Part {
    /// A node's rows of a regression.
    Regression {
        /// The task of all nodes.
        task: Arc<RegressionTask>,
        /// The rows.
        table: RegressionTable,
    },
    /// A node's preference in an allocation.
    Allocation {
        /// The task of all nodes.
        task: Arc<AllocationTask>,
        /// The costs and bounds of the node's number.
        preference: Preference,
    },
    /// A node's own terms of a problem over cliques.
    Coupled {
        /// The task of all nodes.
        task: Arc<CoupledTask>,
        /// The node's own terms.
        own: Arc<dyn OwnTerms>,
    },
    /// A node's rows of a network lasso.
    NetworkLasso {
        /// The task of all nodes.
        task: Arc<NetworkLassoTask>,
        /// The rows.
        table: RegressionTable,
    },
    /// A site's samples for a robust model.
    Robust {
        /// The task of all sites.
        task: Arc<RobustTask>,
        /// The samples.
        table: RegressionTable,
    },
    /// A node's part in learning in rounds.
    Rounds(RoundPart),
}

impl Part {
    /// The most numbers in any message about it: bounds of all coefficients, or a variable, its gradient and its
    /// bounds, or multipliers of all cliques of a node, or a row of each node.
    pub(crate) fn longest_message(&self) -> usize {
        match self {
            Self::Regression { table, .. } => 2 * table.columns().len() + 2,
            Self::Allocation { task, .. } => longest_message(&task.budgets.terms(), 1),
            Self::Coupled { task, .. } => longest_message(&task.terms(), task.components().len()),
            Self::NetworkLasso { task, table } => longest_message(&task.terms(), table.columns().len() + 1),
            Self::Robust { task, table } => (4 * (table.columns().len() + 1)).max(ROW * task.radii.len()),
            Self::Rounds(_) => CHUNK,
        }
    }
}

impl Problem {
    /// Reads a problem file for the nodes of a plan.
    ///
    /// # Errors
    /// The file cannot be read, refers to something that does not exist, or is not convex. The error names the file.
    pub fn read(path: &Path, plan: &Plan) -> Result<Self, ProblemError> {
        Self::parse(&read_text(path)?, path, plan)
    }

    /// Parses the text of a problem file.
    fn parse(text: &str, path: &Path, plan: &Plan) -> Result<Self, ProblemError> {
        let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
        let (task, limits, shared) =
            file::resolve(text, plan, &names).map_err(|source| ProblemError::File { path: path.to_owned(), source })?;
        let hash = kinds::hash(&task, &shared.to_string());
        Ok(Self { task, limits, hash, names, file: path.to_owned() })
    }

    /// Learning in rounds by nodes of these names.
    pub fn of_rounds(task: Arc<dyn RoundTask>, names: Arc<Vec<String>>) -> Self {
        let limits = StoppingCriteria { tolerance: 0.0, iterations: task.rules().rounds() };
        Self { limits, hash: task.hash(), names, file: PathBuf::new(), task: ProblemTask::Rounds(task) }
    }

    /// The names of nodes of a problem over cliques that have no `[[node]]` entry and take the defaults.
    pub fn defaulted(&self) -> Vec<&str> {
        let has_entry = |node: usize| match &self.task {
            ProblemTask::Allocation(task) => task.preferences.contains_key(&node),
            ProblemTask::Coupled(task) => task.entered.contains(&node),
            _ => true,
        };
        let names = self.names.iter().enumerate();
        names.filter(|(node, _)| !has_entry(*node)).map(|(_, name)| name.as_str()).collect()
    }

    /// The use that the nodes make of a plan that runs as this schedule.
    ///
    /// # Errors
    /// As [`CommunicationPlan::of`].
    pub fn communication(
        &self,
        plan: &Plan,
        schedule: Arc<Schedule>,
    ) -> Result<CommunicationPlan, CommunicationPlanError> {
        match &self.task {
            ProblemTask::Regression(_) => CommunicationPlan::of(plan, schedule),
            // Members of cliques exchange messages along links, whatever the matrix is; sums go over trees.
            ProblemTask::Allocation(_) | ProblemTask::Coupled(_) | ProblemTask::NetworkLasso(_) => {
                CommunicationPlan::averaging(plan, schedule, Averaging::Exact)
            }
            ProblemTask::Robust(task) => CommunicationPlan::averaging(plan, schedule, task.averaging),
            ProblemTask::Rounds(_) => CommunicationPlan::averaging(plan, schedule, Averaging::Exact),
        }
    }

    /// Checks that the plan can carry the problem: every two members of a clique have to be linked both ways.
    ///
    /// # Errors
    /// A clique and two of its nodes that are not linked both ways.
    pub fn check_links(&self, communication: &CommunicationPlan) -> Result<(), ProblemError> {
        let cliques: Vec<(&String, &BTreeSet<usize>)> = match &self.task {
            ProblemTask::Allocation(task) => task.budgets.all().iter().map(|one| (&one.name, &one.members)).collect(),
            ProblemTask::Coupled(task) => task.cliques().iter().map(|one| (&one.name, &one.members)).collect(),
            _ => return Ok(()),
        };
        for (name, members) in cliques {
            let pairs = members.iter().flat_map(|&a| members.range(a + 1..).map(move |&b| (a, b)));
            if let Some((a, b)) = pairs.into_iter().find(|&(a, b)| !communication.hear_each_other(a, b)) {
                return Err(ProblemError::NotLinked {
                    path: self.file.clone(),
                    clique: name.clone(),
                    one: self.names[a].clone(),
                    other: self.names[b].clone(),
                });
            }
        }
        Ok(())
    }

    /// The parts of all nodes, where all tables are at hand: the problem is checked as a whole.
    ///
    /// # Errors
    /// A table cannot be used, something is missing, budgets contradict each other, or the costs have no least value.
    pub fn parts(&self) -> Result<Vec<Part>, ProblemError> {
        match &self.task {
            ProblemTask::Regression(task) => {
                let tables = self.tables(&task.source, &|path| read_table(path, task))?;
                let part = |table| Part::Regression { task: Arc::clone(task), table };
                Ok(tables.into_iter().map(part).collect())
            }
            ProblemTask::Robust(task) => {
                let tables = self.tables(&task.source, &|path| task.read(path))?;
                let part = |(node, table)| self.robust_part(task, node, table);
                tables.into_iter().enumerate().map(part).collect()
            }
            ProblemTask::NetworkLasso(task) => {
                let tables = self.tables(&task.source, &|path| read_rows(path, &task.source))?;
                let part = |table| Part::NetworkLasso { task: Arc::clone(task), table };
                Ok(tables.into_iter().map(part).collect())
            }
            ProblemTask::Rounds(_) | ProblemTask::Coupled(_) => {
                (0..self.names.len()).map(|node| self.part(node)).collect()
            }
            ProblemTask::Allocation(task) => {
                let parts = (0..self.names.len()).map(|node| self.part(node)).collect::<Result<Vec<Part>, _>>()?;
                let preferences: Vec<Preference> = (0..self.names.len()).map(|node| task.preference(node)).collect();
                task.budgets
                    .check_all(&preferences)
                    .map_err(|source| ProblemError::Unsolvable { path: self.file.clone(), source })?;
                Ok(parts)
            }
        }
    }

    /// The part of one node.
    ///
    /// # Errors
    /// Its table cannot be used, or its preference is not convex or has contradictory bounds.
    pub fn part(&self, node: usize) -> Result<Part, ProblemError> {
        match &self.task {
            ProblemTask::Regression(task) => {
                let table = self.table_of(&task.source, node, &|path| read_table(path, task))?;
                Ok(Part::Regression { task: Arc::clone(task), table })
            }
            ProblemTask::Robust(task) => {
                let table = self.table_of(&task.source, node, &|path| task.read(path))?;
                self.robust_part(task, node, table)
            }
            ProblemTask::Coupled(task) => Ok(Part::Coupled { task: Arc::clone(task), own: task.own(node) }),
            ProblemTask::NetworkLasso(task) => {
                let table = self.table_of(&task.source, node, &|path| read_rows(path, &task.source))?;
                Ok(Part::NetworkLasso { task: Arc::clone(task), table })
            }
            ProblemTask::Rounds(_) => self.round_part(node, Box::<MemoryStore>::default()),
            ProblemTask::Allocation(task) => {
                let preference = task.preference(node);
                task.budgets
                    .check_one(node, &preference)
                    .map_err(|source| ProblemError::Preference { path: self.file.clone(), source })?;
                Ok(Part::Allocation { task: Arc::clone(task), preference })
            }
        }
    }

    /// The part of one node; learning in rounds keeps its rounds in `store`. For other problems as
    /// [`part`](Self::part).
    ///
    /// # Errors
    /// As of `part`.
    pub fn part_that_keeps(&self, node: usize, store: Box<dyn RoundStore>) -> Result<Part, ProblemError> {
        match &self.task {
            ProblemTask::Rounds(_) => self.round_part(node, store),
            _ => self.part(node),
        }
    }

    fn round_part(&self, node: usize, store: Box<dyn RoundStore>) -> Result<Part, ProblemError> {
        let ProblemTask::Rounds(task) = &self.task else { return self.part(node) };
        let learning = task
            .open(node, &self.names)
            .map_err(|source| ProblemError::Learning { node: self.names[node].clone(), source })?;
        Ok(Part::Rounds(RoundPart::new(Arc::clone(task), learning, store)))
    }

    fn robust_part(&self, task: &Arc<RobustTask>, node: usize, table: RegressionTable) -> Result<Part, ProblemError> {
        let named = |source| ProblemError::Samples { node: self.names[node].clone(), source: Box::new(source) };
        task.check(&table).map_err(named)?;
        Ok(Part::Robust { task: Arc::clone(task), table })
    }
}

fn read_text(path: &Path) -> Result<String, ProblemError> {
    let unreadable = |source| ProblemError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let mut file = InputFile::open(path).map_err(unreadable)?.take(MOST_BYTES + 1);
    let bytes = file.read_to_string(&mut text).map_err(unreadable)? as u64;
    if bytes > MOST_BYTES {
        return Err(ProblemError::TooLong { path: path.to_owned(), bytes });
    }
    Ok(text)
}
