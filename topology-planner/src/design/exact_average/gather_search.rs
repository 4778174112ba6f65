//! Search for a gathering in a given number of slots by simulated annealing.
//!
//! A state gives every node but the root a slot to send in, and nothing else. A node is *served* when it alone reaches
//! some neighbour that sends in a later slot. A state in which all are served is a gathering. A move puts one node into
//! another slot and updates the state in O(neighbours + slots).

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{below, channel::Channel};
use crate::digraph::Link;

/// The odds that a move which leaves one more node unserved is accepted, at the start and at the end of a cooling; for
/// two more nodes they are squared, and so on.
const ODDS: (f64, f64) = (0.02, 0.002);

/// A state of the search.
pub(super) struct GatherSearch<'c, 't> {
    channel: &'c Channel<'t>,
    root: usize,
    slots: usize,
    /// The slot in which each node sends; `slots` for the root, which never does.
    slot_of: Vec<usize>,
    /// For each node and slot, the number of transmitters that reach the node, and the sum of their numbers.
    reached: Vec<Reached>,
    /// For each node, the number of neighbours that could take what it sends.
    takers: Vec<usize>,
    unserved: Vec<usize>,
    /// The index of each node in `unserved`, or `SERVED`.
    place: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    transmitters: u32,
    sum: u32,
}

const SERVED: usize = usize::MAX;

impl<'c, 't> GatherSearch<'c, 't> {
    /// Starts from a gathering; the nodes of its surplus slots, the first ones, get random slots.
    pub(super) fn new(
        channel: &'c Channel<'t>,
        root: usize,
        slots: usize,
        start: &[Vec<Link>],
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let nodes = channel.node_count();
        let mut search = Self {
            channel,
            root,
            slots,
            slot_of: vec![slots; nodes],
            reached: vec![Reached::default(); nodes * slots],
            takers: vec![0; nodes],
            unserved: (0..nodes).filter(|&node| node != root).collect(),
            place: vec![SERVED; nodes],
        };
        for (place, &node) in search.unserved.iter().enumerate() {
            search.place[node] = place;
        }
        let surplus = start.len().saturating_sub(slots);
        for (slot, links) in start.iter().enumerate() {
            for link in links {
                let slot = if slot < surplus { below(rng, slots) } else { slot - surplus };
                search.slot_of[link.from] = slot;
            }
        }
        for node in (0..nodes).filter(|&node| node != root) {
            search.speak_up(node);
        }
        search
    }

    /// Tries moves until every node is served or the moves are spent. Returns `true` if every node is served.
    pub(super) fn run(&mut self, moves: usize, rng: &mut ChaCha8Rng) -> bool {
        let cooling = (ODDS.0 - ODDS.1) / moves.max(1) as f64;
        for step in 0..moves {
            if self.unserved.is_empty() {
                return true;
            }
            let word = rng.next_u64();
            let node = if word & 1 == 0 {
                self.unserved[(word >> 32) as usize % self.unserved.len()]
            } else {
                (word >> 32) as usize % self.slot_of.len()
            };
            if node == self.root {
                continue;
            }
            let old = self.slot_of[node];
            let before = self.unserved.len();
            let new = (word >> 1 & 0x7fff_ffff) as usize % self.slots;
            if new == old {
                continue;
            }
            self.relocate(node, new);
            let worse = self.unserved.len().saturating_sub(before);
            if worse > 0 && !is_taken(worse, ODDS.0 - cooling * step as f64, rng) {
                self.relocate(node, old);
            }
        }
        self.unserved.is_empty()
    }

    /// The links of each slot. Of the neighbours that can take what a node sends, the one that sends last does.
    pub(super) fn links(&self) -> Vec<Vec<Link>> {
        let mut slots = vec![Vec::new(); self.slots];
        for from in (0..self.slot_of.len()).filter(|&node| node != self.root) {
            let slot = self.slot_of[from];
            let takers = self.channel.partners(from).iter().copied().filter(|&to| self.takes(from, to));
            if let Some(to) = takers.max_by_key(|&to| (self.slot_of[to], std::cmp::Reverse(to))) {
                slots[slot].push(Link::new(from, to));
            }
        }
        slots.retain(|slot| !slot.is_empty());
        slots
    }

    fn takes(&self, from: usize, to: usize) -> bool {
        let slot = self.slot_of[from];
        self.slot_of[to] > slot && self.reached[to * self.slots + slot].transmitters == 1
    }

    fn relocate(&mut self, node: usize, new: usize) {
        let old = self.slot_of[node];
        self.fall_silent(node);
        // The node can take what is sent in slots before its own.
        self.slot_of[node] = new;
        for slot in old.min(new)..old.max(new) {
            if let Some(from) = self.only_transmitter(node, slot) {
                if new > old { self.gain(from) } else { self.lose(from) }
            }
        }
        self.speak_up(node);
    }

    /// The only transmitter that reaches the node in the slot, if mass may pass between the two.
    fn only_transmitter(&self, node: usize, slot: usize) -> Option<usize> {
        let reached = self.reached[node * self.slots + slot];
        (reached.transmitters == 1).then_some(reached.sum as usize).filter(|&from| self.channel.delivers(from, node))
    }

    fn fall_silent(&mut self, node: usize) {
        let slot = self.slot_of[node];
        for &other in self.channel.interferers(node) {
            let is_listening = self.slot_of[other] > slot;
            if is_listening && self.only_transmitter(other, slot) == Some(node) {
                self.lose(node);
            }
            let reached = &mut self.reached[other * self.slots + slot];
            reached.transmitters -= 1;
            reached.sum -= node as u32;
            if is_listening && let Some(from) = self.only_transmitter(other, slot) {
                self.gain(from);
            }
        }
    }

    fn speak_up(&mut self, node: usize) {
        let slot = self.slot_of[node];
        for &other in self.channel.interferers(node) {
            let is_listening = self.slot_of[other] > slot;
            if is_listening && let Some(from) = self.only_transmitter(other, slot) {
                self.lose(from);
            }
            let reached = &mut self.reached[other * self.slots + slot];
            reached.transmitters += 1;
            reached.sum += node as u32;
            if is_listening && self.only_transmitter(other, slot) == Some(node) {
                self.gain(node);
            }
        }
    }

    fn gain(&mut self, node: usize) {
        self.takers[node] += 1;
        if self.takers[node] == 1 {
            let place = std::mem::replace(&mut self.place[node], SERVED);
            self.unserved.swap_remove(place);
            if let Some(&moved) = self.unserved.get(place) {
                self.place[moved] = place;
            }
        }
    }

    fn lose(&mut self, node: usize) {
        self.takers[node] -= 1;
        if self.takers[node] == 0 {
            self.place[node] = self.unserved.len();
            self.unserved.push(node);
        }
    }
}

/// Draws whether a move that is worse by so many nodes is accepted: `true` with probability `odds^min(worse, 8)`.
pub(super) fn is_taken(worse: usize, odds: f64, rng: &mut ChaCha8Rng) -> bool {
    let mut chance = odds;
    for _ in 1..worse.min(8) {
        chance *= odds;
    }
    f64::from(rng.next_u32()) < chance * 4_294_967_296.0
}
