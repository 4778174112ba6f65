//! A plan without some of its peers. All peers that leave out the same ones of a plan come to the same plan: none has to
//! be handed around.

use std::collections::BTreeSet;

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_planner::{DesignOptions, Method, Plan, Topology, TopologyError};

use crate::offer::CheckedPlan;

/// The plan that the others have without these peers: the same design on the base graph less their nodes, or the best
/// one where that design cannot do with what is left. `None` if the plan names none of them.
///
/// A ring links the neighbours of peers that held the graph together: in a swarm any two peers may dial each other.
///
/// # Errors
/// Fewer than two peers are left.
pub fn without(plan: &Plan, left_out: &[PeerId]) -> Result<Option<Plan>> {
    let nodes: BTreeSet<usize> = left_out.iter().filter_map(|peer| plan.node_of(&peer.to_string())).collect();
    if nodes.is_empty() {
        return Ok(None);
    }
    let left = plan.node_count() - nodes.len();
    if left < 2 {
        let message = format!("without these peers {left} of the plan's {} would be left", plan.node_count());
        return Err(Error::new(ErrorKind::BadInput, message));
    }
    let doing = "cannot plan without these peers";
    let topology = topology_without(plan.base(), &nodes).context(ErrorKind::BadInput, doing)?;
    let options = DesignOptions { medium: plan.medium(), local_steps: plan.local_steps(), ..DesignOptions::default() };
    let method = plan.method().parse().unwrap_or(Method::Auto);
    let mut next = mingle_planner::design(&topology, method, &options)
        .or_else(|_| mingle_planner::design(&topology, Method::Auto, &options))
        .context(ErrorKind::BadInput, doing)?;
    bind_as_in(plan, &mut next)?;
    Ok(Some(next))
}

/// The topology without these nodes, whose neighbours are linked in a ring if the others would not be connected.
fn topology_without(base: &Topology, nodes: &BTreeSet<usize>) -> Result<Topology, TopologyError> {
    let left_out: Vec<usize> = nodes.iter().copied().collect();
    base.without(&left_out).or_else(|_| {
        let beside = nodes.iter().flat_map(|&node| base.neighbors(node)).filter(|node| !nodes.contains(*node));
        let beside: Vec<usize> = beside.copied().collect::<BTreeSet<_>>().into_iter().collect();
        let ring = beside.iter().zip(beside.iter().cycle().skip(1)).map(|(&u, &v)| (u.min(v), u.max(v)));
        let edges: BTreeSet<(usize, usize)> =
            base.edges().iter().copied().chain(ring.filter(|(u, v)| u != v)).collect();
        let edges: Vec<(usize, usize)> = edges.into_iter().collect();
        Topology::new(base.names().to_vec(), &edges)?.without(&left_out)
    })
}

/// Binds the nodes of a plan to the peers that nodes of the same names have in another.
///
/// # Errors
/// A node cannot have the peer of its name.
pub fn bind_as_in(former: &Plan, made: &mut Plan) -> Result {
    let bound: Vec<(&str, &str)> = former.nodes().filter_map(|(name, peer)| Some((name, peer?))).collect();
    for (name, peer) in bound {
        if let Some(node) = made.node_named(name) {
            made.bind(node, peer).context(ErrorKind::BadInput, format!("cannot bind node {name}"))?;
        }
    }
    Ok(())
}

/// The plan to sign.
#[derive(Clone, Debug)]
pub enum NextPlan {
    /// A plan that was made.
    Given(Box<Plan>),
    /// The plan that the swarm follows, designed anew without these members.
    Without(Vec<PeerId>),
}

impl NextPlan {
    /// The plan, where the swarm follows this one.
    ///
    /// # Errors
    /// The swarm has no plan yet, or its plan names none of the members.
    pub fn after(self, newest: Option<&CheckedPlan>) -> Result<Plan> {
        let left_out = match self {
            Self::Given(plan) => return Ok(*plan),
            Self::Without(left_out) => left_out,
        };
        let Some(newest) = newest else {
            return Err(Error::new(ErrorKind::BadInput, "the swarm has no plan yet that members could be left out of"));
        };
        without(&newest.plan, &left_out)?.ok_or_else(|| {
            let names: Vec<String> = left_out.iter().map(PeerId::to_string).collect();
            let message = format!("the swarm's plan does not name {}", names.join(", "));
            Error::new(ErrorKind::BadInput, message).hint("`mingle peers` lists the PeerIds of this peer's neighbours")
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A plan of this design, bound to peers that are returned too.
    fn planned(topology: &str, method: &str) -> (Plan, Vec<PeerId>) {
        let topology = Topology::generate(topology).unwrap();
        let options = DesignOptions { local_steps: 7, ..DesignOptions::default() };
        let mut plan = mingle_planner::design(&topology, method.parse().unwrap(), &options).unwrap();
        let peers: Vec<PeerId> = (0..plan.node_count()).map(|_| PeerId::random()).collect();
        for (node, peer) in peers.iter().enumerate() {
            plan.bind(node, &peer.to_string()).unwrap();
        }
        (plan, peers)
    }

    #[test]
    fn the_others_keep_their_peers_the_design_and_the_local_steps() {
        let (plan, peers) = planned("complete:n=5", "d-psgd");
        let next = without(&plan, &peers[1..3]).unwrap().unwrap();
        assert_eq!((next.method(), next.local_steps()), ("d-psgd", 7));
        let bound: Vec<String> = next.nodes().map(|(_, peer)| peer.unwrap().to_owned()).collect();
        assert_eq!(bound, [0, 3, 4].map(|node| peers[node].to_string()));
        assert!(next.nodes().zip(plan.nodes()).take(1).all(|((after, _), (before, _))| after == before));
    }

    #[test]
    fn all_come_to_one_plan_in_whichever_order_they_name_the_peers_and_none_is_left_out_twice() {
        let (plan, peers) = planned("ring:n=6", "d-psgd");
        let one_way = without(&plan, &[peers[1], peers[4]]).unwrap().unwrap();
        let other_way = without(&plan, &[peers[4], peers[1], PeerId::random()]).unwrap().unwrap();
        assert_eq!(one_way.hash(), other_way.hash());
        assert_eq!(without(&one_way, &[peers[4], peers[1]]).unwrap(), None);
    }

    #[test]
    fn a_peer_that_held_the_others_together_can_be_left_out() {
        for (topology, hub) in [("star:n=6", 0), ("grid:rows=1,cols=5", 2)] {
            for method in ["d-psgd", "nguyen-he", "exact-average"] {
                let (plan, peers) = planned(topology, method);
                let next = without(&plan, &[peers[hub]]).unwrap().unwrap();
                assert_eq!(next.node_count(), plan.node_count() - 1, "{topology}, {method}");
                assert!(next.node_of(&peers[hub].to_string()).is_none(), "{topology}, {method}");
            }
        }
    }

    #[test]
    fn of_three_peers_two_cannot_be_left_out() {
        let (plan, peers) = planned("complete:n=3", "d-psgd");
        assert!(without(&plan, &peers[1..]).unwrap_err().to_string().contains("1 of the plan's 3"));
    }
}
