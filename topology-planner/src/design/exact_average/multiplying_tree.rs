//! Trees in which every step multiplies the nodes that have the root's mass: all that have it send to some that do not.
//!
//! With a factor of 2 in every step these are binomial trees: on separate links the root reaches `n` nodes in
//! `ceil(log2 n)` steps, and no node sends more than one payload in a step (Sanders, Speck and Träff, "Two-tree algorithms
//! for full bandwidth broadcast, reduction and scan", Parallel Computing 2009, section 2). A step with the factor `f`
//! takes `f - 1` payloads of the busiest node, and fewer steps are needed; one step with the factor `n` is the star.
//!
//! The root has the most to send. Where the topology has the links, several rounds with other roots follow each other,
//! until all nodes have sent about as much: a tree is moved to another root by an addition of node numbers, digit by
//! digit where `n` is the product of the factors, which keeps to the same few links, else modulo `n`.

use super::schedule::SlotSchedule;
use crate::digraph::Link;

/// The most nodes times steps in a period for which rounds are repeated with another root: a plan lists what every node
/// keeps in every step.
pub(in crate::design) const MAX_PERIOD_SHARES: usize = 1 << 15;
/// The busiest node's load in a period, as a multiple of the mean, at which no more roots take turns.
const BALANCED: f64 = 1.1;

/// A tree on the numbers `0..n`, by the factor of each step. Number 0 is the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MultiplyingTree {
    nodes: usize,
    factors: Vec<usize>,
}

impl MultiplyingTree {
    /// The trees of `nodes` nodes, one for each number of steps: that in which the busiest nodes send least.
    pub(super) fn all(nodes: usize) -> Vec<Self> {
        let most_steps = nodes.max(2).next_power_of_two().trailing_zeros();
        (1..=most_steps).map(|steps| Self { nodes, factors: factors(nodes, steps) }).collect()
    }

    /// The factors in words, such as `2 x 2 x 3`.
    pub(super) fn shape(&self) -> String {
        self.factors.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
    }

    /// The links of each step of the scattering from number 0.
    fn levels(&self) -> Vec<Vec<Link>> {
        let mut reached = 1;
        let mut levels = Vec::new();
        for factor in &self.factors {
            let senders = 0..reached.min(self.nodes);
            let links = senders.flat_map(|from| (1..*factor).map(move |digit| Link::new(from, from + digit * reached)));
            levels.push(links.filter(|link| link.to < self.nodes).collect());
            reached *= factor;
        }
        levels.retain(|level: &Vec<Link>| !level.is_empty());
        levels
    }

    /// The number to which the tree with root `root` moves `number`.
    fn moved(&self, number: usize, root: usize) -> usize {
        if self.factors.iter().product::<usize>() != self.nodes {
            return (number + root) % self.nodes;
        }
        let mut stride = 1;
        let mut sum = 0;
        for factor in &self.factors {
            sum += (number / stride + root / stride) % factor * stride;
            stride *= factor;
        }
        sum
    }

    /// The gathering and scattering with the given root; `places[i]` is the node with the number `i`.
    pub(super) fn schedule(&self, root: usize, places: &[usize]) -> SlotSchedule {
        let place = |number: usize| places[self.moved(number, root)];
        let link = |link: &Link| Link::new(place(link.from), place(link.to));
        let scatter = self.levels().iter().map(|level| level.iter().map(link).collect()).collect();
        SlotSchedule::there_and_back(place(0), scatter)
    }

    /// Roots that take turns, so that all nodes carry about the same: each next one is that after which the busiest node
    /// has sent least. Of all lengths it is the first in which that is at most [`BALANCED`] times the mean, or nearest to
    /// it. O(n^2) for each of them.
    pub(super) fn roots(&self) -> Vec<usize> {
        let levels = self.levels();
        let mut of_number = vec![1; self.nodes];
        of_number[0] = 0;
        levels.iter().flatten().for_each(|link| of_number[link.from] += 1);
        let per_round = 2.0 * (self.nodes - 1) as f64 / self.nodes as f64;
        let most = MAX_PERIOD_SHARES / (2 * levels.len() * self.nodes);
        let mut loads = vec![0; self.nodes];
        let mut roots = Vec::new();
        let mut best = (f64::INFINITY, 0);
        while roots.len() < most.clamp(1, self.nodes) && best.0 > BALANCED {
            let with = |root: usize| {
                let after = of_number.iter().enumerate().map(|(number, load)| loads[self.moved(number, root)] + load);
                // The sum of squares tells apart roots that leave the busiest node as busy.
                after.fold((0, 0), |(most, squares), load: usize| (most.max(load), squares + load * load))
            };
            let root = if roots.is_empty() { 0 } else { (0..self.nodes).min_by_key(|&root| with(root)).unwrap_or(0) };
            of_number.iter().enumerate().for_each(|(number, load)| loads[self.moved(number, root)] += load);
            roots.push(root);
            let busiest = loads.iter().max().copied().unwrap_or(0) as f64;
            let ratio = busiest / (per_round * roots.len() as f64);
            if ratio < best.0 - 1e-9 {
                best = (ratio, roots.len());
            }
        }
        roots.truncate(best.1.max(1));
        roots
    }
}

/// As many factors as there are steps, near each other, ascending, whose product is at least `nodes`.
fn factors(nodes: usize, steps: u32) -> Vec<usize> {
    let root = (2..=nodes).take_while(|factor: &usize| factor.checked_pow(steps).is_some_and(|power| power <= nodes));
    let mut factors = vec![root.last().unwrap_or(2); steps as usize];
    for at in (0..factors.len()).rev() {
        if factors.iter().try_fold(1_usize, |product, factor| product.checked_mul(*factor)).is_none_or(|p| p >= nodes) {
            break;
        }
        factors[at] += 1;
    }
    factors.sort_unstable();
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_reach_all_nodes_and_no_smaller_ones_do() {
        for nodes in 2..=200 {
            let trees = MultiplyingTree::all(nodes);
            assert_eq!(trees[0].factors, [nodes], "the star");
            for tree in trees {
                assert!(tree.factors.iter().product::<usize>() >= nodes, "{nodes}: {:?}", tree.factors);
                let largest = tree.factors.last().copied().unwrap_or(2);
                let smaller: usize = tree.factors.iter().rev().skip(1).product::<usize>() * (largest - 1);
                assert!(smaller < nodes || largest == 2, "{nodes}: {:?}", tree.factors);
                let mut reached: Vec<usize> = tree.levels().iter().flatten().map(|link| link.to).collect();
                reached.sort_unstable();
                assert_eq!(reached, (1..nodes).collect::<Vec<_>>(), "{nodes}: {:?}", tree.factors);
            }
        }
    }

    #[test]
    fn every_root_moves_the_tree_onto_all_nodes() {
        for tree in [8, 9, 12, 13].into_iter().flat_map(MultiplyingTree::all) {
            for root in 0..tree.nodes {
                let mut moved: Vec<usize> = (0..tree.nodes).map(|number| tree.moved(number, root)).collect();
                assert_eq!(moved[0], root);
                moved.sort_unstable();
                assert_eq!(moved, (0..tree.nodes).collect::<Vec<_>>(), "{tree:?}, root {root}");
            }
        }
    }
}
