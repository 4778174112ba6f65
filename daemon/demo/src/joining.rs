//! The joining of the demo's peers: the time at which the last one had its neighbours, and the cost of finding them.

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_net::transport::NetworkCounts;
use mingle_peer::{Result, plan};
use mingle_planner::Plan;
use mingle_protocol::NodeId;
use serde::Serialize;

/// The peers that have joined, and their network counts.
#[derive(Debug)]
pub(crate) struct Joining {
    /// The number of each node's neighbours in the plan.
    neighbours: Vec<usize>,
    /// For each peer that has begun: the neighbours that it had then, and its network counts.
    joined: Vec<Option<(usize, NetworkCounts)>>,
    /// The time at which the last peer began.
    complete: Option<Duration>,
}

/// The joining of the whole swarm, once it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Joined {
    /// Seconds from the start of the first process until the last peer had its neighbours.
    pub seconds: f64,
    /// Pairs of a peer and a neighbour by the plan that it began without.
    pub missing_neighbours: usize,
    /// Pairs of peers that are neighbours.
    pub pairs: usize,
    /// The most neighbours that the plan gives a peer.
    pub most_neighbours: usize,
    /// The most dials of one peer.
    pub most_dials: u64,
    /// Dials of all peers.
    pub dials: u64,
    /// Dials that failed.
    pub failed_dials: u64,
    /// Connections that were refused or broke off before they were up, as seen by the dialled peer.
    pub failed_accepts: u64,
    /// Queries of all peers to the Kademlia table.
    pub table_queries: u64,
}

impl Joining {
    /// The state before any peer has joined.
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let schedule = plan::schedule(plan)?;
        let neighbours = |node| {
            let node = NodeId(node);
            let both = schedule.all_out_neighbours(node).iter().chain(schedule.all_in_neighbours(node));
            both.collect::<BTreeSet<_>>().len()
        };
        let count = plan.node_count();
        let nodes = 0..u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Self { neighbours: nodes.map(neighbours).collect(), joined: vec![None; count], complete: None })
    }

    /// Notes that a peer begins. Returns `true` if it is the last one. A restarted peer begins again and is not counted
    /// twice.
    pub(crate) fn note(&mut self, node: usize, neighbours: usize, counts: NetworkCounts, elapsed: Duration) -> bool {
        if self.complete.is_some() || self.joined[node].is_some() {
            return false;
        }
        self.joined[node] = Some((neighbours, counts));
        if self.joined.iter().all(Option::is_some) {
            self.complete = Some(elapsed);
        }
        self.complete.is_some()
    }

    /// The joining of all peers; none if some have not joined.
    pub(crate) fn summary(&self) -> Option<Joined> {
        let seconds = self.complete?.as_secs_f64();
        let joined: Vec<(usize, NetworkCounts)> = self.joined.iter().flatten().copied().collect();
        let sum = |count: fn(&NetworkCounts) -> u64| joined.iter().map(|(_, counts)| count(counts)).sum();
        let missing = |(wanted, (present, _)): (&usize, &(usize, NetworkCounts))| wanted.saturating_sub(*present);
        Some(Joined {
            seconds,
            missing_neighbours: self.neighbours.iter().zip(&joined).map(missing).sum(),
            pairs: self.neighbours.iter().sum::<usize>() / 2,
            most_neighbours: self.neighbours.iter().copied().max().unwrap_or(0),
            most_dials: joined.iter().map(|(_, counts)| counts.dials).max().unwrap_or(0),
            dials: sum(|counts| counts.dials),
            failed_dials: sum(|counts| counts.failed_dials),
            failed_accepts: sum(|counts| counts.failed_accepts),
            table_queries: sum(|counts| counts.table_queries),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_planner::{DesignOptions, Method, Topology};

    #[test]
    fn a_swarm_has_come_together_when_its_last_peer_begins_and_those_without_neighbours_are_counted() {
        let topology = Topology::generate("ring:n=3").unwrap();
        let plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
        let mut joining = Joining::new(&plan).unwrap();
        let counts = NetworkCounts { dials: 2, failed_dials: 1, ..NetworkCounts::default() };
        assert!(!joining.note(0, 2, counts, Duration::from_secs(1)));
        assert!(!joining.note(0, 2, counts, Duration::from_secs(2)), "again");
        assert!(!joining.note(2, 1, counts, Duration::from_secs(2)));
        assert_eq!(joining.summary(), None);
        assert!(joining.note(1, 2, NetworkCounts::default(), Duration::from_secs(3)));
        let joined = joining.summary().unwrap();
        assert_eq!((joined.missing_neighbours, joined.pairs, joined.most_neighbours), (1, 3, 2));
        assert_eq!((joined.dials, joined.failed_dials, joined.most_dials), (4, 2, 2));
        assert!((joined.seconds - 3.0).abs() < 1e-9);
    }
}
