//! The peers of a plan: the keys that its nodes are bound to.

use std::collections::BTreeMap;

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::identity::public_key;
use mingle_planner::Plan;
use mingle_protocol::NodeId;

/// The node that `peer` runs.
pub fn node_of(plan: &Plan, peer: &PeerId) -> Option<NodeId> {
    plan.node_of(&peer.to_string()).map(|index| NodeId(index_to_u32(index)))
}

/// The peer of every node.
///
/// # Errors
/// The error names a node that is not bound, or is bound to something that is not a PeerId.
pub fn peers(plan: &Plan) -> Result<BTreeMap<NodeId, PeerId>> {
    let mut peers = BTreeMap::new();
    for (index, (name, peer)) in plan.nodes().enumerate() {
        let Some(peer) = peer else {
            return Err(Error::new(
                ErrorKind::BadInput,
                format!("node {index} ({}) of the plan is not bound to a peer", name),
            )
            .hint(format!(
                "mingle plan bind PLAN --peer {}=PEERID, with the PEERID that `mingle id` prints there",
                name
            )));
        };
        let peer: PeerId = peer.parse().context(
            ErrorKind::BadInput,
            format!("node {index} ({}) of the plan is bound to `{peer}`, which is not a PeerId", name),
        )?;
        if public_key(&peer).is_none() {
            let message = format!("node {index} ({name}) of the plan is bound to {peer}, which names no ed25519 key");
            return Err(Error::new(ErrorKind::BadInput, message).hint("bind it to what `mingle id` prints there"));
        }
        peers.insert(NodeId(index_to_u32(index)), peer);
    }
    Ok(peers)
}

/// Node indices of a checked plan are far below 2^32.
fn index_to_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
