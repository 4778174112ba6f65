//! What a node has found, and what shows that it is right.

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
    /// BLAKE3 of what all peers agreed to solve.
    pub problem: String,
    /// Iterations that it took.
    pub iterations: u64,
    /// Whether no node moved by more than the tolerance in the end.
    pub converged: bool,
    /// The step size that all agreed on.
    pub step: f64,
    /// The objective of the whole problem.
    pub objective: f64,
    /// What shows that it is right.
    pub certificate: Certificate,
    /// What was found.
    pub answer: Answer,
}

/// What a node's work came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A problem is solved.
    Solution(Box<Solution>),
    /// Something was learned in rounds.
    Learned(Box<Learned>),
}

impl Finding {
    /// The solution, where a problem was solved.
    pub fn solution(&self) -> Option<&Solution> {
        if let Self::Solution(solution) = self { Some(solution) } else { None }
    }

    /// What was learned, where something was.
    pub fn learned(&self) -> Option<&Learned> {
        if let Self::Learned(learned) = self { Some(learned) } else { None }
    }

    /// What is to be said of it if it is none.
    pub fn not_solved(&self) -> Option<NotSolved> {
        self.solution().and_then(Solution::not_solved)
    }
}

/// What shows that a solution is one, over all nodes: each number is the worst of any node, and zero at the exact solution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// By how much the optimality conditions (Karush, Kuhn and Tucker) are violated, in the units of a gradient.
    pub kkt: f64,
    /// By how much a constraint is violated: two nodes' coefficients differ, or a budget is missed.
    pub violation: f64,
    /// How far the last iteration moved the node that moved most, as a share of its solution where that is larger than 1.
    pub residual: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Answer {
    /// Coefficients, the same for all nodes.
    SparseRegression {
        /// For the numbers as they are in the tables.
        coefficients: Vec<Coefficient>,
        /// What is added.
        intercept: f64,
        /// Rows of all tables.
        rows: u64,
    },
    /// What this node gets, and what its cliques pay.
    ResourceAllocation {
        /// The node's number.
        number: f64,
        /// Its cliques.
        cliques: Vec<Paid>,
    },
    /// A robust model, the same for all sites.
    Robust {
        /// For the numbers as they are in the tables.
        coefficients: Vec<Coefficient>,
        /// What is added, for the numbers as they are in the tables.
        intercept: f64,
        /// Of a classification: what a number below 0 says, and what one above.
        labels: Option<[String; 2]>,
        /// Of each column what is subtracted, and what it is divided by then.
        scaling: Vec<(f64, f64)>,
        /// The objective as the split variables of the method have it; it falls together with the objective at the solution.
        split_value: f64,
        /// By site.
        sites: Vec<RobustSite>,
        /// What a person ought to hear.
        warnings: Vec<String>,
    },
}

/// What a robust model is to one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RobustSite {
    /// The number of the site.
    pub site: usize,
    /// Its samples.
    pub samples: u64,
    /// How far the worst distribution may be from them.
    pub radius: f64,
    /// The mean loss of the model over the samples as they are.
    pub loss: f64,
    /// The largest expected loss under any distribution within the radius.
    pub worst_loss: f64,
    /// What the site weighs in the worst case.
    pub weight: f64,
}

/// One column's coefficient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The column.
    pub column: String,
    /// For the column as it is.
    pub value: f64,
    /// For the column with deviation 1: what the penalty is about.
    pub scaled: f64,
}

/// What a clique shares out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paid {
    /// Its name.
    pub clique: String,
    /// What its members' numbers have to sum to.
    pub budget: Option<f64>,
    /// What they sum to.
    pub sum: f64,
    /// By how much the least cost of all would grow for each unit that the budget were larger; none without a budget.
    pub price: Option<f64>,
}

impl Solution {
    /// What is to be said of it if it is none.
    pub fn not_solved(&self) -> Option<NotSolved> {
        let remedy = match &self.answer {
            Answer::SparseRegression { coefficients, rows, .. } if coefficients.len() as u64 > *rows => {
                "there are more columns than rows, so the iteration is slow: raise lambda, ridge, tolerance or iterations in the problem file"
            }
            Answer::SparseRegression { .. } => {
                "raise iterations or tolerance in the problem file, or give it some ridge"
            }
            Answer::ResourceAllocation { .. } => {
                "raise iterations or tolerance in the problem file; if the budgets are missed by more and more, they contradict each other"
            }
            Answer::Robust { .. } => {
                "raise iterations or tolerance in the problem file, or try another penalty: a third, or three times as much"
            }
        };
        (!self.converged).then_some(NotSolved { iterations: self.iterations, remedy })
    }

    /// The schema of a new solution.
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }
}

/// The iterations ended before the solution was there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not solved in {iterations} iterations: what is printed and written is where they led")]
pub struct NotSolved {
    /// How many there were.
    pub iterations: u64,
    /// What helps.
    pub remedy: &'static str,
}
