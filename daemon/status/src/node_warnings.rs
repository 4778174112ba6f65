//! Warnings about the events of a node, in words for a person, with their sources.

use std::path::Path;

use crate::warnings::Source;
use mingle_protocol::{InputFault, NodeEvent, NodeId, Suspension};

/// The way back to exact weights after a member has taken some.
#[derive(Clone, Copy)]
pub struct Remedy<'a> {
    /// `true` if an operator plans the swarm.
    pub has_operator: bool,
    /// The home of this peer.
    pub home: &'a Path,
    /// The PeerId of a node.
    pub peer_of: &'a dyn Fn(NodeId) -> Option<String>,
    /// The first neighbour that is away, if any is.
    pub away: Option<NodeId>,
}

impl Remedy<'_> {
    /// The commands by which a swarm goes on without a node, or without the one that others name.
    fn in_words(&self, node: Option<NodeId>) -> String {
        let peer = node.and_then(self.peer_of).unwrap_or_else(|| "PEERID".to_owned());
        if self.has_operator {
            return format!(
                "A plan without that member makes all weights whole again: `mingle plan apply --without {peer}` where the operator's key is, \
                 or `mingle expel {peer}` with `--planning auto`"
            );
        }
        format!(
            "All weights are whole again once all others go on without it: stop this peer, start it with `mingle run --home {} --without \
             {peer}`, and likewise in the homes of the others",
            self.home.display()
        )
    }
}

/// The warning for a person that a node's event causes, if any, with the way back.
pub fn warning(event: &NodeEvent, remedy: &Remedy<'_>) -> Option<String> {
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
        NodeEvent::MassLow { share } => Some(low_weight(*share, remedy)),
        NodeEvent::NeighbourKeeps { peer, given, received, ahead, rounds } => Some(format!(
            "node {peer} was given weight {given:.3} and gave {received:.3}, nothing in the last {rounds:.0} rounds, and is {ahead:.1} periods \
             of the plan ahead of what it gave: it may keep all it gets. {}",
            remedy.in_words(Some(*peer))
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

/// The warning of a peer that is short of weight.
fn low_weight(share: f64, remedy: &Remedy<'_>) -> String {
    let (reason, way) = match remedy.away {
        Some(away) => (
            format!("and node {away} is away with what it holds: that comes back with it. If it is gone for good:"),
            remedy.in_words(Some(away)),
        ),
        None => (
            "and a member may keep all it gets. Peers that it should give to name it.".to_owned(),
            remedy.in_words(None),
        ),
    };
    format!("this peer has held only {share:.2} of its usual weight for many rounds, {reason} {way}")
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

/// The name of a fault, as in JSON.
pub fn fault_name(fault: InputFault) -> String {
    match serde_json::to_value(fault) {
        Ok(serde_json::Value::String(name)) => name,
        // Every fault is a plain name.
        _ => format!("{fault:?}"),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_member_that_keeps_what_it_gets_is_named_with_the_evidence_and_the_command_that_helps() {
        let event =
            NodeEvent::NeighbourKeeps { peer: NodeId(3), given: 1.25, received: 0.5, ahead: 1.75, rounds: 20.4 };
        let words = |has_operator| {
            let peer_of = |node| (node == NodeId(3)).then(|| "12D3KooWSink".to_owned());
            let home = Path::new("/home/ana/peer");
            warning(&event, &Remedy { has_operator, home, peer_of: &peer_of, away: None }).unwrap()
        };
        let evidence =
            "node 3 was given weight 1.250 and gave 0.500, nothing in the last 20 rounds, and is 1.8 periods";
        assert!([true, false].into_iter().all(|has_operator| words(has_operator).starts_with(evidence)));
        assert!(words(true).contains("`mingle plan apply --without 12D3KooWSink`"), "{}", words(true));
        let alone = "`mingle run --home /home/ana/peer --without 12D3KooWSink`";
        assert!(words(false).contains(alone), "{}", words(false));
        // One that was stopped has what it got in its records.
        let peer_of = |node| (node == NodeId(3)).then(|| "12D3KooWSink".to_owned());
        let low = |away| {
            let remedy = Remedy { has_operator: false, home: Path::new("/home/ana/peer"), peer_of: &peer_of, away };
            warning(&NodeEvent::MassLow { share: 0.5 }, &remedy).unwrap()
        };
        assert!(low(None).contains("a member may keep all it gets"), "{}", low(None));
        let away = low(Some(NodeId(3)));
        assert!(
            away.contains("node 3 is away with what it holds") && away.contains("--without 12D3KooWSink"),
            "{away}"
        );
        assert!(!away.contains("may keep"), "{away}");
    }
}
