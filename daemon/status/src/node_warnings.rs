//! Warnings about the events of a node, in words for a person, with their sources.

use crate::warnings::Source;
use mingle_protocol::{NodeEvent, Suspension};

/// The way back to exact weights after a member has taken some.
const REMEDY: &str = "a plan without that member makes all weights whole again (`mingle plan make --topology PLAN --without NODE`, \
     then `plan apply` by the operator, or `run --plan ... --continue` on all peers; with `--planning auto` `mingle expel PEERID`)";

/// The warning for a person that a node's event causes, if any.
pub fn warning(event: &NodeEvent) -> Option<String> {
    match event {
        NodeEvent::MassWrittenOff { peer, mass, parcels } => {
            Some(format!("node {peer} restarted without its state: {parcels} parcels with weight {mass} are given up"))
        }
        NodeEvent::DrainGaveUp { undelivered } => {
            let list: Vec<String> = undelivered.iter().map(|(peer, mass)| format!("{mass} to node {peer}")).collect();
            Some(format!("neighbours did not answer at the end; weight under way: {}", list.join(", ")))
        }
        NodeEvent::DeltaSkipped { round, reason } => {
            Some(format!("the local steps of round {round} were not taken: {reason}"))
        }
        NodeEvent::TrainingLate { round } => {
            Some(format!("the training of round {round} is late: this peer goes on mixing, and uses it when it comes"))
        }
        NodeEvent::FarSlower { own, others, .. } => Some(format!(
            "all local steps of a round take this peer {:.3} s, its neighbours {:.3} s: it takes fewer of them from here on, so that nobody waits for it",
            own.as_secs_f64(),
            others.as_secs_f64()
        )),
        NodeEvent::DeltaClipped { round, norm, bound } => Some(format!(
            "the local steps of round {round} went {norm:.3e} far, which was cut to {bound:.3e}: lower the learning rate"
        )),
        NodeEvent::MassLow { share } => Some(format!(
            "this peer has held only {share:.2} of its usual weight for many rounds: a member may keep all it gets. \
             Peers that it should give to name it; {REMEDY}"
        )),
        NodeEvent::NeighbourKeeps { peer, given, received } => Some(format!(
            "node {peer} was given weight {given:.3} and gave {received:.3}, none of it of late, and may keep all it gets: {REMEDY}"
        )),
        NodeEvent::MassHigh { share } => Some(format!(
            "this peer has held {share:.2} times its usual weight for many rounds: a member may make weight up"
        )),
        NodeEvent::NobodyToGiveTo { mass } => {
            Some(format!("everyone else has stopped or left: this peer keeps its weight {mass}, and does not leave"))
        }
        NodeEvent::MemberLeft { peer } => Some(format!("node {peer} has left for good, and handed its weight over")),
        NodeEvent::AnotherProcess { ends: false, .. } => Some(
            "another process uses this peer's key, and was told to end: a copied home is the usual cause, a stolen key another. \
             What both have sent counts twice until the next plan"
                .to_owned(),
        ),
        NodeEvent::Ignored { peer, fault } => Some(format!("a message of node {peer} was ignored: {fault:?}")),
        NodeEvent::OwnRatioUnusable { step } => {
            Some(format!("the model is no longer finite at step {step}: nothing more is sent; lower the learning rate"))
        }
        _ => None,
    }
}

/// The source of the warning that an event is worth.
pub fn source_of(event: &NodeEvent) -> Source {
    match event {
        NodeEvent::MassLow { .. } | NodeEvent::MassHigh { .. } | NodeEvent::AnotherProcess { .. } => {
            Source::Alarm(None)
        }
        NodeEvent::NeighbourKeeps { peer, .. } => Source::Alarm(Some(*peer)),
        NodeEvent::MassWrittenOff { peer, .. } | NodeEvent::MemberLeft { peer } | NodeEvent::Ignored { peer, .. } => {
            Source::Neighbour(*peer)
        }
        _ => Source::Own,
    }
}

/// The reason for which a neighbour is no longer waited for.
pub fn in_words(reason: Suspension) -> &'static str {
    match reason {
        Suspension::Late => "it let a deadline pass",
        Suspension::Silent => "it has said nothing for three heartbeats",
        Suspension::LinkDown => "its link is down",
        Suspension::Refused => "it sends parcels that cannot be believed",
        Suspension::Contradicts => {
            "it contradicts this peer's books of the parcels between the two, and shows nothing that this peer has said: it has lost \
             its records, or lies"
        }
    }
}
