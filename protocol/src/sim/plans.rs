//! The plans of a simulated swarm, as its planner made them one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::message::Generation;
use crate::schedule::{NodeId, Schedule, ScheduleError, Step};

/// One plan: its members, its generation, and its links.
#[derive(Clone, Debug)]
pub(super) struct SimulatedPlan {
    pub(super) generation: Generation,
    pub(super) schedule: Arc<Schedule>,
    /// Nodes keep the index they had in the first plan; those that are not members have no links.
    pub(super) members: Vec<NodeId>,
}

/// The members from the next generation on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MembersChange {
    /// About four fifths of all nodes, drawn from a seed.
    Draw { seed: u64, without: BTreeSet<NodeId> },
    /// The first so many of all nodes, at least one; the seed is of their links.
    Resize { members: u32, seed: u64 },
}

/// All plans so far.
#[derive(Debug)]
pub(super) struct Plans {
    plans: Vec<SimulatedPlan>,
}

impl Plans {
    pub(super) fn new(schedule: Arc<Schedule>) -> Self {
        let members = (0..schedule.nodes() as u32).map(NodeId).collect();
        let generation = Generation { counter: 0, plan_hash: [1; 32] };
        Self { plans: vec![SimulatedPlan { generation, schedule, members }] }
    }

    pub(super) fn newest(&self) -> &SimulatedPlan {
        &self.plans[self.plans.len() - 1]
    }

    pub(super) fn of(&self, generation: Generation) -> Option<&SimulatedPlan> {
        self.plans.iter().find(|plan| plan.generation == generation)
    }

    /// Adds a new generation with other members and links.
    pub(super) fn replan(&mut self, change: MembersChange) -> Result<(), ScheduleError> {
        let newest = self.newest();
        let nodes = newest.schedule.nodes();
        let everyone = (0..nodes as u32).map(NodeId);
        let (MembersChange::Draw { seed, .. } | MembersChange::Resize { seed, .. }) = change;
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let members = match change {
            MembersChange::Resize { members, .. } => everyone.take(members.max(1) as usize).collect(),
            MembersChange::Draw { without, .. } => {
                let mut members: Vec<NodeId> = everyone.filter(|_| rng.random_bool(0.8)).collect();
                if members.len() < 3 {
                    members.clone_from(&newest.members);
                }
                members.retain(|member| !without.contains(member));
                members
            }
        };
        let mut plan_hash = [0; 32];
        rng.fill(&mut plan_hash);
        let generation = Generation { counter: newest.generation.counter + 1, plan_hash };
        let schedule = links(nodes, &members, newest.schedule.local_steps(), rng)?;
        self.plans.push(SimulatedPlan { generation, schedule, members });
        Ok(())
    }
}

/// An exact average over a random tree of all nodes: all weight goes up to node 0, level by level, and the average down
/// again.
pub(super) fn exact_average(nodes: usize, rng: &mut ChaCha8Rng) -> Vec<Step> {
    let parents: Vec<usize> = (0..nodes).map(|node| rng.random_range(0..node.max(1))).collect();
    let mut depths = vec![0; nodes];
    let mut sizes = vec![1; nodes];
    for node in 1..nodes {
        depths[node] = depths[parents[node]] + 1;
    }
    for node in (1..nodes).rev() {
        sizes[parents[node]] += sizes[node];
    }
    let deepest = depths.iter().copied().max().unwrap_or(0);
    let on_level = |depth: usize| (1..nodes).filter(|&node| depths[node] == depth).collect::<Vec<_>>();
    let up = (1..=deepest).rev().map(|depth| {
        let senders = on_level(depth);
        let keep = (0..nodes).map(|node| f64::from(!senders.contains(&node))).collect();
        Step { keep, links: senders.iter().map(|&node| (id(node), id(parents[node]), 1.0)).collect() }
    });
    let down = (1..=deepest).map(|depth| {
        let receivers = on_level(depth);
        let share = |node: usize| f64::from(sizes[node]) / f64::from(sizes[parents[node]]);
        let mut keep = vec![1.0; nodes];
        receivers.iter().for_each(|&node| keep[parents[node]] = 1.0 / f64::from(sizes[parents[node]]));
        Step { keep, links: receivers.iter().map(|&node| (id(parents[node]), id(node), share(node))).collect() }
    });
    up.chain(down).collect()
}

fn links(
    nodes: usize,
    members: &[NodeId],
    local_steps: u32,
    rng: &mut ChaCha8Rng,
) -> Result<Arc<Schedule>, ScheduleError> {
    let steps: Vec<Step> = (0..rng.random_range(1..=2)).map(|_| random_step(nodes, members, rng)).collect();
    Ok(Arc::new(Schedule::new(nodes, &steps, local_steps)?))
}

/// A ring of the members with up to two chords each, uniform column weights: strongly connected by construction.
pub(super) fn random_step(nodes: usize, members: &[NodeId], rng: &mut ChaCha8Rng) -> Step {
    let mut out: Vec<Vec<NodeId>> = vec![Vec::new(); nodes];
    // A single member has no node to send to.
    for (at, &member) in members.iter().enumerate().filter(|_| members.len() > 1) {
        out[member.index()].push(members[(at + 1) % members.len()]);
    }
    for _ in 0..rng.random_range(0..=2 * members.len()) {
        let from = rng.random_range(0..members.len());
        let to = rng.random_range(0..members.len());
        let from = members[from];
        let to = members[to];
        if from != to && !out[from.index()].contains(&to) {
            out[from.index()].push(to);
        }
    }
    let share = |from: usize| 1.0 / (out[from].len() + 1) as f64;
    let links = |from: usize| out[from].iter().map(move |&to| (NodeId(from as u32), to, share(from)));
    Step { keep: (0..nodes).map(share).collect(), links: (0..nodes).flat_map(links).collect() }
}

/// One step in which every node sends an equal share to all others, and keeps one.
pub(super) fn complete(nodes: usize) -> Step {
    let distances: Vec<usize> = (1..nodes).collect();
    circulant(nodes, &distances)
}

/// One step of the static exponential graph: links to the nodes at distances 1, 2, 4 and so on.
pub(super) fn exponential(nodes: usize) -> Step {
    circulant(nodes, &powers_of_two(nodes))
}

/// The one-peer exponential graph: a step for each distance 1, 2, 4 and so on, in which half of the weight goes to the
/// node at that distance.
pub(super) fn one_peer(nodes: usize) -> Vec<Step> {
    powers_of_two(nodes).iter().map(|&distance| circulant(nodes, &[distance])).collect()
}

/// One step on a ring with up to two chords a node, with links in both directions and weights by degree.
pub(super) fn undirected(nodes: usize, rng: &mut ChaCha8Rng) -> Step {
    let mut linked = vec![BTreeSet::new(); nodes];
    let mut link = |a: usize, b: usize| {
        linked[a].insert(b);
        linked[b].insert(a);
    };
    (0..nodes).for_each(|node| link(node, (node + 1) % nodes));
    for _ in 0..rng.random_range(nodes..=2 * nodes) {
        let a = rng.random_range(0..nodes);
        let b = rng.random_range(0..nodes);
        if a != b {
            link(a, b);
        }
    }
    let share = |node: usize| 1.0 / (linked[node].len() + 1) as f64;
    let links = (0..nodes).flat_map(|from| linked[from].iter().map(move |&to| (id(from), id(to), share(from))));
    Step { keep: (0..nodes).map(share).collect(), links: links.collect() }
}

fn powers_of_two(nodes: usize) -> Vec<usize> {
    (0..).map(|power| 1 << power).take_while(|distance| *distance < nodes).collect()
}

/// One step in which every node sends an equal share to the nodes at these distances, and keeps one.
fn circulant(nodes: usize, distances: &[usize]) -> Step {
    let share = 1.0 / (distances.len() + 1) as f64;
    let links = (0..nodes).flat_map(|from| distances.iter().map(move |d| (id(from), id((from + d) % nodes), share)));
    Step { keep: vec![share; nodes], links: links.collect() }
}

fn id(node: usize) -> NodeId {
    NodeId(node as u32)
}
