//! Errors of designs.

use super::Method;
use crate::{plan::PlanError, spectrum::Unresolved, topology::TopologyError};

/// The reason why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum DesignError {
    /// More nodes than the design can search.
    #[error(
        "{nodes} nodes are too many for {method}, which takes {limit}: use {}, which has no such limit",
        if method.is_for_solvers() { "clique-phi" } else { "exact-average" }
    )]
    TooManyNodes { nodes: usize, method: Method, limit: usize },
    /// The topology is too long for an exact average.
    #[error(
        "an exact average of {nodes} nodes takes {steps} steps or more, there and back from a node in the middle, and a plan has \
         {limit} at most: use nguyen-he, tuned, d-psgd or sgp-uniform, or a topology of less diameter"
    )]
    TooLong { nodes: usize, steps: usize, limit: usize },
    /// So many nodes have to send one after the other that a schedule takes too long to compute.
    #[error(
        "{method} on {nodes} nodes was given up after {slots} slots, with {left} nodes still to be scheduled: too many nodes \
         share one receiver for so large a broadcast medium, use --medium point-to-point"
    )]
    TooCrowded { method: Method, nodes: usize, slots: usize, left: usize },
    /// `K` is larger than the number of edges left.
    #[error("{asked} extra edges are too many: a spanning tree leaves {available} of this topology")]
    TooManyExtraEdges { asked: usize, available: usize },
    /// A number of extra edges was given to a method that has none.
    #[error(
        "method {method} does not take a number of extra edges: it is a choice of nguyen-he only, leave it at auto"
    )]
    NoExtraEdges { method: Method },
    /// Step 4 was to be left out of a method that has none.
    #[error("method {method} has no step 4 to leave out: it is one of nguyen-he only")]
    NoAugmentation { method: Method },
    /// The slots of a round exceed the budget.
    #[error(
        "method {method} found no plan within {budget} slots: the least it found takes {needed}; raise the budget or the \
         effort, or try another method"
    )]
    BudgetSlots { method: Method, budget: usize, needed: usize },
    /// A node needs more receivers than it may have.
    #[error(
        "method {method} found no plan in which no node has more than {limit} receivers: it needs {needed}; raise the \
         limit, or try another method"
    )]
    DegreeLimit { method: Method, limit: usize, needed: usize },
    /// The base graph lacks a link that the design is made of.
    #[error(
        "method {method} needs a link from {from} to {to}, which the topology does not have: use a topology that does, \
         {}complete:n={nodes}, or a design for any topology, such as exact-average",
        if matches!(method, Method::BaseGraph(_)) { String::new() } else { format!("exponential:n={nodes} or ") }
    )]
    MissingLink { method: Method, from: String, to: String, nodes: usize },
    /// The design is made for the other kind of medium.
    #[error("method {method} schedules broadcasts: it has no plan for a point-to-point medium")]
    BroadcastOnly { method: Method },
    /// A budget of slots for a medium that has none.
    #[error("a point-to-point medium has no slots: leave the budget out, and limit receivers or uploads instead")]
    NoSlots,
    /// No sequence of sampled steps joins all nodes.
    #[error("method {method} drew periods of up to {steps} steps, and none joins all nodes: give it a budget of slots")]
    SampleDisconnected {
        /// The method.
        method: Method,
        /// The number of steps of the longest.
        steps: usize,
    },
    /// A text is not a number of extra edges.
    #[error("{text:?} is not a number of extra edges: write \"auto\" or a whole number")]
    NotExtraEdges { text: String },
    /// A node would send more than it may.
    #[error(
        "method {method} has a node send {needed} bytes in a round, more than the {limit} allowed: raise the limit, lower \
         the number of receivers, or try another method"
    )]
    Upload { method: Method, limit: u64, needed: u64 },
    /// A limit in bytes without the size of a payload.
    #[error("a limit on uploads needs link measurements and the size of a payload: give both")]
    UploadWithoutNetwork,
    /// A plan depends on one node or link.
    #[error(
        "the plan of {method} hangs on {critical}: no plan of this method survives its loss; let auto find one that does"
    )]
    Fragile {
        /// The method.
        method: String,
        /// The node or link whose loss cuts others off.
        critical: String,
    },
    /// No method has a plan.
    #[error("no design fits: {refusals}")]
    NoDesign { refusals: String },
    /// A heterogeneity outside of 0 to 1.
    #[error("a heterogeneity of {heterogeneity} is none: give a number from 0 (data alike) to 1 (a class or two each)")]
    Heterogeneity { heterogeneity: f64 },
    /// A spectrum that the design is optimised by could not be computed.
    #[error("{0}")]
    Spectrum(Unresolved),
    /// The design gives no valid plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The renumbered topology is refused.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}
