//! A node's solution, with its certificate.

use mingle_solver::{RegressionTable, Standardization};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::learning::Learned;

/// The version of the solution file.
const SCHEMA: &str = "mingle.solution/1";

/// One node's solution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// The version of the format.
    pub schema: String,
    /// The node.
    pub node: usize,
    /// BLAKE3 of the problem that all peers agreed to solve.
    pub problem: String,
    /// Iterations done.
    pub iterations: u64,
    /// `true` if no node moved by more than the tolerance in the last iteration, or the duality gap of a robust model
    /// was within it.
    pub converged: bool,
    /// The step size that all agreed on; of a robust model the penalty `c` at the start.
    pub step: f64,
    /// The objective of the whole problem.
    pub objective: f64,
    /// The certificate of the solution.
    pub certificate: Certificate,
    /// The answer to the problem.
    pub answer: Answer,
}

/// The outcome of a node's work.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The solution of a problem.
    Solution(Box<Solution>),
    /// The result of learning in rounds.
    Learned(Box<Learned>),
}

impl Finding {
    /// The solution, where a problem was solved.
    pub fn solution(&self) -> Option<&Solution> {
        if let Self::Solution(solution) = self { Some(solution) } else { None }
    }

    /// The result of learning, where something was learned.
    pub fn learned(&self) -> Option<&Learned> {
        if let Self::Learned(learned) = self { Some(learned) } else { None }
    }

    /// The reason and the remedy, if the problem was not solved.
    pub fn not_solved(&self) -> Option<NotSolved> {
        self.solution().and_then(Solution::not_solved)
    }
}

/// Evidence that a solution is right, over all nodes: each number is the worst of any node, and zero at the exact
/// solution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Of a robust model, the duality gap: no model within reach has an objective that is lower by more. Each scaled
    /// coefficient may differ by twice the largest one, and at least by twice the mean magnitude of targets (1 for
    /// labels). A model `k` times as far away is better by at most `k` times the gap.
    #[serde(default)]
    pub gap: Option<f64>,
    /// By how much the optimality conditions (Karush, Kuhn and Tucker) are violated, in the units of a gradient.
    pub kkt: f64,
    /// By how much a constraint is violated: two nodes' coefficients differ, or a budget is missed.
    pub violation: f64,
    /// The last move of the node that moved most, as a share of its solution where that exceeds 1. Of a robust model,
    /// the last change of the objective, as a share of it where it exceeds 1.
    pub residual: f64,
}

/// The answer to a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Answer {
    /// Coefficients of a regression, the same for all nodes.
    SparseRegression {
        /// By column, for the numbers as they are in the tables.
        coefficients: Vec<Coefficient>,
        /// The constant term.
        intercept: f64,
        /// Rows of all tables.
        rows: u64,
    },
    /// The share of this node, and the state of its cliques.
    ResourceAllocation {
        /// The node's number.
        number: f64,
        /// Its cliques.
        cliques: Vec<Paid>,
    },
    /// The variables of this node, and the state of its cliques.
    CliqueCoupling {
        /// By component.
        variables: Vec<f64>,
        /// Its cliques.
        cliques: Vec<CliqueState>,
    },
    /// The linear model of this node, drawn towards those of the nodes that it is linked to.
    NetworkLasso {
        /// By column, for the numbers as they are in the tables.
        coefficients: Vec<Coefficient>,
        /// The constant term.
        intercept: f64,
        /// Rows of this node's table.
        rows: u64,
        /// The distances of the models of linked nodes.
        neighbours: Vec<ModelDistance>,
    },
    /// A distributionally robust model, the same for all sites.
    Robust {
        /// By column, for the numbers as they are in the tables.
        coefficients: Vec<Coefficient>,
        /// The constant term, for the numbers as they are in the tables.
        intercept: f64,
        /// The labels of a classification: for a prediction below 0, and above.
        labels: Option<[String; 2]>,
        /// For each column, the number that is subtracted and then the one that is divided by.
        scaling: Vec<(f64, f64)>,
        /// The objective in the split variables of the method; at the solution it equals the objective.
        split_value: f64,
        /// The sites, by number.
        sites: Vec<RobustSite>,
        /// Warnings for the operator.
        warnings: Vec<String>,
    },
}

/// A robust model's performance at one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RobustSite {
    /// The number of the site.
    pub site: usize,
    /// Its samples.
    pub samples: u64,
    /// The radius of the Wasserstein ball around its samples.
    pub radius: f64,
    /// The mean loss of the model over the samples as they are.
    pub loss: f64,
    /// The largest expected loss under any distribution within the radius.
    pub worst_loss: f64,
    /// The weight of the site in the worst case.
    pub weight: f64,
}

/// One column's coefficient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The column.
    pub column: String,
    /// The coefficient for the column as it is in the table.
    pub value: f64,
    /// The coefficient for the scaled column, to which the penalty applies.
    pub scaled: f64,
}

impl Coefficient {
    /// The coefficients of a table's columns, from those of scaled columns, and the shift of the constant term.
    pub(crate) fn of(table: &RegressionTable, scaling: &Standardization, scaled: &[f64]) -> (Vec<Self>, f64) {
        let (values, shift) = scaling.back(scaled);
        let columns = table.columns().iter().zip(values.iter().zip(scaled));
        let named = columns.map(|(column, (&value, &scaled))| Self { column: column.clone(), value, scaled });
        (named.collect(), shift)
    }
}

/// The state of a clique whose members' variables are coupled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CliqueState {
    /// Its name.
    pub clique: String,
    /// The coupling.
    pub coupling: String,
    /// By how much its constraint is missed.
    pub violation: f64,
    /// By component, by how much the least total cost would grow for each unit by which its budget were larger; empty
    /// without a budget.
    pub prices: Vec<f64>,
}

/// The distance of a linked node's model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelDistance {
    /// The number of the node.
    pub node: usize,
    /// The Euclidean distance of the scaled coefficients, the constant term included.
    pub distance: f64,
}

/// The state of a clique's shared budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paid {
    /// Its name.
    pub clique: String,
    /// The sum that its members' numbers have to have.
    pub budget: Option<f64>,
    /// The sum that they have.
    pub sum: f64,
    /// By how much the least total cost would grow for each unit by which the budget were larger; none without a
    /// budget.
    pub price: Option<f64>,
}

impl Solution {
    /// The reason and the remedy, if the iterations ended before convergence.
    pub fn not_solved(&self) -> Option<NotSolved> {
        let remedy = match &self.answer {
            Answer::SparseRegression { .. } => {
                "raise iterations or tolerance in the problem file, or give it some ridge"
            }
            Answer::ResourceAllocation { .. } => {
                "raise iterations or tolerance in the problem file; if the budgets are missed by more and more, they contradict each other"
            }
            Answer::CliqueCoupling { .. } => {
                "raise iterations or tolerance in the problem file; if constraints are missed by more than a little, they contradict each other"
            }
            Answer::NetworkLasso { .. } => {
                "raise iterations or tolerance in the problem file, or give it some ridge: nodes with few rows have many models that fit"
            }
            Answer::Robust { .. } => {
                "raise iterations or tolerance in the problem file; the duality gap says how far the objective still is from the least one"
            }
        };
        (!self.converged).then_some(NotSolved { iterations: self.iterations, remedy })
    }

    /// The schema of a new solution.
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }
}

/// The iterations ended before the solution was reached.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not solved in {iterations} iterations: what is printed and written is where they led")]
pub struct NotSolved {
    /// The iterations done.
    pub iterations: u64,
    /// The advice to give.
    pub remedy: &'static str,
}
