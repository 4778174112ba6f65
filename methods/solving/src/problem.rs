//! Problem files: the task that all nodes share, and the part of each node in it.

mod error;
mod file;
mod file_error;
mod kinds;
#[cfg(test)]
mod mutated_inputs;
mod node_name;
mod robust;
mod words;

pub use error::{ProblemError, SampleError, TableFileError};
pub use file_error::FileError;
pub use kinds::CONVEX_KINDS;
pub(crate) use robust::ROW;
pub use robust::{ColumnScaling, NominalWeights, RobustTask};

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_plaintext::InputFile;
use mingle_planner::Plan;
use mingle_protocol::Schedule;
use mingle_solver::{Budgets, DistanceMetric, Preference, Regression, RegressionTable, Selection};
use serde::Serialize;

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
    /// The most cliques that any node is in.
    pub(crate) fn most_memberships(&self) -> usize {
        self.budgets.terms().iter().flat_map(|term| term.memberships.iter().copied()).max().unwrap_or(1)
    }

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
            Self::Allocation { task, .. } => task.most_memberships().max(4),
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

    /// The names of nodes with shared budgets that have no `[[node]]` entry and take the defaults.
    pub fn defaulted(&self) -> Vec<&str> {
        let ProblemTask::Allocation(task) = &self.task else { return Vec::new() };
        let names = self.names.iter().enumerate();
        names.filter(|(node, _)| !task.preferences.contains_key(node)).map(|(_, name)| name.as_str()).collect()
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
            ProblemTask::Regression(_) | ProblemTask::Allocation(_) => CommunicationPlan::of(plan, schedule),
            ProblemTask::Robust(task) => CommunicationPlan::averaging(plan, schedule, task.averaging),
            ProblemTask::Rounds(_) => CommunicationPlan::averaging(plan, schedule, Averaging::Exact),
        }
    }

    /// Checks that the plan can carry the problem: every two members of a clique have to be linked both ways.
    ///
    /// # Errors
    /// A clique and two of its nodes that are not linked both ways.
    pub fn check_links(&self, communication: &CommunicationPlan) -> Result<(), ProblemError> {
        let ProblemTask::Allocation(task) = &self.task else { return Ok(()) };
        for clique in task.budgets.all() {
            let members: Vec<usize> = clique.members.iter().copied().collect();
            for (at, &a) in members.iter().enumerate() {
                if let Some(&b) = members[at + 1..].iter().find(|&&b| !communication.hear_each_other(a, b)) {
                    return Err(ProblemError::NotLinked {
                        path: self.file.clone(),
                        clique: clique.name.clone(),
                        one: self.names[a].clone(),
                        other: self.names[b].clone(),
                    });
                }
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
            ProblemTask::Rounds(_) => (0..self.names.len()).map(|node| self.part(node)).collect(),
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

    /// The tables of all nodes.
    fn tables(&self, source: &TableSource, read: &ReadTable<'_>) -> Result<Vec<RegressionTable>, ProblemError> {
        let nodes = self.names.len();
        if source.deal {
            let whole = self.table(source, 0, read)?;
            return (0..nodes).map(|node| dealt(&whole, node, &self.names)).collect();
        }
        let tables =
            (0..nodes).map(|node| self.table(source, node, read)).collect::<Result<Vec<RegressionTable>, _>>()?;
        for (node, table) in tables.iter().enumerate() {
            if table.columns() != tables[0].columns() {
                return Err(ProblemError::Columns {
                    first: self.names[0].clone(),
                    other: self.names[node].clone(),
                    first_columns: tables[0].listed_columns(),
                    other_columns: table.listed_columns(),
                });
            }
        }
        Ok(tables)
    }

    /// Further tables for the sites of a robust model, such as test data: one that is dealt out, or one for each site
    /// with `{node}` in its name. `like` are the sites' own. Empty for other problems.
    ///
    /// # Errors
    /// A table cannot be used, or its columns differ from those of `like`.
    pub fn tables_like(&self, data: &str, like: &[RegressionTable]) -> Result<Vec<RegressionTable>, ProblemError> {
        let ProblemTask::Robust(task) = &self.task else { return Ok(Vec::new()) };
        let unreadable = |source| ProblemError::Unreadable { path: data.into(), source };
        let data = std::path::absolute(data).map_err(unreadable)?.to_string_lossy().into_owned();
        let source = TableSource { deal: !data.contains(NODE), data, selection: task.source.selection.clone() };
        let tables = self.tables(&source, &|path| task.read(path))?;
        if let (Some(own), Some(other)) = (like.first(), tables.first())
            && own.columns() != other.columns()
        {
            return Err(ProblemError::Columns {
                first: self.names[0].clone(),
                other: "the test data".to_owned(),
                first_columns: own.listed_columns(),
                other_columns: other.listed_columns(),
            });
        }
        Ok(tables)
    }

    /// The table of one node.
    fn table_of(
        &self,
        source: &TableSource,
        node: usize,
        read: &ReadTable<'_>,
    ) -> Result<RegressionTable, ProblemError> {
        match source.deal {
            true => dealt(&self.table(source, 0, read)?, node, &self.names),
            false => self.table(source, node, read),
        }
    }

    fn table(&self, source: &TableSource, node: usize, read: &ReadTable<'_>) -> Result<RegressionTable, ProblemError> {
        let name = &self.names[node];
        if source.data.contains(NODE) && Path::new(name).components().count() != 1 {
            return Err(ProblemError::FileName { name: name.clone() });
        }
        let beside = self.file.parent().unwrap_or(Path::new("."));
        let path = beside.join(source.data.replace(NODE, name));
        read(&path).map_err(|source| ProblemError::Table { path, source })
    }
}

/// A reader of tables for one kind of problem.
type ReadTable<'a> = dyn Fn(&PathBuf) -> Result<RegressionTable, TableFileError> + 'a;

fn dealt(whole: &RegressionTable, node: usize, names: &[String]) -> Result<RegressionTable, ProblemError> {
    let table = whole.dealt(node, names.len());
    if table.row_count() == 0 {
        return Err(ProblemError::TooFewRows { rows: whole.row_count(), nodes: names.len() });
    }
    Ok(table)
}

fn read_table(path: &Path, task: &RegressionTask) -> Result<RegressionTable, TableFileError> {
    let table = RegressionTable::read(BufReader::new(InputFile::open(path)?), &task.source.selection)?;
    task.regression.check(table.columns())?;
    Ok(table)
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
