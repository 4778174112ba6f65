//! DSATUR (Brélaz, "New methods to color the vertices of a graph", CACM 22, 1979): always colour the vertex whose
//! neighbours already have the most different colours. petgraph's `dsatur_coloring` breaks ties by hash order and
//! wants every conflict stored; a plan must come out the same each time, and dense topologies have millions of them.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::degrees;
use crate::conflict_graph::ConflictGraph;

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

/// The colours around a link. Grows with the colours in use.
#[derive(Debug, Clone, Default)]
struct GrowingSet {
    words: Vec<u64>,
    count: usize,
}

impl GrowingSet {
    fn insert(&mut self, color: usize) -> bool {
        let word = color / 64;
        let bit = 1 << (color % 64);
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
