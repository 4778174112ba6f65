//! A slot while it fills up.

use crate::{bit_set::BitSet, digraph::Link};

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
