//! Augmentation (step 4 of Algorithm 1 \[NH\]): adds links that cost no slot.

use crate::{
    bit_set::BitSet,
    coloring::SlotOccupancy,
    digraph::{Digraph, Link},
    distance::Distances,
    objective::ln_iteration_factor,
    topology::Topology,
};

/// Slack for comparing a factor with the one before augmentation: both are logarithms near 100.
const TOLERANCE: f64 = 1e-9;

/// Number of pairs of the next smaller distance that are kept.
const KEPT_PAIRS: usize = 256;

/// Adds links of the topology to an activated graph where they fit into its slots without conflict.
///
/// `slots` hold the links of the activated graph, conflict-free and strongly connected. Each round takes, of all links
/// that fit into some slot, the one with the least `Delta^2 (1 + D+)^(4 Delta)` and puts it into the first slot it fits
/// into. It ends when nothing fits, or when the best link would make that factor larger than it was at the start
/// (\[NH\] Algorithm 1, lines 25 to 33). Equally good links are taken in ascending order.
///
/// Returns the slots with all their links, ascending within each slot. The number of slots stays as it was.
///
/// One round looks at every candidate, but mostly at a single pair of nodes of it: a link can shorten the diameter only
/// if it lies on a shorter way between *every* two nodes at that distance. O(n^2) per added link and O(1) per
/// candidate in practice; O(n^2) per candidate at worst.
///
/// ```
/// use mingle_planner::{Link, Topology, augmentation::augment};
/// // Along the path 0 - 1 - 2 nothing is left to add; on a triangle the return links fit the slots of their senders.
/// let triangle = Topology::generate("complete:n=3")?;
/// let ring = [(0, 1), (1, 2), (2, 0)].map(|(from, to)| vec![Link::new(from, to)]).to_vec();
/// assert_eq!(augment(&triangle, ring.clone()), ring); // 2^2 2^8 < 2^2 3^8: a higher degree does not pay
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn augment(topology: &Topology, slots: Vec<Vec<Link>>) -> Vec<Vec<Link>> {
    let mut state = LinkAugmentation::new(topology, slots);
    let limit = state.factor_now() + TOLERANCE;
    while let Some(best) = state.best_candidate() {
        if best.ln_factor > limit {
            break;
        }
        state.add(best.candidate);
    }
    state.slots.iter_mut().for_each(|slot| slot.sort_unstable());
    state.slots
}

struct LinkAugmentation {
    hears: Vec<BitSet>,
    slots: Vec<Vec<Link>>,
    occupancy: Vec<SlotOccupancy>,
    graph: Digraph,
    distances: Distances,
    diameter: u16,
    /// Pairs of nodes at the largest distance.
    farthest: Vec<(usize, usize)>,
    /// Some pairs that were at the next smaller distance: if a link leaves one of them there, that is the new diameter.
    next_farthest: Vec<(usize, usize)>,
    /// Links outside the graph, ascending, each with the first slot it fits into.
    candidates: Vec<(Link, usize)>,
}

struct BestCandidate {
    candidate: usize,
    ln_factor: f64,
}

impl LinkAugmentation {
    fn new(topology: &Topology, slots: Vec<Vec<Link>>) -> Self {
        let node_count = topology.node_count();
        let graph = Digraph::new(node_count, slots.iter().flatten().copied());
        let distances = Distances::of(&graph);
        let both_ways = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
        let mut candidates: Vec<(Link, usize)> =
            both_ways.filter(|&link| !graph.contains(link)).map(|link| (link, 0)).collect();
        candidates.sort_unstable();
        let mut state = Self {
            hears: (0..node_count).map(|node| closed_neighborhood(topology, node)).collect(),
            occupancy: slots.iter().map(|slot| SlotOccupancy::new(node_count, slot)).collect(),
            slots,
            graph,
            diameter: 0,
            distances,
            farthest: Vec::new(),
            next_farthest: Vec::new(),
            candidates,
        };
        state.keep_fitting(|_| true);
        state.find_farthest();
        state
    }

    fn factor_now(&self) -> f64 {
        ln_iteration_factor(self.diameter.into(), self.graph.max_out_degree())
    }

    /// The candidate with the least factor, the lowest link among equals.
    fn best_candidate(&self) -> Option<BestCandidate> {
        let max_out_degree = self.graph.max_out_degree();
        // Hardly any link shortens the diameter, so two factors suffice for nearly all candidates.
        let factors = [0, 1].map(|more| ln_iteration_factor(self.diameter.into(), max_out_degree + more));
        let mut best: Option<BestCandidate> = None;
        for (candidate, &(link, _)) in self.candidates.iter().enumerate() {
            let more = usize::from(self.graph.successors(link.from).len() == max_out_degree);
            let ln_factor = match self.shorter_diameter(link) {
                None => factors[more],
                Some(diameter) => ln_iteration_factor(diameter, max_out_degree + more),
            };
            if best.as_ref().is_none_or(|best| ln_factor < best.ln_factor) {
                best = Some(BestCandidate { candidate, ln_factor });
            }
        }
        best
    }

    /// The diameter with one more link, if the link shortens it.
    fn shorter_diameter(&self, link: Link) -> Option<usize> {
        let over = |&(from, to): &(usize, usize)| {
            self.distances.between(from, link.from) + 1 + self.distances.between(link.to, to)
        };
        if !self.farthest.iter().all(|pair| over(pair) < self.diameter) {
            return None;
        }
        let next = self.diameter - 1;
        let stays = |pair: &(usize, usize)| self.distances.between(pair.0, pair.1) == next && over(pair) >= next;
        let diameter = if self.next_farthest.iter().any(stays) { next } else { self.distances.diameter_with(link) };
        Some(diameter.into())
    }

    fn add(&mut self, candidate: usize) {
        let (link, slot) = self.candidates.remove(candidate);
        self.slots[slot].push(link);
        self.occupancy[slot].insert(link);
        self.graph.insert(link);
        self.distances.insert_link(link);
        self.keep_fitting(|first_fit| first_fit == slot);
        // Distances only shrink: while some of these pairs are as far apart, there are no others.
        let distances = &self.distances;
        let diameter = self.diameter;
        self.farthest.retain(|&(from, to)| distances.between(from, to) == diameter);
        if self.farthest.is_empty() {
            self.find_farthest();
        }
    }

    /// Moves candidates to the next slot they fit into and drops those that fit nowhere. Slots only fill up: candidates
    /// of unchanged slots stay, and no earlier slot needs a look.
    fn keep_fitting(&mut self, has_changed: impl Fn(usize) -> bool) {
        let occupancy = &self.occupancy;
        let hears = &self.hears;
        self.candidates.retain_mut(|(link, slot)| {
            if has_changed(*slot) {
                match (*slot..occupancy.len()).find(|&slot| occupancy[slot].fits(*link, hears)) {
                    Some(next) => *slot = next,
                    None => return false,
                }
            }
            true
        });
    }

    fn find_farthest(&mut self) {
        let diameter = self.distances.diameter();
        self.diameter = diameter;
        self.farthest.clear();
        for from in 0..self.distances.node_count() {
            let row = self.distances.row(from).iter().enumerate();
            self.farthest.extend(row.filter(|&(_, &hops)| hops == diameter).map(|(to, _)| (from, to)));
        }
        self.find_next_farthest();
    }

    /// One pair of each source that has one, up to [`KEPT_PAIRS`].
    fn find_next_farthest(&mut self) {
        let next = self.diameter.saturating_sub(1);
        let place = |from: usize| self.distances.row(from).iter().position(|&hops| hops == next).map(|to| (from, to));
        self.next_farthest = (0..self.distances.node_count()).filter_map(place).take(KEPT_PAIRS).collect();
    }
}

/// `N+[node]`: the nodes whose transmissions reach the node, itself included.
fn closed_neighborhood(topology: &Topology, node: usize) -> BitSet {
    let mut set = BitSet::new(topology.node_count());
    set.insert(node);
    topology.interferers(node).iter().for_each(|&neighbor| set.insert(neighbor));
    set
}
