//! Scattering from a root: the broadcast of one message under collisions.
//!
//! A slot is a set of informed transmitters; it informs every node that exactly one of them reaches. Greedy: nodes with
//! the most uninformed neighbours first, and each transmitter must inform more nodes than it spoils.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::channel::Channel;
use crate::digraph::Link;

/// A greedy choice of transmitters.
pub(super) struct GreedyScatter<'c, 't> {
    channel: &'c Channel<'t>,
    is_informed: Vec<bool>,
    /// For each node, the number of its partners that are not informed.
    waiting: Vec<usize>,
    /// The last slot in which a transmitter reached the node. `reached_by` counts the transmitters that did;
    /// `is_delivered` is `true` if the first may give it mass.
    reached_in: Vec<usize>,
    reached_by: Vec<usize>,
    is_delivered: Vec<bool>,
}

impl<'c, 't> GreedyScatter<'c, 't> {
    pub(super) fn new(channel: &'c Channel<'t>) -> Self {
        let nodes = channel.node_count();
        Self {
            channel,
            is_informed: vec![false; nodes],
            waiting: vec![0; nodes],
            reached_in: vec![usize::MAX; nodes],
            reached_by: vec![0; nodes],
            is_delivered: vec![false; nodes],
        }
    }

    /// The links of each slot, first slot first. Nodes are tried in the order of their uninformed neighbours, a number
    /// that is reduced at random by up to `noise` 256ths. O(slots (n log n + links)) at worst.
    pub(super) fn scatter(&mut self, root: usize, noise: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<Link>> {
        let nodes = self.channel.node_count();
        self.is_informed.fill(false);
        self.reached_in.fill(usize::MAX);
        for node in 0..nodes {
            self.waiting[node] = self.channel.partners(node).len();
        }
        self.inform(root);
        let mut frontier = vec![root];
        let mut slots: Vec<Vec<Link>> = Vec::new();
        loop {
            frontier.retain(|&node: &usize| self.waiting[node] > 0);
            if frontier.is_empty() {
                return slots;
            }
            let transmitters = self.choose(slots.len(), &frontier, noise, rng);
            let slot = deliveries(self.channel, &transmitters, &self.is_informed);
            for link in &slot {
                self.inform(link.to);
                frontier.push(link.to);
            }
            slots.push(slot);
        }
    }

    fn inform(&mut self, node: usize) {
        self.is_informed[node] = true;
        self.channel.partners(node).iter().for_each(|&other| self.waiting[other] -= 1);
    }

    /// The transmitters of a slot, ascending. The first informs a node, so there is one.
    fn choose(&mut self, slot: usize, frontier: &[usize], noise: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let mut appeal = |node: usize| self.waiting[node] * (256 - noise * (rng.next_u32() >> 16) as usize / 65_536);
        let mut order: Vec<(usize, usize)> = frontier.iter().map(|&node| (appeal(node), node)).collect();
        order.sort_unstable_by_key(|&(appeal, node)| (std::cmp::Reverse(appeal), node));
        let mut transmitters = Vec::new();
        for (_, node) in order {
            if self.gain(slot, node) > 0 {
                self.transmit(slot, node);
                transmitters.push(node);
            }
        }
        transmitters.sort_unstable();
        transmitters
    }

    /// The number of nodes informed in addition if the node transmits too; negative if it spoils more.
    fn gain(&self, slot: usize, node: usize) -> i64 {
        let change = |&to: &usize| {
            let reached_by = if self.reached_in[to] == slot { self.reached_by[to] } else { 0 };
            match reached_by {
                0 => i64::from(self.channel.delivers(node, to)),
                1 => -i64::from(self.is_delivered[to]),
                _ => 0,
            }
        };
        self.channel.interferers(node).iter().filter(|&&to| !self.is_informed[to]).map(change).sum()
    }

    fn transmit(&mut self, slot: usize, node: usize) {
        for &to in self.channel.interferers(node) {
            if self.reached_in[to] == slot {
                self.reached_by[to] += 1;
            } else {
                self.reached_in[to] = slot;
                self.reached_by[to] = 1;
                self.is_delivered[to] = self.channel.delivers(node, to);
            }
        }
    }
}

/// The links to newly informed nodes when `transmitters`, ascending and all informed, transmit at once.
pub(super) fn deliveries(channel: &Channel<'_>, transmitters: &[usize], is_informed: &[bool]) -> Vec<Link> {
    let heard_alone = |to: usize| {
        let mut reaching = channel.interferers(to).iter().filter(|&other| transmitters.binary_search(other).is_ok());
        reaching.next().filter(|_| reaching.next().is_none())
    };
    let candidates = transmitters.iter().flat_map(|&from| {
        let listeners = channel.partners(from).iter().filter(|&&to| !is_informed[to]);
        listeners.map(move |&to| Link::new(from, to))
    });
    candidates.filter(|link| heard_alone(link.to) == Some(&link.from)).collect()
}
