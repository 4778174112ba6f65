//! A search for the schedule with the fewest slots, within some effort.
//!
//! The length of the scattering depends on the root alone, so roots come first: each gets greedy schedules and a search
//! for a shorter scattering. Then ever shorter total lengths are tried: the gathering must be found in the slots that
//! the scattering leaves, for one root after the other.

use rand_chacha::ChaCha8Rng;

use super::{
    channel::Channel,
    gather::{GreedyGather, RANKS, random_rank},
    gather_search::GatherSearch,
    scatter::GreedyScatter,
    scatter_search::ScatterSearch,
    schedule::SlotSchedule,
};

/// Up to this many nodes, all are tried as roots; above, the most central ones.
const ALL_ROOTS: usize = 128;

/// Number of central nodes tried as roots when not all nodes are.
const CENTRAL_ROOTS: usize = 8;

/// Number of the best roots for which ranks are searched.
const RANKED_ROOTS: usize = 4;

/// Above this many nodes there are no searches: their tables of nodes by slots would not be linear in links.
const MAX_SEARCHED: usize = 2_048;

/// The most moves per unit of effort in each of the two searches; 3 n^3 where that is fewer.
const MAX_MOVES_PER_EFFORT: usize = 200_000;

/// Visits of a node or link in greedy schedules per unit of effort.
const VISITS_PER_EFFORT: usize = 4_000_000;

/// Up to this many nodes, the numbers of roots and greedy schedules are as above whatever they cost.
const MAX_UNBOUNDED: usize = 16_384;

/// Visits per unit of effort in all greedy schedules of larger graphs; at least one schedule of each kind is made.
const LARGE_VISITS_PER_EFFORT: usize = 48_000_000;

/// Approximate number of visits of each node and link by a greedy schedule.
const VISITS_PER_SCHEDULE: usize = 40;

/// The least number of greedy gatherings for a root, unless the graph is large.
const GATHERS: usize = 3;

/// Errors in the order in which transmitters are tried, in 256ths; cycled through.
const NOISES: [usize; 4] = [0, 64, 128, 256];

/// Searches until the schedule has no more than `least` slots or the effort is spent.
///
/// # Errors
///
/// `GivenUp`, with the slots of the gathering that were made and the nodes that were left.
pub(super) fn search(
    channel: &Channel<'_>,
    effort: u32,
    least: usize,
    rng: &mut ChaCha8Rng,
) -> Result<SlotSchedule, GivenUp> {
    let nodes = channel.node_count();
    let effort = effort as usize;
    let roots = match nodes {
        0..=ALL_ROOTS => (0..nodes).collect(),
        _ => central_nodes(channel, CENTRAL_ROOTS.min(affordable(channel, effort) / (GATHERS + 1)).max(1)),
    };
    let passes = Passes::of(channel, effort, roots.len());
    let starts = roots.into_iter().map(|root| RootSchedule::greedy(channel, root, passes, rng));
    let mut starts = starts.collect::<Result<Vec<_>, _>>()?;
    let moves = effort * MAX_MOVES_PER_EFFORT.min(3 * nodes.saturating_pow(3));
    let is_done = |starts: &[RootSchedule]| starts.iter().any(|start| start.schedule.slot_count() <= least);
    if nodes <= MAX_SEARCHED && !is_done(&starts) {
        // A move in the search for a scattering goes through sets of nodes, a word at a time.
        let each = moves / (starts.len() * nodes.div_ceil(64));
        starts.iter_mut().for_each(|start| start.shorten_scatter(channel, each, rng));
        starts.sort_by_key(|start| (start.schedule.slot_count(), start.schedule.root));
        let tries = tries(channel, effort);
        for start in starts.iter_mut().take(RANKED_ROOTS) {
            start.search_ranks(channel, tries, rng);
        }
        let mut moves = Moves { left: moves, per_run: (100 * nodes * nodes).min(moves / 10).max(1) };
        while !is_done(&starts) && shorten_a_gather(channel, &mut starts, &mut moves, rng) {}
    }
    let schedules = starts.into_iter().map(|start| start.schedule);
    let best = schedules.min_by_key(|schedule| (schedule.slot_count(), schedule.root));
    let mut best = best.unwrap_or(SlotSchedule { root: 0, gather: Vec::new(), scatter: Vec::new() });
    if nodes <= MAX_SEARCHED {
        // Mass sent to the neighbour that sends last takes fewer hops, and the period fewer steps.
        best.gather = GatherSearch::new(channel, best.root, best.gather.len(), &best.gather, rng).links();
    }
    Ok(best)
}

/// The error for a gathering that took too much work.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenUp {
    pub(super) slots: usize,
    pub(super) left: usize,
}

/// The number of gatherings and scatterings that the effort allows on a large graph; any number on others.
fn affordable(channel: &Channel<'_>, effort: usize) -> usize {
    match channel.node_count() {
        0..=MAX_UNBOUNDED => usize::MAX,
        _ => effort * LARGE_VISITS_PER_EFFORT / (VISITS_PER_SCHEDULE * visits(channel)),
    }
}

/// Numbers of greedy schedules made for each root.
#[derive(Debug, Clone, Copy)]
struct Passes {
    gathers: usize,
    scatters: usize,
}

impl Passes {
    fn of(channel: &Channel<'_>, effort: usize, roots: usize) -> Self {
        let scatters = (effort * VISITS_PER_EFFORT / (VISITS_PER_SCHEDULE * visits(channel) * roots)).clamp(1, 16);
        let most = (affordable(channel, effort) / roots).saturating_sub(scatters).max(1);
        Self { gathers: scatters.max(GATHERS).min(most), scatters }
    }
}

/// The number of gatherings that a search over ranks tries: beyond some multiple of the pairs of nodes, more gain
/// nothing.
fn tries(channel: &Channel<'_>, effort: usize) -> usize {
    effort * (VISITS_PER_EFFORT / (8 * visits(channel))).min(2 * channel.node_count().pow(2))
}

/// The nodes and links of a graph. A greedy schedule visits each about as often as there are slots between a node's
/// first chance and its turn.
fn visits(channel: &Channel<'_>) -> usize {
    (0..channel.node_count()).map(|node| 1 + channel.interferers(node).len()).sum()
}

/// The moves left for gatherings.
struct Moves {
    left: usize,
    per_run: usize,
}

/// Takes a slot off the shortest total. Returns `true` if the moves left sufficed to find how, for some root.
fn shorten_a_gather(
    channel: &Channel<'_>,
    starts: &mut [RootSchedule],
    moves: &mut Moves,
    rng: &mut ChaCha8Rng,
) -> bool {
    let Some(slots) = starts.iter().map(|start| start.schedule.slot_count() - 1).min() else {
        return false;
    };
    let has_room = |start: &RootSchedule| start.schedule.scatter.len() + start.eccentricity <= slots;
    let mut order: Vec<usize> = (0..starts.len()).filter(|&at| has_room(&starts[at])).collect();
    order.sort_by_key(|&at| (starts[at].schedule.slot_count(), starts[at].schedule.scatter.len()));
    while !order.is_empty() {
        for &at in &order {
            let Some(left) = moves.left.checked_sub(moves.per_run) else {
                return false;
            };
            moves.left = left;
            let SlotSchedule { root, gather, scatter } = &mut starts[at].schedule;
            let mut search = GatherSearch::new(channel, *root, slots - scatter.len(), gather, rng);
            if search.run(moves.per_run, rng) {
                *gather = search.links();
                return true;
            }
        }
    }
    false
}

/// A root with the best schedule known for it.
struct RootSchedule {
    eccentricity: usize,
    schedule: SlotSchedule,
}

impl RootSchedule {
    fn greedy(channel: &Channel<'_>, root: usize, passes: Passes, rng: &mut ChaCha8Rng) -> Result<Self, GivenUp> {
        let hops = channel.hops_from(root);
        let heights = hops.heights(channel);
        let mut greedy = GreedyGather::new(channel);
        // Ranks that hardly count, that outweigh the choice, and the longest way first.
        let mut ranks = |pass: usize, node: usize| match pass % 3 {
            0 => random_rank(rng) % 32,
            1 => random_rank(rng),
            _ => RANKS * 4 * (heights[root] - heights[node]) as u32 + random_rank(rng) % 32,
        };
        let gathers = (0..passes.gathers).map(|pass| {
            let ranks: Vec<u32> = (0..channel.node_count()).map(|node| ranks(pass, node)).collect();
            let gather = greedy.gather(root, &ranks);
            if gather.left == 0 {
                Ok(gather.slots)
            } else {
                Err(GivenUp { slots: gather.slots.len(), left: gather.left })
            }
        });
        let gathers = gathers.collect::<Result<Vec<_>, _>>()?;
        let gather = gathers.into_iter().min_by_key(Vec::len).unwrap_or_default();
        let mut greedy = GreedyScatter::new(channel);
        let scatters = (0..passes.scatters).map(|pass| greedy.scatter(root, NOISES[pass % NOISES.len()], rng));
        let scatter = scatters.min_by_key(Vec::len).unwrap_or_default();
        Ok(Self { eccentricity: hops.eccentricity(), schedule: SlotSchedule { root, gather, scatter } })
    }

    fn search_ranks(&mut self, channel: &Channel<'_>, tries: usize, rng: &mut ChaCha8Rng) {
        let ranks = (0..channel.node_count()).map(|_| random_rank(rng)).collect();
        let found = GreedyGather::new(channel).search(self.schedule.root, ranks, tries, rng).slots;
        if found.len() < self.schedule.gather.len() {
            self.schedule.gather = found;
        }
    }

    fn shorten_scatter(&mut self, channel: &Channel<'_>, moves: usize, rng: &mut ChaCha8Rng) {
        let SlotSchedule { root, scatter, .. } = &mut self.schedule;
        while scatter.len() > self.eccentricity {
            let mut search = ScatterSearch::new(channel, *root, scatter.len() - 1, scatter);
            if !search.run(moves, rng) {
                break;
            }
            *scatter = search.links();
        }
    }
}

/// Nodes of small eccentricity: those nearest to the middle between nodes that are far apart. O(n + links) for each.
pub(super) fn central_nodes(channel: &Channel<'_>, count: usize) -> Vec<usize> {
    const SWEEPS: usize = 6;
    let nodes = channel.node_count();
    let mut nearest = vec![usize::MAX; nodes];
    let mut farthest = vec![0; nodes];
    let mut rim = channel.hops_from(0).order[nodes - 1];
    for _ in 0..SWEEPS {
        let hops = channel.hops_from(rim).hops;
        farthest.iter_mut().zip(&hops).for_each(|(farthest, &hops)| *farthest = hops.max(*farthest));
        nearest.iter_mut().zip(&hops).for_each(|(nearest, &hops)| *nearest = hops.min(*nearest));
        // The next one lies far from all before.
        rim = (0..nodes).max_by_key(|&node| (nearest[node], std::cmp::Reverse(node))).unwrap_or(0);
    }
    let mut middle: Vec<usize> = (0..nodes).collect();
    middle.sort_by_key(|&node| farthest[node]);
    middle.truncate(4 * count);
    middle.sort_by_cached_key(|&node| channel.hops_from(node).eccentricity());
    middle.truncate(count);
    middle
}
