//! Errors of schedules.

use thiserror::Error;

use super::{MAX_NODES, MAX_PERIOD, NodeId};

/// An error in a plan.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Too few or too many nodes.
    #[error("a plan needs 1 to {MAX_NODES} nodes, this one has {nodes}")]
    Nodes {
        /// The number of nodes.
        nodes: usize,
    },
    /// Too few or too many steps.
    #[error("a plan needs 1 to {MAX_PERIOD} steps, this one has {steps}")]
    Period {
        /// The number of steps.
        steps: usize,
    },
    /// Rounds do not fill a period.
    #[error("a round of {steps} steps does not divide a period of {period}")]
    RoundLength {
        /// Steps in a round.
        steps: usize,
        /// Steps in a period.
        period: usize,
    },
    /// `keep` does not have one entry per node.
    #[error("step {step}: keep has {got} entries for {nodes} nodes; give one per node")]
    KeepLength {
        /// The step.
        step: usize,
        /// The number of entries.
        got: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A kept fraction is not within 0 ..= 1.
    #[error("step {step}: node {node} keeps {keep}, which is not within 0..=1")]
    Keep {
        /// The step.
        step: usize,
        /// The node.
        node: NodeId,
        /// The fraction it keeps.
        keep: f64,
    },
    /// A link names a node the plan does not have.
    #[error("step {step}: a link names node {node}, but the plan has nodes 0..{nodes}")]
    UnknownNode {
        /// The step.
        step: usize,
        /// The node that does not exist.
        node: NodeId,
        /// The number of nodes.
        nodes: usize,
    },
    /// A node sends to itself.
    #[error("step {step}: node {node} sends to itself; put that weight into keep")]
    SelfLink {
        /// The step.
        step: usize,
        /// The node.
        node: NodeId,
    },
    /// A weight is not within (0, 1].
    #[error("step {step}: link {from} -> {to} has weight {weight}, which is not within (0, 1]")]
    Weight {
        /// The step.
        step: usize,
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The weight.
        weight: f64,
    },
    /// A link is listed twice in one step.
    #[error("step {step}: link {from} -> {to} is listed twice; add the weights up")]
    RepeatedLink {
        /// The step.
        step: usize,
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
    },
    /// The fractions that a node keeps and sends do not add up to one.
    #[error("step {step}: what node {node} keeps and sends sums to {sum}, not 1")]
    ColumnSum {
        /// The step.
        step: usize,
        /// The node.
        node: NodeId,
        /// The sum.
        sum: f64,
    },
}
