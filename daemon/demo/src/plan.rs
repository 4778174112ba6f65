//! The plan of a demo: a random geometric base topology, the requested design on it, and a home for each of its nodes.

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Home, Identity, Result};
use mingle_planner::{DesignOptions, Method, Plan, Topology};

use crate::output::Output;

/// A random geometric topology that is most likely connected.
pub(crate) fn topology(peers: usize, seed: u64) -> Result<Topology> {
    let spec = format!("rg:n={peers},r={:.2},seed={seed}", connecting_radius(peers));
    Topology::generate(&spec).context(ErrorKind::Unexpected, format!("cannot generate {spec}"))
}

/// A radius at which a random geometric graph in the unit square is most likely connected, and far from complete:
/// one and a half times the threshold sqrt(ln n / (pi n)) of Gupta and Kumar.
#[allow(clippy::cast_precision_loss)] // a handful of peers
fn connecting_radius(peers: usize) -> f64 {
    let n = peers as f64;
    1.5 * (n.ln() / (std::f64::consts::PI * n)).sqrt().max(0.2)
}

/// The design called `method` on a topology.
pub(crate) fn design(method: &str, topology: &Topology, options: &DesignOptions) -> Result<Plan> {
    let method = method_of(method)?;
    mingle_planner::design(topology, method, options).context(ErrorKind::BadInput, "cannot design a plan")
}

/// The design of this name.
pub(crate) fn method_of(name: &str) -> Result<Method> {
    name.parse().context(ErrorKind::BadInput, format!("--method {name}"))
}

/// Gives every node a home with a key of its own, and binds the plan to them.
pub(crate) fn bind_to_new_homes(plan: &mut Plan, output: &Output) -> Result<Vec<Home>> {
    (0..plan.node_count())
        .map(|node| {
            let home = Home::create(Some(&output.home(node)))?;
            let peer = Identity::load_or_create(&home.identity())?.peer_id();
            plan.bind(node, &peer.to_string()).context(ErrorKind::Unexpected, format!("cannot bind node {node}"))?;
            Ok(home)
        })
        .collect()
}
