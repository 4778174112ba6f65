//! What a node has found, and what shows that it is right.

use serde::{Deserialize, Serialize};

/// The version of the solution file.
const SCHEMA: &str = "mingle.solution/1";

/// One node's solution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Solution {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// The node.
    pub(crate) node: usize,
    /// BLAKE3 of what all peers agreed to solve.
    pub(crate) problem: String,
    /// Iterations that it took.
    pub(crate) iterations: u64,
    /// Whether no node moved by more than the tolerance in the end.
    pub(crate) converged: bool,
    /// The step size that all agreed on.
    pub(crate) step: f64,
    /// The objective of the whole problem.
    pub(crate) objective: f64,
    /// What shows that it is right.
    pub(crate) certificate: Certificate,
    /// What was found.
    pub(crate) answer: Answer,
}

/// What shows that a solution is one, over all nodes: each number is the worst of any node, and zero at the exact solution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Certificate {
    /// By how much the optimality conditions (Karush, Kuhn and Tucker) are violated, in the units of a gradient.
    pub(crate) kkt: f64,
    /// By how much a constraint is violated: two nodes' coefficients differ, or a budget is missed.
    pub(crate) violation: f64,
    /// How far the last iteration moved the node that moved most, as a share of its solution where that is larger than 1.
    pub(crate) residual: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Answer {
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
}

/// One column's coefficient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coefficient {
    /// The column.
    pub(crate) column: String,
    /// For the column as it is.
    pub(crate) value: f64,
    /// For the column with deviation 1: what the penalty is about.
    pub(crate) scaled: f64,
}

/// What a clique shares out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Paid {
    /// Its name.
    pub(crate) clique: String,
    /// What its members' numbers have to sum to.
    pub(crate) budget: Option<f64>,
    /// What they sum to.
    pub(crate) sum: f64,
    /// By how much the least cost of all would grow for each unit that the budget were larger; none without a budget.
    pub(crate) price: Option<f64>,
}

impl Solution {
    /// The schema of a new solution.
    pub(crate) fn schema() -> String {
        SCHEMA.to_owned()
    }
}
