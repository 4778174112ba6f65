//! A peer's place in a plan: the node that is bound to its key, and who its neighbours are.

use std::collections::BTreeMap;
use std::sync::Arc;

use libp2p::PeerId;
use mingle_protocol::{NodeId, Schedule};

use crate::error::{Error, ErrorKind, Result};
use crate::membership::CheckedPlan;
use crate::plan;

/// This peer's place in the plan.
pub struct Place {
    /// The plan.
    pub plan: CheckedPlan,
    /// Its hash, in hexadecimal.
    pub hash: String,
    /// Where the plan came from, in words.
    pub origin: String,
    /// The node that this peer is.
    pub node: NodeId,
    /// All members.
    pub peers: BTreeMap<NodeId, PeerId>,
    /// What the protocol runs.
    pub schedule: Arc<Schedule>,
}

impl Place {
    /// The place of `peer`.
    ///
    /// # Errors
    /// The plan does not name this peer, or cannot be run.
    pub fn of(plan: CheckedPlan, origin: String, peer: PeerId) -> Result<Self> {
        let hash = plan.plan.hash().to_string();
        let node = plan::node_of(&plan.plan, &peer).ok_or_else(|| {
            Error::new(ErrorKind::Refused, format!("this peer, {peer}, is not in the plan blake3:{hash}"))
                .hint(format!("mingle plan bind PLAN --peer NODE={peer}"))
        })?;
        let peers = plan::peers(&plan.plan)?;
        let schedule = Arc::new(plan::schedule(&plan.plan)?);
        Ok(Self { plan, hash, origin, node, peers, schedule })
    }

    /// The other members: those that this peer has a link with, then the rest.
    pub fn others(&self) -> Vec<PeerId> {
        let (out, inward) = self.neighbours();
        let is_near = |node| out.contains_key(node) || inward.contains_key(node);
        let others = self.peers.iter().filter(|(node, _)| **node != self.node);
        let (near, far): (Vec<_>, Vec<_>) = others.partition(|(node, _)| is_near(node));
        near.into_iter().chain(far).map(|(_, peer)| *peer).collect()
    }

    /// The peers that this one sends to, and those that it hears from, over the whole period.
    pub fn neighbours(&self) -> (BTreeMap<NodeId, PeerId>, BTreeMap<NodeId, PeerId>) {
        let of = |nodes: &[NodeId]| nodes.iter().map(|node| (*node, self.peers[node])).collect();
        (of(self.schedule.all_out_neighbours(self.node)), of(self.schedule.all_in_neighbours(self.node)))
    }
}
