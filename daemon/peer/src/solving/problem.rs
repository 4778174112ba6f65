//! Problem files: what is solved, and what each node brings to it.

mod file;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_planner::Plan;
use mingle_solver::{Budgets, Metric, Preference, Regression, Selection, Table};
use serde::Serialize;

use super::ways::Ways;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::plan::read_text;

/// Stands for the name of the node in the name of a table.
const NODE: &str = "{node}";

/// A problem file, resolved for a plan.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is solved.
    pub task: Task,
    /// When to stop.
    pub limits: Limits,
    /// BLAKE3 of all that the peers have to agree on.
    pub hash: [u8; 32],
    /// The names of the nodes.
    pub names: Arc<Vec<String>>,
    file: PathBuf,
}

/// What is solved.
#[derive(Clone, Debug)]
pub enum Task {
    /// Which columns explain another.
    Regression(Arc<RegressionTask>),
    /// Budgets that cliques share out.
    Allocation(Arc<AllocationTask>),
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// No node moves by a larger share of its solution.
    pub tolerance: f64,
    /// Iterations at most.
    pub iterations: u64,
}

/// Sparse regression.
#[derive(Clone, Debug)]
pub struct RegressionTask {
    pub regression: Regression,
    selection: Selection,
    /// Whether columns are brought to mean 0 and deviation 1 over all nodes.
    pub standardize: bool,
    data: String,
    deal: bool,
}

/// Shared budgets.
#[derive(Clone, Debug)]
pub struct AllocationTask {
    pub budgets: Budgets,
    pub metric: Metric,
    /// Of those nodes that the file speaks of.
    preferences: BTreeMap<usize, Preference>,
}

impl AllocationTask {
    /// The most cliques that any node is in.
    pub fn most_memberships(&self) -> usize {
        self.budgets.terms().iter().flat_map(|term| term.memberships.iter().copied()).max().unwrap_or(1)
    }

    /// What a node wants: as the file says, else the defaults.
    fn preference(&self, node: usize) -> Preference {
        self.preferences.get(&node).copied().unwrap_or_default()
    }
}

/// What one node brings.
#[derive(Clone, Debug)]
pub enum Part {
    /// Its rows.
    Regression { task: Arc<RegressionTask>, table: Table },
    /// What it wants.
    Allocation { task: Arc<AllocationTask>, preference: Preference },
}

impl Part {
    /// The most numbers in any message about it: bounds of all coefficients, or a variable, its gradient and its bounds, or
    /// multipliers of all cliques of a node.
    pub fn longest_message(&self) -> usize {
        match self {
            Self::Regression { table, .. } => 2 * table.columns().len() + 2,
            Self::Allocation { task, .. } => task.most_memberships().max(4),
        }
    }
}

impl Problem {
    /// Reads a problem file for the nodes of a plan.
    ///
    /// # Errors
    /// The file cannot be read, names what is not there, or is not convex; each with its name.
    pub fn read(path: &Path, plan: &Plan) -> Result<Self> {
        let text = read_text(path, "problem")?;
        let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
        let doing = format!("the problem {} does not hold", path.display());
        let (task, limits, shared) = file::resolve(&text, plan, &names).context(ErrorKind::BadInput, doing)?;
        let hash = *blake3::hash(shared.to_string().as_bytes()).as_bytes();
        Ok(Self { task, limits, hash, names, file: path.to_owned() })
    }

    /// In a line.
    pub fn describe(&self) -> String {
        match &self.task {
            Task::Regression(task) => {
                let Regression { lambda, ridge, nonnegative, groups } = &task.regression;
                let mut words = format!("sparse regression of {}, lambda {lambda}", task.selection.target);
                if *ridge > 0.0 {
                    words += &format!(", ridge {ridge}");
                }
                if *nonnegative {
                    words += ", nonnegative";
                }
                if !groups.is_empty() {
                    words += &format!(", {} groups", groups.len());
                }
                words
            }
            Task::Allocation(task) => {
                let cliques = task.budgets.all();
                format!(
                    "{} nodes share {} budgets",
                    self.names.len(),
                    cliques.iter().filter(|c| c.budget.is_some()).count()
                )
            }
        }
    }

    /// In a few words.
    pub fn title(&self) -> String {
        match &self.task {
            Task::Regression(task) => format!("Regression of {}", task.selection.target),
            Task::Allocation(task) => format!("{} cliques with budgets", task.budgets.all().len()),
        }
    }

    /// The nodes of shared budgets that the file has no `[[node]]` for, by name: they want what is wanted by default.
    pub fn defaulted(&self) -> Vec<&str> {
        let Task::Allocation(task) = &self.task else { return Vec::new() };
        let names = self.names.iter().enumerate();
        names.filter(|(node, _)| !task.preferences.contains_key(node)).map(|(_, name)| name.as_str()).collect()
    }

    /// How its nodes come to the solution, in words.
    pub fn way(&self, ways: &Ways) -> String {
        match &self.task {
            Task::Regression(_) => ways.agreement.describe(),
            Task::Allocation(_) => "splitting over cliques, one message to each member an iteration".to_owned(),
        }
    }

    /// Checks that the plan can carry the problem: every two members of a clique have to hear each other.
    ///
    /// # Errors
    /// The clique and two of its nodes.
    pub fn check_links(&self, ways: &Ways) -> Result {
        let Task::Allocation(task) = &self.task else { return Ok(()) };
        for clique in task.budgets.all() {
            let members: Vec<usize> = clique.members.iter().copied().collect();
            for (at, &a) in members.iter().enumerate() {
                if let Some(&b) = members[at + 1..].iter().find(|&&b| !ways.hear_each_other(a, b)) {
                    let (a, b) = (&self.names[a], &self.names[b]);
                    return Err(Error::new(
                        ErrorKind::BadInput,
                        format!(
                            "{}: clique {} is none of the plan: {a} and {b} do not hear each other",
                            self.file.display(),
                            clique.name
                        ),
                    )
                    .hint("make the plan with --method clique-phi from a topology in which all members are linked"));
                }
            }
        }
        Ok(())
    }

    /// What every node brings, where all of it is at hand: then the whole problem is checked.
    ///
    /// # Errors
    /// A table cannot be used, something is missing, budgets contradict each other, or the costs have no least value.
    pub fn parts(&self) -> Result<Vec<Part>> {
        match &self.task {
            Task::Regression(task) => {
                let tables = self.tables(task)?;
                let part = |table| Part::Regression { task: Arc::clone(task), table };
                Ok(tables.into_iter().map(part).collect())
            }
            Task::Allocation(task) => {
                let parts = (0..self.names.len()).map(|node| self.part(node)).collect::<Result<Vec<Part>>>()?;
                let preferences: Vec<Preference> = (0..self.names.len()).map(|node| task.preference(node)).collect();
                task.budgets
                    .check_all(&preferences)
                    .context(ErrorKind::BadInput, format!("the problem {} cannot be solved", self.file.display()))?;
                Ok(parts)
            }
        }
    }

    /// What one node brings.
    ///
    /// # Errors
    /// Its table cannot be used, or what it wants is not convex or within no bounds.
    pub fn part(&self, node: usize) -> Result<Part> {
        match &self.task {
            Task::Regression(task) => {
                let table = match task.deal {
                    true => dealt(&self.table(task, 0)?, node, &self.names)?,
                    false => self.table(task, node)?,
                };
                Ok(Part::Regression { task: Arc::clone(task), table })
            }
            Task::Allocation(task) => {
                let preference = task.preference(node);
                let doing = format!("the problem {} does not hold", self.file.display());
                task.budgets.check_one(node, &preference).context(ErrorKind::BadInput, doing)?;
                Ok(Part::Allocation { task: Arc::clone(task), preference })
            }
        }
    }

    /// The tables of all nodes.
    fn tables(&self, task: &RegressionTask) -> Result<Vec<Table>> {
        let nodes = self.names.len();
        if task.deal {
            let whole = self.table(task, 0)?;
            return (0..nodes).map(|node| dealt(&whole, node, &self.names)).collect();
        }
        let tables = (0..nodes).map(|node| self.table(task, node)).collect::<Result<Vec<Table>>>()?;
        for (node, table) in tables.iter().enumerate() {
            if table.columns() != tables[0].columns() {
                let (first, other) = (&self.names[0], &self.names[node]);
                return Err(Error::new(
                    ErrorKind::BadInput,
                    format!(
                        "the tables of {first} and {other} do not fit together: {} against {}",
                        tables[0].listed_columns(),
                        table.listed_columns()
                    ),
                )
                .hint("columns = [...] in the problem file says which are used, in which order"));
            }
        }
        Ok(tables)
    }

    fn table(&self, task: &RegressionTask, node: usize) -> Result<Table> {
        let name = &self.names[node];
        if task.data.contains(NODE) && Path::new(name).components().count() != 1 {
            return Err(Error::new(
                ErrorKind::BadInput,
                format!("a node called `{name}` cannot have a file of its name"),
            ));
        }
        let beside = self.file.parent().unwrap_or(Path::new("."));
        let path = beside.join(task.data.replace(NODE, name));
        let doing = format!("the table {} cannot be used", path.display());
        let file = File::open(&path).context(ErrorKind::BadInput, &doing)?;
        let table = Table::read(BufReader::new(file), &task.selection).context(ErrorKind::BadInput, &doing)?;
        task.regression.check(table.columns()).context(ErrorKind::BadInput, &doing)?;
        Ok(table)
    }
}

fn dealt(whole: &Table, node: usize, names: &[String]) -> Result<Table> {
    let table = whole.dealt(node, names.len());
    if table.row_count() == 0 {
        let (rows, nodes) = (whole.row_count(), names.len());
        return Err(Error::new(ErrorKind::BadInput, format!("{rows} rows cannot be dealt out to {nodes} nodes")));
    }
    Ok(table)
}
