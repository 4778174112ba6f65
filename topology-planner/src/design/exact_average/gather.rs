//! Gathering to a root: every other node sends all its mass to one neighbour, once, after it has received all that it
//! will.
//!
//! Slots are built backwards in time. The last node sends to the root; in the slot before, nodes send that one of these
//! two can receive from; and so on until all nodes are included. A link that is added leads to a node that sends later,
//! so every choice gives a causal order, and there are no dead ends.
//!
//! Each slot is filled greedily, nodes with the fewest possible receivers first. They are the edge of the growing set
//! and extend it, while the interior, where there is much choice, fills up later.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{below, channel::Channel};
use crate::digraph::Link;

/// Number of ranks that weigh as much as one possible receiver.
const RANKS_PER_CHOICE: u32 = 32;

/// The bound below which all ranks are.
pub(super) const RANKS: u32 = 256;

/// The largest accepted increase in energy at the start of the search over ranks: a few nodes that join a slot later.
const HEAT: f64 = 8.0;

/// The most nodes that a gathering looks at, those that wait for a slot counted again in each: some seconds of work.
const MAX_WORK: usize = 1 << 29;

/// The slots of a gathering.
#[derive(Debug, Clone)]
pub(super) struct Gather {
    /// The links of each slot, first slot first.
    pub(super) slots: Vec<Vec<Link>>,
    /// The number of nodes left out because the work is spent.
    pub(super) left: usize,
    /// Nodes not yet included, added up over the slots as they are built: less leaves less to do for the last ones.
    outside: usize,
}

impl Gather {
    /// The energy of simulated annealing: one more slot costs as much as ten nodes that join a slot later.
    fn energy(&self) -> f64 {
        (10 * self.slots.len() + self.outside) as f64
    }
}

pub(super) fn random_rank(rng: &mut ChaCha8Rng) -> u32 {
    rng.next_u32() % RANKS
}

/// A greedy filler of slots, with the state of the slot that is being filled.
pub(super) struct GreedyGather<'c, 't> {
    channel: &'c Channel<'t>,
    /// `true` if the node is the root or sends in a later slot.
    is_in: Vec<bool>,
    /// For each node, the number of included nodes that it may send to.
    choice: Vec<usize>,
    /// For each node, the number of nodes not yet included that reach it.
    outside: Vec<usize>,
    /// The last slot in which a transmitter reached the node; `disturbs_in` is the last in which the node could have
    /// disturbed a receiver.
    reached_in: Vec<usize>,
    disturbs_in: Vec<usize>,
}

impl<'c, 't> GreedyGather<'c, 't> {
    pub(super) fn new(channel: &'c Channel<'t>) -> Self {
        let nodes = channel.node_count();
        Self {
            channel,
            is_in: vec![false; nodes],
            choice: vec![0; nodes],
            outside: vec![0; nodes],
            reached_in: vec![usize::MAX; nodes],
            disturbs_in: vec![usize::MAX; nodes],
        }
    }

    /// The links of each slot, first slot first. Nodes with fewer possible receivers go first and, where these are
    /// equal, the lower rank; a difference of [`RANKS_PER_CHOICE`] ranks outweighs one more possible receiver. O(slots
    /// (n log n + links)) at worst; stops after [`MAX_WORK`].
    pub(super) fn gather(&mut self, root: usize, ranks: &[u32]) -> Gather {
        let nodes = self.channel.node_count();
        self.is_in.fill(false);
        self.choice.fill(0);
        self.reached_in.fill(usize::MAX);
        self.disturbs_in.fill(usize::MAX);
        for node in 0..nodes {
            self.outside[node] = self.channel.interferers(node).len();
        }
        let mut is_listed = vec![false; nodes];
        is_listed[root] = true;
        let mut joining = vec![root];
        let mut frontier = Vec::new();
        let mut slots: Vec<Vec<Link>> = Vec::new();
        let mut left = nodes - 1;
        let mut outside = 0;
        let mut work = 0;
        loop {
            for node in joining {
                self.join(node);
                let partners = self.channel.partners(node).iter();
                frontier.extend(partners.filter(|&&other| !std::mem::replace(&mut is_listed[other], true)));
            }
            frontier.retain(|&node: &usize| !self.is_in[node]);
            work += frontier.len();
            if frontier.is_empty() || work > MAX_WORK {
                break;
            }
            let key = |node: usize| self.choice[node] * RANKS_PER_CHOICE as usize + ranks[node] as usize;
            frontier.sort_unstable_by_key(|&node| (key(node), node));
            let slot = self.fill(slots.len(), &frontier);
            left -= slot.len();
            outside += left;
            joining = slot.iter().map(|link| link.from).collect();
            slots.push(slot);
        }
        slots.reverse();
        Gather { slots, left, outside }
    }

    /// Simulated annealing over ranks: the best of `tries` gatherings, the first of which has the given ranks.
    pub(super) fn search(&mut self, root: usize, mut ranks: Vec<u32>, tries: usize, rng: &mut ChaCha8Rng) -> Gather {
        let mut now = self.gather(root, &ranks);
        let mut best = now.clone();
        for attempt in 1..tries {
            let node = below(rng, ranks.len());
            let before = std::mem::replace(&mut ranks[node], random_rank(rng));
            let next = self.gather(root, &ranks);
            let heat = HEAT * (tries - attempt) as f64 / tries as f64;
            if next.energy() - now.energy() <= heat * f64::from(rng.next_u32()) / 4_294_967_296.0 {
                now = next;
                if now.energy() < best.energy() {
                    best = now.clone();
                }
            } else {
                ranks[node] = before;
            }
        }
        best
    }

    fn join(&mut self, node: usize) {
        self.is_in[node] = true;
        self.channel.interferers(node).iter().for_each(|&other| self.outside[other] -= 1);
        self.channel.partners(node).iter().for_each(|&other| self.choice[other] += 1);
    }

    /// As many links as fit, in the order of the frontier.
    fn fill(&mut self, slot: usize, frontier: &[usize]) -> Vec<Link> {
        let mut links = Vec::new();
        for &from in frontier {
            if self.disturbs_in[from] == slot {
                continue;
            }
            let hearing = self.channel.partners(from).iter().copied();
            let hearing = hearing.filter(|&to| self.is_in[to] && self.reached_in[to] != slot);
            // A receiver silences the nodes around it: one with few left to silence is best.
            let Some(to) = hearing.min_by_key(|&to| (self.outside[to], to)) else {
                continue;
            };
            self.channel.interferers(from).iter().for_each(|&other| self.reached_in[other] = slot);
            self.channel.interferers(to).iter().for_each(|&other| self.disturbs_in[other] = slot);
            links.push(Link::new(from, to));
        }
        links
    }
}
