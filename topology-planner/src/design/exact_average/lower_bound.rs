//! Lower bounds on the slots of an exact average.
//!
//! Whatever is sent, after the last slot something of every node must have reached every node. Three bounds follow from
//! this alone, so they hold for every schedule, not only for a gathering and a scattering on trees:
//!
//! - *Rivals.* Each node must be received by at least one other. Two nodes of which one's neighbours are all within
//!   reach of the other are never both received in one slot. So pairwise rivals are first received in different slots,
//!   and the last of them still has to reach the node farthest from it.
//! - *Articulation.* When all rivals are within reach of a node whose loss cuts the topology into parts, that node must
//!   also receive from each other part, in slots in which none of the rivals is active, and pass it on.
//! - *Growth.* Take the first node that has something of every node, and follow back in time where that came from. The
//!   set of nodes whose knowledge counts at most doubles per slot, and grows by at most the number of nodes that can be
//!   received in one slot. When it is complete, the last to send to that first node still lacks something.

use super::{bit_rows, channel::Channel, contains, insert};

/// Above this many nodes, only the eccentricities count.
const MAX_NODES: usize = 1_024;

/// The most pairs of nodes looked at to find the number of nodes that can be received in one slot.
const MAX_PAIRS: usize = 10_000_000;

/// A number of slots below which no exact average exists on this channel.
pub(super) fn least_slots(channel: &Channel<'_>) -> usize {
    let nodes = channel.node_count();
    if nodes > MAX_NODES {
        return channel.hops_from(0).eccentricity();
    }
    let eccentricities: Vec<usize> = (0..nodes).map(|node| channel.hops_from(node).eccentricity()).collect();
    let rivals = Rivals::new(channel);
    let clique = (0..nodes).map(|node| rivals.clique_with(node, |_| true)).map(|clique| {
        let nearest = clique.iter().map(|&node| eccentricities[node]).min().unwrap_or(0);
        clique.len() - 1 + nearest
    });
    let articulation = (0..nodes).filter_map(|hub| articulation_bound(channel, &rivals, hub));
    let growth = growth_bound(nodes, rivals.most_heard(channel));
    clique.chain(articulation).chain(eccentricities.iter().copied()).chain([growth]).max().unwrap_or(0)
}

/// Slots for a set that at most doubles, by at most `most` nodes a slot, to hold all nodes; and one more.
fn growth_bound(nodes: usize, most: usize) -> usize {
    let mut known = 1;
    let mut slots = 0;
    while known < nodes {
        known += known.min(most);
        slots += 1;
    }
    slots + 1
}

/// A bound from a cut node: the slots in which it receives from the other parts, the one in which it is received, and
/// those of its rivals in one part. `None` if the node cuts nothing.
fn articulation_bound(channel: &Channel<'_>, rivals: &Rivals, hub: usize) -> Option<usize> {
    let part_of = parts_without(channel, hub);
    let parts = part_of.iter().filter(|&&part| part != usize::MAX).max()? + 1;
    if parts < 2 {
        return None;
    }
    // While one of these is active, the hub receives from no other part; while the hub is received, none of these is.
    let reaches_hub = channel.interferers(hub).iter().copied();
    let beside: Vec<usize> = reaches_hub.filter(|&node| rivals.are(node, hub)).collect();
    let clique_in_part = |&start: &usize| {
        let in_part = |node: usize| part_of[node] == part_of[start] && beside.binary_search(&node).is_ok();
        rivals.clique_with(start, in_part).len()
    };
    Some(beside.iter().map(clique_in_part).max().unwrap_or(1) + (parts - 1) + 1)
}

/// The part of the topology each node is in when one node is missing.
fn parts_without(channel: &Channel<'_>, missing: usize) -> Vec<usize> {
    let mut part_of = vec![usize::MAX; channel.node_count()];
    let mut parts = 0;
    for start in (0..part_of.len()).filter(|&node| node != missing) {
        if part_of[start] != usize::MAX {
            continue;
        }
        part_of[start] = parts;
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            for &next in channel.partners(node).iter().filter(|&&next| next != missing) {
                if part_of[next] == usize::MAX {
                    part_of[next] = parts;
                    stack.push(next);
                }
            }
        }
        parts += 1;
    }
    part_of
}

/// Pairs of nodes that are never both received in one slot; sets of nodes are rows of `words` 64-bit words.
struct Rivals {
    words: usize,
    /// For each node, its rivals.
    rows: Vec<u64>,
    /// For each node, the nodes that it reaches, itself included; `delivers` holds those that may take its mass.
    reaches: Vec<u64>,
    delivers: Vec<u64>,
}

impl Rivals {
    /// O(n^3 / 64).
    fn new(channel: &Channel<'_>) -> Self {
        let nodes = channel.node_count();
        let words = nodes.div_ceil(64);
        let mut rivals = Self {
            words,
            rows: vec![0; nodes * words],
            reaches: bit_rows(nodes, |node| channel.interferers(node)),
            delivers: bit_rows(nodes, |node| channel.partners(node)),
        };
        for node in 0..nodes {
            insert(&mut rivals.reaches[node * words..], node);
        }
        for a in 0..nodes {
            for b in 0..a {
                if rivals.drowns(a, b) || rivals.drowns(b, a) {
                    insert(&mut rivals.rows[a * words..], b);
                    insert(&mut rivals.rows[b * words..], a);
                }
            }
        }
        rivals
    }

    /// Returns `true` if all nodes that may receive from `quiet` are within reach of `loud`.
    fn drowns(&self, loud: usize, quiet: usize) -> bool {
        self.row(&self.delivers, quiet).iter().zip(self.row(&self.reaches, loud)).all(|(a, b)| a & !b == 0)
    }

    fn are(&self, a: usize, b: usize) -> bool {
        contains(self.row(&self.rows, a), b)
    }

    /// A set of pairwise rivals that contains `start`, and otherwise only nodes that `accept` allows. Greedy: the next
    /// node is the one that leaves the most to choose from.
    fn clique_with(&self, start: usize, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut clique = vec![start];
        let mut candidates = self.row(&self.rows, start).to_vec();
        for node in members(&candidates.clone()).filter(|&node| !accept(node)) {
            candidates[node / 64] &= !(1 << (node % 64));
        }
        let left = |node: usize, candidates: &[u64]| -> u32 {
            self.row(&self.rows, node).iter().zip(candidates).map(|(a, b)| (a & b).count_ones()).sum()
        };
        while let Some(next) =
            members(&candidates).max_by_key(|&node| (left(node, &candidates), std::cmp::Reverse(node)))
        {
            clique.push(next);
            candidates.iter_mut().zip(self.row(&self.rows, next)).for_each(|(a, b)| *a &= b);
        }
        clique
    }

    /// An upper bound on the nodes that can be received in one slot, exact within `MAX_PAIRS`. Branch and bound over
    /// sets without rivals in which each node still has a receiver of its own, which it then has in all subsets too.
    fn most_heard(&self, channel: &Channel<'_>) -> usize {
        let mut search = MostHeard { rivals: self, chosen: Vec::new(), most: 0, pairs: 0 };
        let all: Vec<usize> = (0..channel.node_count()).collect();
        let bound = search.bound(&all);
        search.branch(&all);
        if search.pairs < MAX_PAIRS { search.most } else { bound }
    }

    fn row<'r>(&self, rows: &'r [u64], at: usize) -> &'r [u64] {
        &rows[at * self.words..(at + 1) * self.words]
    }
}

/// Branch and bound for the most nodes received in one slot.
struct MostHeard<'r> {
    rivals: &'r Rivals,
    chosen: Vec<usize>,
    most: usize,
    pairs: usize,
}

impl MostHeard<'_> {
    fn branch(&mut self, candidates: &[usize]) {
        self.most = self.most.max(self.chosen.len());
        let mut rest = candidates.to_vec();
        while self.pairs < MAX_PAIRS && self.chosen.len() + self.bound(&rest) > self.most {
            let Some(node) = rest.pop() else {
                return;
            };
            self.chosen.push(node);
            if self.all_are_heard() {
                let compatible: Vec<usize> =
                    rest.iter().copied().filter(|&other| !self.rivals.are(node, other)).collect();
                self.branch(&compatible);
            }
            self.chosen.pop();
        }
    }

    /// The number of sets in a greedy partition into pairwise rivals: at most one node of each set is received.
    fn bound(&mut self, candidates: &[usize]) -> usize {
        let mut cliques: Vec<Vec<usize>> = Vec::new();
        for &node in candidates {
            let rivals = self.rivals;
            let pairs = &mut self.pairs;
            let mut is_rival = |&other: &usize| {
                *pairs += 1;
                rivals.are(node, other)
            };
            match cliques.iter_mut().find(|clique| clique.iter().all(&mut is_rival)) {
                Some(clique) => clique.push(node),
                None => cliques.push(vec![node]),
            }
        }
        cliques.len()
    }

    fn all_are_heard(&self) -> bool {
        let rivals = self.rivals;
        self.chosen.iter().all(|&node| {
            let mut listeners = rivals.row(&rivals.delivers, node).to_vec();
            for &other in self.chosen.iter().filter(|&&other| other != node) {
                listeners.iter_mut().zip(rivals.row(&rivals.reaches, other)).for_each(|(a, b)| *a &= !b);
            }
            listeners.iter().any(|&word| word != 0)
        })
    }
}

fn members(row: &[u64]) -> impl Iterator<Item = usize> {
    let bits =
        |(at, &word): (usize, &u64)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit);
    row.iter().enumerate().flat_map(bits)
}
