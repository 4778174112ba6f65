//! Colouring of the conflict graph: the slot in which each link is active.
//!
//! [`best`] is what the designs use: DSATUR, improved by tabu search where the conflict graph is small enough to store,
//! with a clique as a lower bound and, on small graphs, a proof.

mod clique;
mod dsatur;
mod exact;
mod largest_first;
mod slot_occupancy;
mod stored;
mod tabu;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub(crate) use self::slot_occupancy::SlotOccupancy;
use self::stored::StoredConflicts;
pub use self::{dsatur::dsatur, largest_first::largest_first};
use crate::{conflict_graph::ConflictGraph, digraph::Link};

/// The most links whose conflicts are stored to search for fewer slots; 4 MiB of bits.
pub const MAX_SEARCHED_LINKS: usize = 6_000;

/// The most links that DSATUR colours. Above, links are coloured largest first, which looks at every conflict twice and
/// stores none.
pub const MAX_DSATUR_LINKS: usize = 1 << 18;

/// The most links for which branch and bound tries to prove a colouring optimal.
pub const MAX_PROVED_LINKS: usize = 1_500;

/// Number of links from each of which a clique is grown for a lower bound.
const BOUND_STARTS: usize = 16;

/// A proper colouring of a conflict graph, with a proven lower bound on its colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coloring {
    /// One colour per link, `0..slot_count`.
    pub colors: Vec<usize>,
    /// The number of colours.
    pub slot_count: usize,
    /// No colouring has fewer colours than this.
    pub lower_bound: usize,
}

impl Coloring {
    fn new(colors: Vec<usize>, lower_bound: usize) -> Self {
        let slot_count = colors.iter().max().map_or(0, |&last| last + 1);
        Self { colors, slot_count, lower_bound }
    }

    /// Returns `true` if the lower bound proves that no colouring has fewer colours.
    #[must_use]
    pub const fn is_optimal(&self) -> bool {
        self.slot_count == self.lower_bound
    }
}

/// The best colouring found with some effort, and a lower bound.
///
/// Starts with DSATUR, or with largest first above [`MAX_DSATUR_LINKS`] links. Up to [`MAX_SEARCHED_LINKS`] links a
/// clique is grown for the bound and, while there is a gap, tabu search makes `1,000 * effort` recolourings; up to
/// [`MAX_PROVED_LINKS`] branch and bound then looks at `2,000 * effort` branches. Above, the bound is the largest
/// number of links into one receiver. The same arguments give the same colouring.
///
/// ```
/// use mingle_planner::{Link, Topology, coloring, conflict_graph::ConflictGraph};
/// let petersen = Topology::parse("0 1\n1 2\n2 3\n3 4\n4 0\n0 5\n1 6\n2 7\n3 8\n4 9\n5 7\n7 9\n9 6\n6 8\n8 5")?;
/// let both_ways = petersen.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
/// let coloring = coloring::best(&ConflictGraph::new(&petersen, both_ways), 10, 0);
/// assert_eq!(coloring.slot_count, 6);
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn best(graph: &ConflictGraph<'_>, effort: u32, seed: u64) -> Coloring {
    let links = graph.links().len();
    let start = if links > MAX_DSATUR_LINKS { largest_first(graph) } else { dsatur(graph) };
    if links > MAX_SEARCHED_LINKS {
        return Coloring::new(start, most_links_into_one(graph.links()));
    }
    let stored = StoredConflicts::new(graph);
    let effort = effort as usize;
    let clique = clique::large_clique(&stored, 16 + 4 * effort);
    let mut found = Coloring::new(start, clique.len());
    if !found.is_optimal() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let colors = tabu::tabu(&stored, &found.colors, clique.len(), 1_000 * effort, &mut rng);
        found = Coloring::new(colors, clique.len());
    }
    if !found.is_optimal() && links <= MAX_PROVED_LINKS {
        let proof = exact::prove(&stored, &found.colors, &clique, 2_000 * effort);
        let is_optimal = proof.is_optimal;
        found = Coloring::new(proof.colors, clique.len());
        if is_optimal {
            found.lower_bound = found.slot_count;
        }
    }
    found
}

/// A proven lower bound on the slots of links that have a schedule: the least number itself where at most `branches`
/// branches of a search prove it. Otherwise it is the size of a clique or, above [`MAX_PROVED_LINKS`] links or where it
/// meets the schedule, the most links into one receiver.
#[must_use]
pub fn lower_bound(graph: &ConflictGraph<'_>, schedule: &[usize], branches: usize) -> usize {
    let slot_count = schedule.iter().max().map_or(0, |&last| last + 1);
    let links = graph.links().len();
    let into_one = most_links_into_one(graph.links());
    if links > MAX_PROVED_LINKS || into_one >= slot_count {
        return into_one;
    }
    let stored = StoredConflicts::new(graph);
    let clique = clique::large_clique(&stored, BOUND_STARTS);
    if clique.len() >= slot_count {
        return clique.len();
    }
    let proof = exact::prove(&stored, schedule, &clique, branches);
    if proof.is_optimal { Coloring::new(proof.colors, 0).slot_count } else { clique.len() }
}

/// The largest number of links into one receiver: a lower bound on the slots, as a receiver receives from one
/// transmitter in a slot.
pub(crate) fn most_links_into_one(links: &[Link]) -> usize {
    let mut into: Vec<usize> = links.iter().map(|link| link.to).collect();
    into.sort_unstable();
    into.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0)
}

/// The links of each colour, in the order of the colours; within one, in the order of the link numbers.
#[must_use]
pub fn slots(links: &[Link], colors: &[usize]) -> Vec<Vec<Link>> {
    let slot_count = colors.iter().max().map_or(0, |&last| last + 1);
    let mut slots = vec![Vec::new(); slot_count];
    for (&link, &color) in links.iter().zip(colors) {
        slots[color].push(link);
    }
    slots
}

/// The number of conflicts of each link.
fn degrees(graph: &ConflictGraph<'_>) -> Vec<usize> {
    let link_count = graph.links().len();
    let mut counted_for = vec![usize::MAX; link_count];
    let count = |link: usize| {
        let mut degree = 0;
        graph.for_each_conflict(link, |other| {
            if counted_for[other] != link {
                counted_for[other] = link;
                degree += 1;
            }
        });
        degree
    };
    (0..link_count).map(count).collect()
}
