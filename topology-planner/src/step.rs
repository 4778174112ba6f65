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
    /// `W_ii`: the share that each node keeps, one per node, in [0, 1].
    pub keep: Vec<f64>,
    /// The active links, in any order.
    pub links: Vec<WeightedLink>,
    /// On a broadcast medium, every link in exactly one slot; otherwise empty.
    pub slots: Vec<Vec<Link>>,
}

/// A mixing step of a plan. Takes memory for its links only: a node that sends nothing keeps all.
#[derive(Debug, Clone, PartialEq)]
pub struct MixingStep {
    node_count: usize,
    /// The nodes that do not keep all they have, ascending, and the share that each keeps.
    kept: Vec<(usize, f64)>,
    links: Vec<WeightedLink>,
    slots: Vec<Vec<Link>>,
}

impl MixingStep {
    /// Brings a draft into canonical order: links and the links of each slot ascending, slots as they are.
    pub(crate) fn sorted(mut draft: StepDraft) -> Self {
        let kept = draft.keep.iter().copied().enumerate().filter(|&(_, share)| share != 1.0).collect();
        Self::sparse(draft.keep.len(), kept, std::mem::take(&mut draft.links), draft.slots)
    }

    /// A step in which all but some nodes keep all they have. `kept` contains each node at most once.
    pub(crate) fn sparse(
        node_count: usize,
        mut kept: Vec<(usize, f64)>,
        mut links: Vec<WeightedLink>,
        mut slots: Vec<Vec<Link>>,
    ) -> Self {
        kept.sort_unstable_by_key(|&(node, _)| node);
        // A zero from a file may carry a sign, which would show in the hash.
        kept.iter_mut().for_each(|(_, share)| *share += 0.0);
        links.sort_unstable_by_key(|link| link.link());
        slots.iter_mut().for_each(|slot| slot.sort_unstable());
        Self { node_count, kept, links, slots }
    }

    /// Gives every node its number in another order: node `i` becomes node `order[i]`.
    pub(crate) fn renumbered(self, order: &[usize]) -> Self {
        let link = |link: Link| Link::new(order[link.from], order[link.to]);
        let weighted = |old: WeightedLink| WeightedLink::new(link(old.link()), old.weight);
        Self::sparse(
            self.node_count,
            self.kept.into_iter().map(|(node, share)| (order[node], share)).collect(),
            self.links.into_iter().map(weighted).collect(),
            self.slots.into_iter().map(|slot| slot.into_iter().map(link).collect()).collect(),
        )
    }

    /// The same step on a medium without slots.
    pub(crate) fn without_slots(mut self) -> Self {
        self.slots.clear();
        self
    }

    /// The number of nodes.
    #[must_use]
    pub const fn node_count(&self) -> usize {
        self.node_count
    }

    /// `W_ii`: the share that each node keeps, a list as long as there are nodes. O(n): [`MixingStep::kept`] is the short
    /// form.
    #[must_use]
    pub fn keep(&self) -> Vec<f64> {
        let mut keep = vec![1.0; self.node_count];
        self.kept.iter().for_each(|&(node, share)| keep[node] = share);
        keep
    }

    /// The nodes that do not keep all they have, ascending, and `W_ii` of each.
    #[must_use]
    pub fn kept(&self) -> &[(usize, f64)] {
        &self.kept
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

    /// The slot of each link of a node, with its receiver, by slot. A node may have several slots in a step, for different
    /// receivers; none where there are no slots. O(links).
    pub fn slots_from(&self, sender: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let numbered = self.slots.iter().enumerate();
        let links = numbered.flat_map(|(slot, links)| links.iter().map(move |link| (link, slot)));
        links.filter(move |(link, _)| link.from == sender).map(|(link, slot)| (link.to, slot))
    }

    /// `W_ii` of one node. O(log n).
    #[must_use]
    pub fn keep_of(&self, node: usize) -> f64 {
        self.kept.binary_search_by_key(&node, |&(kept, _)| kept).map_or(1.0, |at| self.kept[at].1)
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

    /// The position of a link in [`MixingStep::links`].
    #[must_use]
    pub fn position(&self, link: Link) -> Option<usize> {
        self.links.binary_search_by_key(&link, |known| known.link()).ok()
    }

    /// Mixes a value per node once: `x <- W x`. `scratch` has the length of `x`. O(links).
    ///
    /// # Panics
    ///
    /// If `x` or `scratch` is shorter than the number of nodes.
    pub fn mix(&self, x: &mut [f64], scratch: &mut [f64]) {
        self.mix_along(x, scratch, |link| (link.from, link.to));
    }

    /// Mixes with the transpose of the matrix of [`MixingStep::mix`]: `x <- W' x`. O(links).
    pub(crate) fn mix_transposed(&self, x: &mut [f64], scratch: &mut [f64]) {
        self.mix_along(x, scratch, |link| (link.to, link.from));
    }

    /// Moves shares from the first of the two nodes that `ends` names to the second.
    fn mix_along(&self, x: &mut [f64], scratch: &mut [f64], ends: impl Fn(&WeightedLink) -> (usize, usize)) {
        let is_dense = 2 * self.links.len() >= self.node_count;
        if is_dense {
            scratch[..self.node_count].copy_from_slice(&x[..self.node_count]);
        } else {
            self.links.iter().map(&ends).for_each(|(_, to)| scratch[to] = x[to]);
        }
        for &(node, share) in &self.kept {
            scratch[node] = share * x[node];
        }
        for link in &self.links {
            let (from, to) = ends(link);
            scratch[to] += link.weight * x[from];
        }
        if is_dense {
            x[..self.node_count].copy_from_slice(&scratch[..self.node_count]);
        } else {
            self.kept.iter().for_each(|&(node, _)| x[node] = scratch[node]);
            self.links.iter().map(&ends).for_each(|(_, to)| x[to] = scratch[to]);
        }
    }

    /// The nodes whose values the step can change, some of them more than once.
    pub(crate) fn changed(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter().map(|&(node, _)| node).chain(self.links.iter().map(|link| link.to))
    }

    /// The cost of one mixing of a value per node: multiplications, and numbers that are moved.
    pub(crate) fn work(&self) -> usize {
        self.kept.len() + self.links.len()
    }
}
