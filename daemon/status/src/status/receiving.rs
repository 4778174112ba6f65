//! The clipping of models received from other peers.

use std::collections::BTreeMap;

use mingle_protocol::{Clipped, Node, Robust};
use serde::{Deserialize, Serialize};

/// The treatment of models that are far from a peer's own, and its effect since the process follows the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RobustReceiving {
    /// The rule.
    pub rule: Robust,
    /// The L2 distance from its own model within which another one is not clipped, once that is known.
    pub radius: Option<f64>,
    /// Parcels that were clipped.
    pub clipped_parcels: u64,
    /// Clipped parcels by the node that sent them, with the sum of their weights times the norms of the part cut off.
    pub clipped: BTreeMap<u32, Clipped>,
}

impl RobustReceiving {
    /// The clipping at a node; `None` where it takes models as they are.
    pub fn of(node: &Node) -> Option<Self> {
        let rule = node.config().robust;
        let of_link = |view: mingle_protocol::NeighbourView| Some((view.id.0, view.incoming?.clipped));
        let clipped: BTreeMap<u32, Clipped> = node.neighbour_views().filter_map(of_link).collect();
        let clipped_parcels = clipped.values().map(|link| link.parcels).sum();
        (rule != Robust::Off).then(|| Self { rule, radius: node.clipping_radius(), clipped_parcels, clipped })
    }
}
