//! A peer's place in a plan: the node that is bound to its key, and its neighbours.

use std::collections::BTreeMap;
use std::sync::Arc;

use libp2p::PeerId;
use mingle_protocol::{NodeId, Schedule};

use crate::error::{Error, ErrorKind, Result};
use crate::membership::CheckedPlan;
use crate::plan;
use crate::status::{PlanFacts, StatusBoard};
use crate::units;

/// This peer's place in the plan.
pub(crate) struct Place {
    /// The plan.
    pub(crate) plan: CheckedPlan,
    /// Its hash, in hexadecimal.
    pub(crate) hash: String,
    /// Origin of the plan, in words.
    pub(crate) origin: String,
    /// This peer's node.
    pub(crate) node: NodeId,
    /// The PeerId of every member.
    pub(crate) peers: BTreeMap<NodeId, PeerId>,
    /// The plan as the protocol runs it.
    pub(crate) schedule: Arc<Schedule>,
}

impl Place {
    /// The place of `peer`.
    ///
    /// # Errors
    /// The plan does not name this peer, or cannot be run.
    pub(crate) fn of(plan: CheckedPlan, origin: String, peer: PeerId) -> Result<Self> {
        let hash = plan.plan.hash().to_string();
        let node = plan::node_of(&plan.plan, &peer).ok_or_else(|| {
            Error::new(ErrorKind::Refused, format!("this peer, {peer}, is not in the plan blake3:{hash}"))
                .hint(format!("mingle plan bind PLAN --peer NODE={peer}"))
        })?;
        let peers = plan::peers(&plan.plan)?;
        let schedule = Arc::new(plan::schedule(&plan.plan)?);
        Ok(Self { plan, hash, origin, node, peers, schedule })
    }

    /// Shows the place on this peer's status board.
    pub(crate) fn show_on(&self, board: &StatusBoard) {
        let plan = &self.plan.plan;
        let facts = PlanFacts {
            hash: self.hash.clone(),
            method: plan.method().to_owned(),
            nodes: plan.node_count(),
            origin: self.origin.clone(),
            local_steps: plan.local_steps(),
        };
        // |lambda_2| is that of a period, which may have several rounds.
        let share = units::ratio(plan.round_length(), plan.steps().len());
        board.show_plan(facts, self.node.index(), plan.forecast().lambda_2.map(|lambda| lambda.powf(share)));
    }

    /// The other members: those that this peer has a link with, then the rest.
    pub(crate) fn others(&self) -> Vec<PeerId> {
        let (out, inward) = self.neighbours();
        let is_near = |node| out.contains_key(node) || inward.contains_key(node);
        let others = self.peers.iter().filter(|(node, _)| **node != self.node);
        let (near, far): (Vec<_>, Vec<_>) = others.partition(|(node, _)| is_near(node));
        near.into_iter().chain(far).map(|(_, peer)| *peer).collect()
    }

    /// Peers that this one sends to, and peers that it receives from, over the whole period.
    pub(crate) fn neighbours(&self) -> (BTreeMap<NodeId, PeerId>, BTreeMap<NodeId, PeerId>) {
        let of = |nodes: &[NodeId]| nodes.iter().map(|node| (*node, self.peers[node])).collect();
        (of(self.schedule.all_out_neighbours(self.node)), of(self.schedule.all_in_neighbours(self.node)))
    }
}
