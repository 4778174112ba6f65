//! The trace log of a run, for people: its faults, and the events that nodes reported.

use std::fmt;

use super::fault::Fault;
use crate::effect::{NodeEvent, Suspension};
use crate::mass::Mass;
use crate::schedule::NodeId;

/// One entry of the trace log of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEntry {
    /// A fault took place.
    Fault(Fault),
    /// A node reported something.
    Event(NodeId, NodeEvent),
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Event(id, event) => {
                write!(f, "  node {id} ")?;
                describe(event, f)
            }
        }
    }
}

/// An event as the end of a sentence that begins with the node's name.
fn describe(event: &NodeEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        NodeEvent::Started { step } => write!(f, "takes part from step {step} on"),
        NodeEvent::CaughtUp { from, to } => write!(f, "skips from step {from} to {to}, where the others are"),
        NodeEvent::ProgressDoubted { peer, claimed, credible } => {
            write!(f, "hears from node {peer} that it is in round {claimed}, and believes it up to {credible}")
        }
        NodeEvent::RoundFinished(report) => write!(f, "finished round {}, with weight {}", report.round, report.mass),
        NodeEvent::NeighbourSuspended { peer, reason } => {
            write!(f, "goes on without node {peer}, which {}", why_suspended(*reason))
        }
        NodeEvent::NeighbourBack { peer } => write!(f, "counts on node {peer} again"),
        NodeEvent::DeadlineMissed { step, missing, .. } => {
            write!(f, "waited in step {step} in vain for {}", Nodes(missing))
        }
        NodeEvent::MassWrittenOff { .. }
        | NodeEvent::MassReturned { .. }
        | NodeEvent::ParcelRefused { .. }
        | NodeEvent::ReferenceMissing { .. } => describe_parcels(event, f),
        NodeEvent::DeltaSkipped { .. }
        | NodeEvent::FarSlower { .. }
        | NodeEvent::ReadyChangeTaken { .. }
        | NodeEvent::TrainingLate { .. }
        | NodeEvent::DeltaClipped { .. } => describe_training(event, f),
        NodeEvent::MassLow { share } => write!(f, "has held only {share:.2} of its usual weight for many rounds"),
        NodeEvent::NeighbourKeeps { peer, given, received, .. } => {
            write!(f, "gives node {peer} no more, which got weight {given:.3} and gave {received:.3}")
        }
        NodeEvent::MassHigh { share } => write!(f, "has held {share:.2} times its usual weight for many rounds"),
        NodeEvent::MassRecovered { share } => write!(f, "holds {share:.2} of its usual weight again"),
        NodeEvent::NobodyToGiveTo { mass } => {
            write!(f, "keeps weight {mass} instead of leaving: all its neighbours have stopped or left")
        }
        NodeEvent::RollbackDetected { incarnation, discarded } => {
            write!(f, "was rolled back: it discards weight {discarded} and begins its life {incarnation} with none")
        }
        NodeEvent::NewIncarnation { peer, incarnation } => {
            write!(f, "hears that node {peer} has begun its life {incarnation}, without what it had")
        }
        NodeEvent::MemberLeft { peer } => write!(f, "hears that node {peer} has left"),
        NodeEvent::AnotherProcess { ends, .. } => f.write_str(another_process(*ends)),
        NodeEvent::NewerPlan { peer, generation } => {
            write!(f, "hears from node {peer} of generation {}", generation.counter)
        }
        NodeEvent::RatioWanted { generation } => {
            write!(f, "is too far behind to enter generation {} with its own ratio", generation.counter)
        }
        NodeEvent::Entered { generation } => write!(f, "enters generation {} with weight 1", generation.counter),
        NodeEvent::Refused { peer, mismatch } => write!(f, "refuses node {peer}: {mismatch}"),
        NodeEvent::Ignored { peer, fault } => write!(f, "ignores a message of node {peer}: {fault:?}"),
        NodeEvent::OwnRatioUnusable { step } => write!(f, "keeps everything in step {step}: its ratio is not finite"),
        NodeEvent::Draining { steps } => write!(f, "has taken its last step, {steps}, and settles"),
        NodeEvent::DrainGaveUp { undelivered } => {
            write!(f, "gives up waiting for {} to settle", Nodes(&ids(undelivered)))
        }
    }
}

/// Describes the events of parcels that were not applied.
fn describe_parcels(event: &NodeEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        NodeEvent::MassWrittenOff { peer, mass, parcels } => {
            write!(f, "gives up {parcels} parcels of weight {mass} to an earlier life of node {peer}")
        }
        NodeEvent::MassReturned { peer, mass, parcels } => {
            write!(f, "takes back {parcels} parcels of weight {mass} that node {peer} did not apply")
        }
        NodeEvent::ParcelRefused { peer, mass } => {
            write!(f, "returns weight {mass} to node {peer}: the parcel cannot be believed")
        }
        NodeEvent::ReferenceMissing { peer, mass } => {
            write!(f, "returns weight {mass} to node {peer}: it lacks the reference to decode the parcel")
        }
        _ => Ok(()),
    }
}

/// Describes the events of local training.
fn describe_training(event: &NodeEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match event {
        NodeEvent::DeltaSkipped { round, reason } => {
            write!(f, "took no local step in round {round}: {reason}")
        }
        NodeEvent::FarSlower { round, own, others } => {
            write!(f, "trains for {own:?} in round {round}, the others for {others:?}: it takes fewer local steps")
        }
        NodeEvent::ReadyChangeTaken { round } => write!(f, "takes the change that was ready for round {round}"),
        NodeEvent::TrainingLate { round } => write!(f, "goes on without the training of round {round}, which is late"),
        NodeEvent::DeltaClipped { round, norm, bound } => {
            write!(f, "shortens its local step of round {round} from {norm} to {bound}")
        }
        _ => Ok(()),
    }
}

fn ids(undelivered: &[(NodeId, Mass)]) -> Vec<NodeId> {
    undelivered.iter().map(|(peer, _)| *peer).collect()
}

fn another_process(ends: bool) -> &'static str {
    if ends {
        "hears from an older process with its key, and has to end"
    } else {
        "hears from a younger process with its key, which has to end"
    }
}

fn why_suspended(reason: Suspension) -> &'static str {
    match reason {
        Suspension::Late => "is late",
        Suspension::Silent => "is silent",
        Suspension::LinkDown => "cannot be reached",
        Suspension::Refused => "sends what cannot be believed",
        Suspension::Contradicts => "contradicts its books and proves nothing",
    }
}

/// Nodes by their numbers.
struct Nodes<'a>(&'a [NodeId]);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "node " } else { "nodes " })?;
        for (position, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if position > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
