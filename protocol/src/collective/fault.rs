//! Errors in a collective's arguments, and faults of its messages.

use thiserror::Error;

use crate::payload::MAX_DIMENSION;
use crate::schedule::NodeId;

/// Largest magnitude of an input. With as many nodes as a plan can have, sums stay far from the end of f64.
pub const LARGEST_INPUT: f64 = 1e290;

/// A reason why a collective cannot be made or go on as asked.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CollectiveError {
    /// The node is not in the plan.
    #[error("node {id} is not in the plan, which has nodes 0..{nodes}")]
    NotInPlan { id: NodeId, nodes: usize },
    /// There is nothing to combine, or too much.
    #[error("a vector of {dimension} values cannot be combined; give 1 to {MAX_DIMENSION}")]
    Dimension { dimension: usize },
    /// A partner to which no link leads, or from which none leads back.
    #[error("node {me} cannot exchange anything with node {partner}: the plan does not link them in both directions")]
    NotANeighbour {
        /// The node.
        me: NodeId,
        /// The partner it was to exchange with.
        partner: NodeId,
    },
    /// A neighbour that was ahead had sent something that no sound neighbour would.
    #[error("node {from}: {fault}")]
    Neighbour { from: NodeId, fault: CollectiveFault },
    /// A later input differs in length from the first.
    #[error("{got} values are given where there were {expected} before")]
    DimensionChanged { got: usize, expected: usize },
    /// An input that is not a number, infinite or absurdly large.
    #[error("value {index} is {value:e}; give finite numbers up to {LARGEST_INPUT:e} in magnitude")]
    NotFinite { index: usize, value: f64 },
    /// A collective without rounds.
    #[error("no rounds are asked for; one at least is needed to hear of anybody")]
    NoRounds,
    /// The next input came before the result of the one before.
    #[error("iteration {iteration} is not complete; begin the next one after its result")]
    NotComplete { iteration: u64 },
    /// No averaging matrix has this second eigenvalue.
    #[error("{value} is no second eigenvalue of a plan that mixes; it has to be at least 0 and less than 1")]
    SecondEigenvalue { value: f64 },
    /// A remaining error that is not between 0 and 1.
    #[error("a remaining error of {value} cannot be reached; give a number between 0 and 1, both excluded")]
    Contraction { value: f64 },
}

/// A fault of a message, which no sound neighbour would have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CollectiveFault {
    /// The plan has no link from there to here, or not in that round.
    #[error("the plan has no link from the sender in this round")]
    NoSuchLink,
    /// The round is beyond the next one due from that sender: one before it is missing.
    #[error("a message is missing before this one; the link must lose nothing, or be served by a reliable channel")]
    Gap,
    /// The sender is further ahead than it could be without messages from here.
    #[error("the sender is further ahead than anybody can be")]
    TooFarAhead,
    /// The number of values differs.
    #[error("the message has another number of values")]
    WrongDimension,
    /// A value is not a number, infinite or larger than all inputs together.
    #[error("a value is not finite, or larger than all inputs together could be")]
    NotFinite,
    /// More mass than there is.
    #[error("the message carries more mass than there is")]
    ImpossibleMass,
    /// A value whose owner does not exist.
    #[error("a value belongs to a node that does not exist")]
    UnknownOwner,
    /// A message of another collective than the one that is under way.
    #[error("the message belongs to another collective than the one of its operation")]
    OtherCollective,
    /// The frame acknowledges a message that was never sent.
    #[error("the frame acknowledges what was never sent")]
    ImpossibleAck,
}
