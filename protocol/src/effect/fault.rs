//! The reasons for which a node rejects an input.

use serde::{Deserialize, Serialize};

/// The reason why an input was not taken. [`Node::refusals`](crate::Node::refusals) counts all of them; those that no
/// sound neighbour causes are reported as [`NodeEvent::Ignored`](crate::NodeEvent::Ignored) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputFault {
    /// It is not a neighbour in the plan.
    NotANeighbour,
    /// It belongs to another generation.
    OtherGeneration,
    /// The plan has no such link in that step.
    NoSuchLink,
    /// A mass of zero, or more than the whole swarm has, together with what the node holds.
    ImpossibleMass,
    /// A payload of the wrong dimension.
    WrongDimension,
    /// Steps that run backwards or past the end.
    ImpossibleStep,
    /// It acknowledges parcels that were never sent, or takes back acknowledgements.
    ImpossibleAck,
    /// More parcels than the window allows.
    WindowExceeded,
    /// A plan that does not replace the present one, or that this node cannot follow.
    UnusablePlan,
    /// A leave certificate that no member can have written.
    ImpossibleCertificate,
    /// A statement about a node without that node's signature.
    Unsigned,
    /// The result of a training that was not asked for.
    UnexpectedTraining,
    /// A life of this node that it cannot have had.
    ImpossibleLife,
    /// A process statement of no member, or with a number that no process comes to.
    ImpossibleProcess,
    /// It contradicts this node's books of the parcels between the two, and shows no statement of this node that proves
    /// it: no mass is given up for it.
    Contradiction,
    /// A parcel that was here before. Only counted: networks repeat, and senders whose acknowledgement was lost.
    Repeated,
    /// A parcel that came before the one that precedes it. Only counted: networks reorder.
    OutOfOrder,
    /// A parcel that continues another sequence than the one that was received. Only counted: it comes from a sender
    /// that was rolled back.
    Forked,
    /// An Ack or a parcel of or for a life that is over or unknown. Only counted: it is answered with a Hello.
    OtherLife,
    /// A process statement beyond those that are taken of one node in a short time. Only counted: a neighbour passes it
    /// on.
    TooManyProcesses,
    /// A Hello that does not fit. Only counted; what differs is in [`NodeEvent::Refused`](crate::NodeEvent::Refused).
    UnfitHello,
    /// A message of a generation that the present one has replaced. Only counted: its sender is notified.
    OlderGeneration,
    /// A message of a generation that replaces the present one. Only counted: its plan is asked for.
    NewerGeneration,
}
