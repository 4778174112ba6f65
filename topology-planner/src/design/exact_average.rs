//! The exact average in every round: gathering to a root, then scattering from it.
//!
//! Push-sum with a periodic matrix whose product is `J / n`. While gathering, a node keeps nothing and pushes all its
//! mass; while scattering, it keeps 1 and pushes to each receiver the number of nodes which that one will serve. The
//! ratio `x / w` is the average from the root's last reception on, so one broadcast serves all receivers. Schedules of
//! this kind on a radio channel are aggregation and broadcast trees (Chen, Hu and Zhu, "Minimum data aggregation time
//! problem in wireless sensor networks", 2005; Gandhi, Parthasarathy and Mishra, "Minimizing broadcast latency and
//! redundancy in ad hoc networks", 2003); the two need not be one tree here. On separate links the busiest node counts,
//! and other schedules are best ([`wires`]).
//!
//! Both phases are built greedily ([`gather`], [`scatter`]) and then shortened by simulated annealing
//! ([`gather_search`], [`scatter_search`]) until they meet a lower bound ([`lower_bound`]) or the effort is spent.

mod channel;
mod gather;
mod gather_search;
mod lower_bound;
mod multiplying_tree;
mod one_by_one;
mod scatter;
mod scatter_search;
mod schedule;
mod search;
mod spanning_tree;
mod wires;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(super) use self::multiplying_tree::MAX_PERIOD_SHARES;
use self::{
    channel::Channel,
    schedule::SlotSchedule,
    search::{GivenUp, central_nodes},
    spanning_tree::SpanningTree,
};
use super::{Design, DesignError, DesignRequest};
use crate::{
    plan::{MAX_STEPS, Medium, Parameter},
    topology::Topology,
};

/// Gathers and scatters in as few slots as the effort finds; on a point-to-point medium with as little for the busiest node
/// as is known.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    check_length(request.topology)?;
    match request.options.medium {
        Medium::Broadcast => broadcast(request),
        Medium::PointToPoint => wires::design(request),
    }
}

/// Refuses a plan that is too long before it is made: to a node in the middle and back takes twice its eccentricity.
fn check_length(topology: &Topology) -> Result<(), DesignError> {
    let nodes = topology.node_count();
    if nodes <= MAX_STEPS {
        return Ok(());
    }
    let channel = Channel::new(topology);
    let eccentricities = central_nodes(&channel, 1).into_iter().map(|root| channel.hops_from(root).eccentricity());
    match eccentricities.min().map(|hops| 2 * hops) {
        Some(steps) if steps > MAX_STEPS => Err(DesignError::TooLong { nodes, steps, limit: MAX_STEPS }),
        _ => Ok(()),
    }
}

fn broadcast(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let topology = request.topology;
    let options = request.options;
    let channel = Channel::new(topology);
    let least = lower_bound::least_slots(&channel);
    let mut schedule = search_from_seed(&channel, request, least)?;
    if let Some(limit) = options.max_out_degree.filter(|&limit| limit < schedule.max_out_degree(topology.node_count()))
    {
        // In a tree a node has at most as many receivers as it has edges.
        let tree = SpanningTree::within(topology, limit).map_err(|needed| too_few_receivers(request, limit, needed))?;
        schedule = search_from_seed(&Channel::restricted(topology, &tree.edges()), request, least)?;
    }
    let parameters = vec![
        ("effort", Parameter::Whole(options.effort.into())),
        ("root", Parameter::Whole(request.original(schedule.root) as u64)),
        ("slots_at_least", Parameter::Whole(least as u64)),
    ];
    Ok(Design { steps: schedule.steps(topology.node_count()), round_length: None, parameters })
}

fn search_from_seed(
    channel: &Channel<'_>,
    request: &DesignRequest<'_>,
    least: usize,
) -> Result<SlotSchedule, DesignError> {
    let mut rng = ChaCha8Rng::seed_from_u64(request.options.seed);
    let nodes = request.topology.node_count();
    let given_up = |GivenUp { slots, left }| DesignError::TooCrowded { method: request.method, nodes, slots, left };
    search::search(channel, request.options.effort, least, &mut rng).map_err(given_up)
}

fn too_few_receivers(request: &DesignRequest<'_>, limit: usize, needed: usize) -> DesignError {
    DesignError::DegreeLimit { method: request.method, limit, needed }
}

/// A number below `bound`, which is at most 2^32; the bias of the remainder is below 2^-32.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

/// Sets of nodes as rows of 64-bit words, one row for each node.
fn bit_rows<'a>(nodes: usize, members: impl Fn(usize) -> &'a [usize]) -> Vec<u64> {
    let words = nodes.div_ceil(64);
    let mut rows = vec![0; nodes * words];
    for node in 0..nodes {
        members(node).iter().for_each(|&member| insert(&mut rows[node * words..], member));
    }
    rows
}

fn insert(row: &mut [u64], node: usize) {
    row[node / 64] |= 1 << (node % 64);
}

fn contains(row: &[u64], node: usize) -> bool {
    row[node / 64] >> (node % 64) & 1 == 1
}
