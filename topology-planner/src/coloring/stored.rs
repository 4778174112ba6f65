//! The conflict graph with its edges stored, for searches that walk it many times.

use crate::{bit_set::BitSet, conflict_graph::ConflictGraph};

/// Conflicts as lists and as bits. Memory: links^2 / 8 bytes and 4 for each conflict.
#[derive(Debug)]
pub(super) struct StoredConflicts {
    pub(super) neighbors: Vec<Vec<u32>>,
    pub(super) rows: Vec<BitSet>,
}

impl StoredConflicts {
    pub(super) fn new(graph: &ConflictGraph<'_>) -> Self {
        let links = graph.links().len();
        let mut neighbors = Vec::with_capacity(links);
        let mut rows = Vec::with_capacity(links);
        for link in 0..links {
            let mut row = BitSet::new(links);
            graph.for_each_conflict(link, |other| row.insert(other));
            neighbors.push(row.iter().map(|other| other as u32).collect());
            rows.push(row);
        }
        Self { neighbors, rows }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn neighbors(&self, link: usize) -> impl Iterator<Item = usize> + '_ {
        self.neighbors[link].iter().map(|&other| other as usize)
    }

    pub(super) fn degree(&self, link: usize) -> usize {
        self.neighbors[link].len()
    }
}
