//! The nodes that transmit and receive in a slot, while it fills up.

use crate::{bit_set::BitSet, digraph::Link};

/// A slot as node sets, for which a few word operations decide whether one more link fits.
///
/// With `X` the transmitters and `N+[v]` the nodes that reach `v`, itself included, link `(i, j)` fits under two
/// conditions: no node of `X` but `i` reaches `j`; and `i`, unless it transmits already, reaches no receiver of another
/// link.
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

    /// Returns `true` if the link conflicts with none in the slot. `hears[v]` is `N+[v]`.
    pub(crate) fn fits(&self, link: Link, hears: &[BitSet]) -> bool {
        self.transmitters.is_disjoint_but_for(&hears[link.to], link.from)
            && (self.transmitters.contains(link.from) || self.receivers.is_disjoint(&hears[link.from]))
    }
}
