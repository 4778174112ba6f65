//! Errors of schedules.

use thiserror::Error;

use super::{MAX_NODES, MAX_PERIOD, NodeId};

/// An error in a plan.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ScheduleError {
    /// Too few or too many nodes.
    #[error("a plan needs 1 to {MAX_NODES} nodes, this one has {nodes}")]
    Nodes { nodes: usize },
    /// Too few or too many steps.
    #[error("a plan needs 1 to {MAX_PERIOD} steps, this one has {steps}")]
    Period { steps: usize },
    /// Rounds do not fill a period.
    #[error("a round of {steps} steps does not divide a period of {period}")]
    RoundLength { steps: usize, period: usize },
    /// `keep` does not have one entry per node.
    #[error("step {step}: keep has {got} entries for {nodes} nodes; give one per node")]
    KeepLength { step: usize, got: usize, nodes: usize },
    /// A kept fraction is not within 0 ..= 1.
    #[error("step {step}: node {node} keeps {keep}, which is not within 0..=1")]
    Keep { step: usize, node: NodeId, keep: f64 },
    /// A link names a node the plan does not have.
    #[error("step {step}: a link names node {node}, but the plan has nodes 0..{nodes}")]
    UnknownNode { step: usize, node: NodeId, nodes: usize },
    /// A node sends to itself.
    #[error("step {step}: node {node} sends to itself; put that weight into keep")]
    SelfLink { step: usize, node: NodeId },
    /// A weight is not within (0, 1].
    #[error("step {step}: link {from} -> {to} has weight {weight}, which is not within (0, 1]")]
    Weight { step: usize, from: NodeId, to: NodeId, weight: f64 },
    /// A link is listed twice in one step.
    #[error("step {step}: link {from} -> {to} is listed twice; add the weights up")]
    RepeatedLink { step: usize, from: NodeId, to: NodeId },
    /// The fractions that a node keeps and sends do not add up to one.
    #[error("step {step}: what node {node} keeps and sends sums to {sum}, not 1")]
    ColumnSum { step: usize, node: NodeId, sum: f64 },
}
