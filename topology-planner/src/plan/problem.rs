//! Errors of plans.

use super::{FORMAT, MAX_LINKS, MAX_PARAMETERS, MAX_STEPS, MAX_TEXT_BYTES, MAX_WIRE_BYTES};
use crate::{digraph::Link, network::NetworkCapacityError, recurrence::RecurrenceError, topology::TopologyError};

/// The reason why a draft, a file or a message is not a plan. Steps, slots and nodes are numbered from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum PlanError {
    /// The text is not JSON, lacks a key, or has one that a plan does not have.
    #[error("line {line}, column {column}: {message}")]
    Json { line: usize, column: usize, message: String },
    /// The document is of another format or version.
    #[error("the format is {found:?}: this program reads {FORMAT:?}")]
    Format { found: String },
    /// The bytes are not a plan.
    #[error("the bytes are not a plan: {message}")]
    Wire { message: String },
    /// The bytes encode a plan, but not in the one canonical way.
    #[error("the bytes are not the canonical encoding of the plan they hold")]
    NotCanonical,
    /// The plan does not fit on the wire.
    #[error("the plan takes {bytes} bytes on the wire: peers accept at most {MAX_WIRE_BYTES}")]
    TooLarge { bytes: usize },
    /// The base graph is not a topology.
    #[error("base: {0}")]
    Base(#[from] TopologyError),
    /// An edge of the base or interference graph is listed twice.
    #[error("{graph}: edge [{u}, {v}] is listed twice")]
    DuplicateEdge { graph: &'static str, u: usize, v: usize },
    /// The name of the method or of a parameter, or the value of a parameter, is unusable.
    #[error(
        "{what} is not usable: texts have 1 to {MAX_TEXT_BYTES} bytes, numbers are finite, and there are at most {MAX_PARAMETERS} parameters"
    )]
    Description { what: String },
    /// The period has no step.
    #[error("the plan has no steps: a period needs at least one")]
    NoSteps,
    /// The period has too many steps.
    #[error("the plan has {steps} steps: the limit is {MAX_STEPS}")]
    TooManySteps { steps: usize },
    /// The measured network does not fit the base graph.
    #[error(transparent)]
    Network(#[from] NetworkCapacityError),
    /// Rounds do not fill a period.
    #[error("a round of {round_length} steps does not divide the period of {steps}")]
    RoundLength { round_length: usize, steps: usize },
    /// The period has too many links.
    #[error("the plan has {links} links in all its steps: the limit is {MAX_LINKS}")]
    TooManyLinks { links: usize },
    /// `keep` does not have one number per node.
    #[error("step {step}: keep has {found} numbers for {nodes} nodes")]
    KeepLength { step: usize, found: usize, nodes: usize },
    /// A node listed twice, or unknown, among those that do not keep all.
    #[error("step {step}: \"kept\" names node {node} twice, or there is no such node")]
    KeptNode { step: usize, node: usize },
    /// A step has both the shares of all nodes and those of some.
    #[error("step {step} has both \"keep\", for all nodes, and \"kept\", for some: leave one out")]
    KeepAndKept { step: usize },
    /// A kept share is not in [0, 1].
    #[error("step {step}: node {node} keeps {keep}, which is not between 0 and 1")]
    KeepOutOfRange { step: usize, node: usize, keep: f64 },
    /// A link names a node that does not exist.
    #[error("step {step}: link {link} names a node that does not exist: the {nodes} nodes are numbered from 0")]
    LinkOutOfRange { step: usize, link: Link, nodes: usize },
    /// A link is not an edge of the base graph, or joins a node to itself.
    #[error("step {step}: link {link} is not on an edge of the base graph")]
    NotABaseLink { step: usize, link: Link },
    /// A link is listed twice in a step.
    #[error("step {step}: link {link} is listed twice")]
    DuplicateLink { step: usize, link: Link },
    /// A weight is not in (0, 1].
    #[error("step {step}: link {link} has weight {weight}, which is not above 0 and at most 1")]
    WeightOutOfRange { step: usize, link: Link, weight: f64 },
    /// The shares that a node keeps and gives do not add up to 1.
    #[error("step {step}: what node {node} keeps and gives adds up to {sum}, not 1")]
    ColumnSum { step: usize, node: usize, sum: f64 },
    /// There are slots where links do not share a channel.
    #[error("step {step} has slots, but the medium is point-to-point: leave \"slots\" empty")]
    UnwantedSlots { step: usize },
    /// A slot has no links.
    #[error("step {step}: slot {slot} is empty, remove it")]
    EmptySlot { step: usize, slot: usize },
    /// A slot has a link that the step does not have.
    #[error("step {step}: slot {slot} has link {link}, which is not among the links of the step")]
    UnknownSlotLink { step: usize, slot: usize, link: Link },
    /// A link is in two slots, or twice in one.
    #[error("step {step}: link {link} is in slot {first} and again in slot {second}")]
    LinkInTwoSlots { step: usize, link: Link, first: usize, second: usize },
    /// A link has no slot.
    #[error("step {step}: link {link} is in no slot")]
    LinkWithoutSlot { step: usize, link: Link },
    /// Two links of a slot disturb each other.
    #[error("step {step}, slot {slot}: links {first} and {second} conflict, they cannot be active at once")]
    Conflict { step: usize, slot: usize, first: Link, second: Link },
    /// Some node cannot reach, or be reached by, node 0 over the links of the period.
    #[error("the links of the period are not strongly connected: node {node} and node 0 are cut off in one direction")]
    NotStronglyConnected { node: usize },
    /// Repeating the period does not bring all nodes to one value.
    #[error("the period has more than one eigenvalue of modulus 1: {0}")]
    Recurrence(#[from] RecurrenceError),
    /// A number of the forecast is not finite.
    #[error("forecast.{field} is not a finite number")]
    ForecastNotFinite { field: &'static str },
    /// There is no such node.
    #[error("there is no node {node} in the plan")]
    NoSuchNode {
        /// The number or name that was given.
        node: String,
    },
    /// A peer id is empty, too long or holds control characters.
    #[error("the peer of node {node} is not usable: a peer id has 1 to {MAX_TEXT_BYTES} printable bytes")]
    UnusablePeer { node: usize },
    /// A peer is bound to two nodes.
    #[error("peer {peer} is bound to node {first} and to node {second}: bind each peer once")]
    PeerTwice { peer: String, first: usize, second: usize },
}
