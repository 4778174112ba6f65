//! Search for a scattering in a given number of slots by simulated annealing.
//!
//! A state is a set of transmitters for each slot; those not informed when their slot comes stay silent. A move takes a
//! node into a slot or out of it; the slots from there on are then evaluated again with a few word operations per
//! transmitter.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{bit_rows, channel::Channel, contains, gather_search::is_taken, insert, scatter::deliveries};
use crate::digraph::Link;

/// The odds that a move which leaves one more node uninformed is accepted, as in the search for a gathering.
const ODDS: (f64, f64) = (0.25, 0.01);

/// A state of the search; sets of nodes are rows of `words` 64-bit words.
pub(super) struct ScatterSearch<'c, 't> {
    channel: &'c Channel<'t>,
    words: usize,
    slots: usize,
    /// For each node, the nodes that its transmissions reach; `delivers` holds those that may take its mass.
    reaches: Vec<u64>,
    delivers: Vec<u64>,
    transmitters: Vec<u64>,
    /// The nodes informed before each slot, and after the last.
    informed: Vec<u64>,
    scratch: Vec<u64>,
}

impl<'c, 't> ScatterSearch<'c, 't> {
    /// Starts from a scattering; surplus slots at its end are cut off.
    pub(super) fn new(channel: &'c Channel<'t>, root: usize, slots: usize, start: &[Vec<Link>]) -> Self {
        let nodes = channel.node_count();
        let words = nodes.div_ceil(64);
        let mut search = Self {
            channel,
            words,
            slots,
            reaches: bit_rows(nodes, |node| channel.interferers(node)),
            delivers: bit_rows(nodes, |node| channel.partners(node)),
            transmitters: vec![0; slots * words],
            informed: vec![0; (slots + 1) * words],
            scratch: vec![0; 3 * words],
        };
        for (slot, links) in start.iter().enumerate().take(slots) {
            links.iter().for_each(|link| insert(&mut search.transmitters[slot * words..], link.from));
        }
        insert(&mut search.informed, root);
        search.play(0);
        search
    }

    /// Tries moves until every node is informed or the moves are spent. Returns `true` if every node is informed.
    pub(super) fn run(&mut self, moves: usize, rng: &mut ChaCha8Rng) -> bool {
        let cooling = (ODDS.0 - ODDS.1) / moves.max(1) as f64;
        let mut missed = self.missed();
        for step in 0..moves {
            if missed == 0 {
                return true;
            }
            let Some((slot, node)) = self.draw(rng) else {
                continue;
            };
            self.flip(slot, node);
            let now = self.missed();
            let worse = now.saturating_sub(missed);
            if worse > 0 && !is_taken(worse, ODDS.0 - cooling * step as f64, rng) {
                self.flip(slot, node);
            } else {
                missed = now;
            }
        }
        missed == 0
    }

    /// The links of each slot.
    pub(super) fn links(&self) -> Vec<Vec<Link>> {
        let mut slots = Vec::with_capacity(self.slots);
        for slot in 0..self.slots {
            let is_informed: Vec<bool> =
                (0..self.channel.node_count()).map(|node| self.is_informed(slot, node)).collect();
            let sends = |&node: &usize| is_informed[node] && contains(self.row(&self.transmitters, slot), node);
            let transmitters: Vec<usize> = (0..is_informed.len()).filter(sends).collect();
            slots.push(deliveries(self.channel, &transmitters, &is_informed));
        }
        slots.retain(|slot| !slot.is_empty());
        slots
    }

    /// A random slot and a node: any node, or half of the time a neighbour of one that stays uninformed. `None` if the
    /// node drawn is not informed before the slot.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Option<(usize, usize)> {
        let nodes = self.channel.node_count();
        let word = rng.next_u64();
        let slot = (word & 0xffff) as usize % self.slots;
        let any = (word >> 33) as usize % nodes;
        if word >> 32 & 1 == 0 {
            return self.is_informed(slot, any).then_some((slot, any));
        }
        let missed = (0..nodes).map(|k| (any + k) % nodes).find(|&node| !self.is_informed(self.slots, node))?;
        let partners = self.channel.partners(missed);
        let node = partners[(word >> 16 & 0xffff) as usize % partners.len()];
        self.is_informed(slot, node).then_some((slot, node))
    }

    fn flip(&mut self, slot: usize, node: usize) {
        self.transmitters[slot * self.words + node / 64] ^= 1 << (node % 64);
        self.play(slot);
    }

    fn missed(&self) -> usize {
        let informed: u32 = self.row(&self.informed, self.slots).iter().map(|word| word.count_ones()).sum();
        self.channel.node_count() - informed as usize
    }

    /// Recomputes the informed nodes from a slot on.
    fn play(&mut self, from: usize) {
        let words = self.words;
        for slot in from..self.slots {
            let (once, rest) = self.scratch.split_at_mut(words);
            let (twice, delivered) = rest.split_at_mut(words);
            once.fill(0);
            twice.fill(0);
            delivered.fill(0);
            for at in 0..words {
                let mut senders = self.transmitters[slot * words + at] & self.informed[slot * words + at];
                while senders != 0 {
                    let row = (64 * at + senders.trailing_zeros() as usize) * words;
                    senders &= senders - 1;
                    for k in 0..words {
                        twice[k] |= once[k] & self.reaches[row + k];
                        once[k] |= self.reaches[row + k];
                        delivered[k] |= self.delivers[row + k];
                    }
                }
            }
            for k in 0..words {
                // A transmitter of the slot is informed anyway.
                let received = delivered[k] & !twice[k];
                self.informed[(slot + 1) * words + k] = self.informed[slot * words + k] | received;
            }
        }
    }

    fn is_informed(&self, slot: usize, node: usize) -> bool {
        contains(self.row(&self.informed, slot), node)
    }

    fn row<'r>(&self, rows: &'r [u64], at: usize) -> &'r [u64] {
        &rows[at * self.words..(at + 1) * self.words]
    }
}
