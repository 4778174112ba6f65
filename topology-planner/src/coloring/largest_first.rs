//! Largest first (Welsh and Powell, "An upper bound for the chromatic number of a graph and its application to
//! timetabling problems", 1967): colour the vertices in the order of their degrees.

use std::cmp::Reverse;

use super::degrees;
use crate::conflict_graph::ConflictGraph;

/// A proper colouring of the conflict graph, one colour per link: links with more conflicts first, the lower number
/// among equals, each with the lowest colour that none of its conflicting links has.
///
/// Colours are `0..tau`. Worse than [`dsatur`](super::dsatur()) on nearly all topologies (9 slots against 5 on a 5 x 5
/// grid with all its links); it is here to compare with. O(conflicts).
///
/// ```
/// use mingle_planner::{Link, Topology, coloring::largest_first, conflict_graph::ConflictGraph};
/// let path = Topology::generate("grid:rows=1,cols=4")?;
/// let links = vec![Link::new(0, 1), Link::new(1, 0), Link::new(1, 2), Link::new(2, 3)];
/// assert_eq!(largest_first(&ConflictGraph::new(&path, links)), [0, 1, 1, 2]);
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn largest_first(graph: &ConflictGraph<'_>) -> Vec<usize> {
    const UNCOLORED: usize = usize::MAX;
    let degrees = degrees(graph);
    let mut order: Vec<usize> = (0..degrees.len()).collect();
    order.sort_by_key(|&link| (Reverse(degrees[link]), link));
    let mut colors = vec![UNCOLORED; degrees.len()];
    // `taken_by[color]` is the last link that met this colour around it.
    let mut taken_by: Vec<usize> = Vec::new();
    for link in order {
        graph.for_each_conflict(link, |other| {
            if colors[other] != UNCOLORED {
                taken_by[colors[other]] = link;
            }
        });
        let color = taken_by.iter().position(|&last| last != link).unwrap_or(taken_by.len());
        if color == taken_by.len() {
            taken_by.push(UNCOLORED);
        }
        colors[link] = color;
    }
    colors
}
