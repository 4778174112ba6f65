//! Conversion of broadcasts in order into a period of mixing steps whose product is exactly the averaging matrix.

use crate::{
    digraph::{Digraph, Link},
    plan::{MixingStep, WeightedLink},
};

/// The links of each slot: from all nodes to the root, then from the root to all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotSchedule {
    pub(super) root: usize,
    /// Every node but the root sends once, after all it receives.
    pub(super) gather: Vec<Vec<Link>>,
    /// Every node but the root receives once, before all it sends.
    pub(super) scatter: Vec<Vec<Link>>,
}

impl SlotSchedule {
    /// A schedule that gathers along the links of a scattering, backwards.
    pub(super) fn there_and_back(root: usize, scatter: Vec<Vec<Link>>) -> Self {
        let back = |step: &Vec<Link>| step.iter().map(|link| link.reversed()).collect();
        Self { root, gather: scatter.iter().rev().map(back).collect(), scatter }
    }

    pub(super) fn slot_count(&self) -> usize {
        self.gather.len() + self.scatter.len()
    }

    /// The most receivers a node has.
    pub(super) fn max_out_degree(&self, nodes: usize) -> usize {
        Digraph::new(nodes, self.gather.iter().chain(&self.scatter).flatten().copied()).max_out_degree()
    }

    /// The period. All links of a step read what their transmitters held when it began, so a slot that passes on what
    /// an earlier one brought belongs to a later step; slots that do not wait for each other share one.
    ///
    /// While gathering, a node gives all it holds. While scattering, a node with `s` nodes at or below it in the tree
    /// holds `s` shares of the average; it gives each child as many as there are nodes at or below that child, and
    /// keeps 1.
    pub(super) fn steps(&self, nodes: usize) -> Vec<MixingStep> {
        let mut begins = vec![0; nodes];
        let gather = grouped(&self.gather, &mut begins);
        // The root waits for all nodes, so no slot of the scattering shares a step with one of the gathering.
        let gather_steps = begins[self.root];
        let scatter = grouped(&self.scatter, &mut begins);
        let down = scatter.into_iter().skip(gather_steps);
        self.weighted(nodes, gather.into_iter().take(gather_steps), down)
    }

    /// The period on separate links: each element of the gathering and of the scattering is a step, whose links all read
    /// what their transmitters held when it began.
    pub(super) fn steps_without_slots(&self, nodes: usize) -> Vec<MixingStep> {
        let step = |links: &Vec<Link>| vec![links.clone()];
        let steps = self.weighted(nodes, self.gather.iter().map(step), self.scatter.iter().map(step));
        steps.into_iter().map(MixingStep::without_slots).collect()
    }

    /// Steps with the slots of `up`, then with those of `down`.
    fn weighted(
        &self,
        nodes: usize,
        up: impl Iterator<Item = Vec<Vec<Link>>>,
        down: impl Iterator<Item = Vec<Vec<Link>>>,
    ) -> Vec<MixingStep> {
        let sizes = subtree_sizes(nodes, &self.scatter);
        let mut shares = sizes.clone();
        let mut steps: Vec<MixingStep> = up.map(|slots| hand_over(nodes, slots)).collect();
        steps.extend(down.map(|slots| share_out(nodes, slots, &sizes, &mut shares)));
        steps
    }
}

/// The slots of each step. `begins` is the first step in which each node can pass on what it has received.
fn grouped(slots: &[Vec<Link>], begins: &mut [usize]) -> Vec<Vec<Vec<Link>>> {
    let mut steps: Vec<Vec<Vec<Link>>> = Vec::new();
    for slot in slots {
        let step = slot.iter().map(|link| begins[link.from]).max().unwrap_or(0);
        if step >= steps.len() {
            steps.resize(step + 1, Vec::new());
        }
        for link in slot {
            begins[link.to] = begins[link.to].max(step + 1);
        }
        steps[step].push(slot.clone());
    }
    steps
}

fn hand_over(nodes: usize, slots: Vec<Vec<Link>>) -> MixingStep {
    let links: Vec<WeightedLink> = slots.iter().flatten().map(|&link| WeightedLink::new(link, 1.0)).collect();
    let kept = links.iter().map(|link| (link.from, 0.0)).collect();
    MixingStep::sparse(nodes, kept, links, slots)
}

/// A step of the scattering. `shares` are those that each node holds for itself and for the nodes it has yet to serve.
fn share_out(nodes: usize, slots: Vec<Vec<Link>>, sizes: &[usize], shares: &mut [usize]) -> MixingStep {
    let mut senders: Vec<usize> = slots.iter().flatten().map(|link| link.from).collect();
    senders.sort_unstable();
    senders.dedup();
    let held: Vec<usize> = senders.iter().map(|&node| shares[node]).collect();
    for link in slots.iter().flatten() {
        shares[link.from] -= sizes[link.to];
    }
    let part = |at: usize, of: usize| of as f64 / held[at] as f64;
    // Every transmitter is among the senders.
    let weighted = |&link: &Link| {
        let at = senders.partition_point(|&node| node < link.from);
        WeightedLink::new(link, part(at, sizes[link.to]))
    };
    let links = slots.iter().flatten().map(weighted).collect();
    let kept = senders.iter().enumerate().map(|(at, &node)| (node, part(at, shares[node]))).collect();
    MixingStep::sparse(nodes, kept, links, slots)
}

/// For each node, the number of nodes that its mass is shared out to, itself included.
fn subtree_sizes(nodes: usize, scatter: &[Vec<Link>]) -> Vec<usize> {
    let mut sizes = vec![1; nodes];
    for link in scatter.iter().rev().flatten() {
        sizes[link.from] += sizes[link.to];
    }
    sizes
}
