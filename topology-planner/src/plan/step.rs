//! One mixing step: a column-stochastic matrix on links of the base graph, and the slots of its links.

use crate::digraph::Link;

/// A link and its share of the transmitter's mass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedLink {
    /// The transmitter.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// `W_to,from`: the share of the transmitter's mass that goes to the receiver, in (0, 1].
    pub weight: f64,
}

impl WeightedLink {
    /// A link with a weight.
    #[must_use]
    pub const fn new(link: Link, weight: f64) -> Self {
        Self { from: link.from, to: link.to, weight }
    }

    /// The link without its weight.
    #[must_use]
    pub const fn link(self) -> Link {
        Link::new(self.from, self.to)
    }
}

/// A mixing step before it is checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepDraft {
    /// `W_ii`: what each node keeps, one per node, in [0, 1].
    pub keep: Vec<f64>,
    /// The active links, in any order.
    pub links: Vec<WeightedLink>,
    /// On a broadcast medium, every link in exactly one slot; otherwise empty.
    pub slots: Vec<Vec<Link>>,
}

/// A mixing step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    keep: Vec<f64>,
    links: Vec<WeightedLink>,
    slots: Vec<Vec<Link>>,
}

impl Step {
    /// Brings a draft into canonical order: links and the links of each slot ascending, slots as they are.
    pub(crate) fn sorted(mut draft: StepDraft) -> Self {
        draft.links.sort_unstable_by_key(|link| link.link());
        draft.slots.iter_mut().for_each(|slot| slot.sort_unstable());
        // A zero from a file may carry a sign, which would show in the hash.
        draft.keep.iter_mut().for_each(|share| *share += 0.0);
        Self { keep: draft.keep, links: draft.links, slots: draft.slots }
    }

    /// `W_ii`: what each node keeps.
    #[must_use]
    pub fn keep(&self) -> &[f64] {
        &self.keep
    }

    /// The active links with their weights, ordered by transmitter, then receiver.
    #[must_use]
    pub fn links(&self) -> &[WeightedLink] {
        &self.links
    }

    /// The links of each slot, ascending within a slot. None on a point-to-point medium.
    #[must_use]
    pub fn slots(&self) -> &[Vec<Link>] {
        &self.slots
    }

    /// `W_ii` of one node.
    pub(crate) fn keep_of(&self, node: usize) -> f64 {
        self.keep[node]
    }

    /// The links of each transmitter, in ascending order of these.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &[WeightedLink]> {
        self.links.chunk_by(|a, b| a.from == b.from)
    }

    /// The links out of a node.
    #[must_use]
    pub fn links_from(&self, node: usize) -> &[WeightedLink] {
        let start = self.links.partition_point(|link| link.from < node);
        let end = self.links.partition_point(|link| link.from <= node);
        &self.links[start..end]
    }

    /// The position of a link in [`Step::links`].
    #[must_use]
    pub fn position(&self, link: Link) -> Option<usize> {
        self.links.binary_search_by_key(&link, |known| known.link()).ok()
    }

    /// One mixing step on a value per node: `x <- W x`. `scratch` has the length of `x`. O(n + links).
    ///
    /// # Panics
    ///
    /// If `x` or `scratch` is shorter than the number of nodes.
    pub fn mix(&self, x: &mut [f64], scratch: &mut [f64]) {
        for ((kept, share), &value) in scratch.iter_mut().zip(&self.keep).zip(x.iter()) {
            *kept = share * value;
        }
        for link in &self.links {
            scratch[link.to] += link.weight * x[link.from];
        }
        x.copy_from_slice(&scratch[..x.len()]);
    }

    /// The transpose of [`Step::mix`]: `x <- W' x`. O(n + links).
    pub(crate) fn mix_transposed(&self, x: &mut [f64], scratch: &mut [f64]) {
        for ((kept, share), &value) in scratch.iter_mut().zip(&self.keep).zip(x.iter()) {
            *kept = share * value;
        }
        for link in &self.links {
            scratch[link.from] += link.weight * x[link.to];
        }
        x.copy_from_slice(&scratch[..x.len()]);
    }
}
