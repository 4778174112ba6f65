//! Colouring the conflict graph: which slot each link is active in.
//!
//! DSATUR (Brélaz, "New methods to color the vertices of a graph", CACM 22, 1979): always colour the vertex whose
//! neighbours already have the most different colours. petgraph's `dsatur_coloring` breaks ties by hash order and
//! wants every conflict stored; a plan must come out the same each time, and dense topologies have millions of them.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{bit_set::BitSet, conflict_graph::ConflictGraph, digraph::Link};

/// A proper colouring of the conflict graph, one colour per link, by DSATUR.
///
/// Ties in saturation go to the link with more conflicts, then to the lower number; a link gets the lowest colour that
/// none of its conflicting links has. Colours are `0..tau`. O(conflicts log links).
///
/// ```
/// use mingle_planner::{Link, Topology, coloring::dsatur, conflict_graph::ConflictGraph};
/// let path = Topology::generate("grid:rows=1,cols=4")?;
/// let links = vec![Link::new(0, 1), Link::new(1, 0), Link::new(1, 2), Link::new(2, 3)];
/// assert_eq!(dsatur(&ConflictGraph::new(&path, links)), [0, 1, 1, 2]);
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn dsatur(graph: &ConflictGraph<'_>) -> Vec<usize> {
    const UNCOLORED: usize = usize::MAX;
    let link_count = graph.links().len();
    let degrees = degrees(graph);
    let mut colors = vec![UNCOLORED; link_count];
    let mut taken: Vec<GrowingSet> = vec![GrowingSet::default(); link_count];
    // An entry is stale once its link has been coloured; a newer entry of the same link has a higher saturation.
    let mut heap: BinaryHeap<_> = (0..link_count).map(|link| (0, degrees[link], Reverse(link))).collect();
    while let Some((_, _, Reverse(link))) = heap.pop() {
        if colors[link] != UNCOLORED {
            continue;
        }
        let color = taken[link].lowest_absent();
        colors[link] = color;
        graph.for_each_conflict(link, |other| {
            if colors[other] == UNCOLORED && taken[other].insert(color) {
                heap.push((taken[other].count, degrees[other], Reverse(other)));
            }
        });
    }
    colors
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

/// The colours around a link. Grows with the colours in use.
#[derive(Debug, Clone, Default)]
struct GrowingSet {
    words: Vec<u64>,
    count: usize,
}

impl GrowingSet {
    fn insert(&mut self, color: usize) -> bool {
        let (word, bit) = (color / 64, 1 << (color % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    fn lowest_absent(&self) -> usize {
        let free = self.words.iter().position(|&word| word != u64::MAX);
        free.map_or(64 * self.words.len(), |word| 64 * word + self.words[word].trailing_ones() as usize)
    }
}

/// A slot as node sets: tells in a few word operations whether one more link fits.
///
/// With `X` the transmitters and `N+[v]` what `v` hears including itself, link `(i, j)` fits when `j` hears nobody of
/// `X` but `i`, and `i`, unless it transmits already, is heard by no receiver of another link.
#[derive(Debug, Clone)]
pub(crate) struct SlotOccupancy {
    transmitters: BitSet,
    receivers: BitSet,
}

impl SlotOccupancy {
    pub(crate) fn new(node_count: usize, links: &[Link]) -> Self {
        let mut occupancy = Self { transmitters: BitSet::new(node_count), receivers: BitSet::new(node_count) };
        links.iter().for_each(|&link| occupancy.insert(link));
        occupancy
    }

    pub(crate) fn insert(&mut self, link: Link) {
        self.transmitters.insert(link.from);
        self.receivers.insert(link.to);
    }

    /// Whether the link conflicts with none in the slot. `hears[v]` is `N+[v]`.
    pub(crate) fn fits(&self, link: Link, hears: &[BitSet]) -> bool {
        self.transmitters.is_disjoint_but_for(&hears[link.to], link.from)
            && (self.transmitters.contains(link.from) || self.receivers.is_disjoint(&hears[link.from]))
    }
}
