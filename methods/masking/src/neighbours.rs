//! The graph of members that share masks.
//!
//! Up to [`MOST_PAIRED`] + 1 members, all pairs do. Above, members stand on a ring in random order and each shares masks
//! with the `MOST_PAIRED / 2` nearest on either side (a Harary graph under a random permutation, as in Bell et al., CCS
//! 2020). Taking colluders away cuts such a graph only where two runs of `MOST_PAIRED / 2` colluders stand side by side.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;

/// The most neighbours of a member.
pub const MOST_PAIRED: usize = 64;

/// The members that `me` shares masks with. The order of the ring follows from the seed, the same at all members.
pub(crate) fn neighbours(members: usize, me: usize, seed: [u8; 32]) -> Vec<usize> {
    if members <= MOST_PAIRED + 1 {
        return (0..members).filter(|other| *other != me).collect();
    }
    let mut ring: Vec<usize> = (0..members).collect();
    ring.shuffle(&mut ChaCha20Rng::from_seed(seed));
    let Some(own) = ring.iter().position(|member| *member == me) else { return Vec::new() };
    let near = (1..=MOST_PAIRED / 2).flat_map(|steps| [own + steps, own + members - steps]);
    near.map(|place| ring[place % members]).collect()
}

/// The base-2 logarithm of a bound on the probability that so many colluders among so many members cut the graph of the
/// honest ones, so that they learn sums of parts of them. Negative infinity where they cannot.
///
/// There are fewer than `n^2 / 2` pairs of places for two runs of k/2, and the k places of a pair are all colluders with
/// the probability `prod_{i < k} (t - i) / (n - i)`.
pub fn exposure(members: usize, colluders: usize) -> f64 {
    if members <= MOST_PAIRED + 1 || colluders < MOST_PAIRED {
        return f64::NEG_INFINITY;
    }
    let share = |taken: usize| ((colluders.min(members) - taken) as f64 / (members - taken) as f64).log2();
    2.0 * (members as f64).log2() - 1.0 + (0..MOST_PAIRED).map(share).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn neighbourhood_is_mutual_and_regular_and_of_all_in_small_groups() {
        for members in [2, 3, 64, 65, 66, 100, 257] {
            let graph: Vec<BTreeSet<usize>> =
                (0..members).map(|me| neighbours(members, me, [7; 32]).into_iter().collect()).collect();
            for (me, others) in graph.iter().enumerate() {
                assert_eq!(others.len(), (members - 1).min(MOST_PAIRED));
                assert!(!others.contains(&me) && others.iter().all(|other| graph[*other].contains(&me)));
            }
        }
        assert_ne!(neighbours(100, 0, [7; 32]), neighbours(100, 0, [8; 32]));
    }

    /// The order is part of what members agree on: another version of a library must not change it.
    #[test]
    fn the_ring_is_pinned() {
        assert_eq!(neighbours(100, 0, [7; 32])[..6], PINNED);
    }
    const PINNED: [usize; 6] = [37, 10, 11, 29, 33, 8];

    /// Honest members that colluders would have to cut apart.
    fn is_connected(graph: &[Vec<usize>], colluders: &BTreeSet<usize>) -> bool {
        let honest = (0..graph.len()).filter(|member| !colluders.contains(member));
        let Some(first) = honest.clone().next() else { return true };
        let (mut seen, mut queue) = (BTreeSet::from([first]), vec![first]);
        while let Some(member) = queue.pop() {
            for &other in graph[member].iter().filter(|other| !colluders.contains(other)) {
                if seen.insert(other) {
                    queue.push(other);
                }
            }
        }
        seen.len() == honest.count()
    }

    #[test]
    fn half_of_the_members_together_do_not_cut_the_others_apart() {
        let members = 200;
        for seed in 0..50 {
            let graph: Vec<Vec<usize>> = (0..members).map(|me| neighbours(members, me, [seed; 32])).collect();
            assert!(is_connected(&graph, &(0..members / 2).collect()), "seed {seed}");
        }
        // Who knows the ring beforehand can: the order has to be random to colluders.
        let order: Vec<Vec<usize>> = (0..members)
            .map(|me| (1..=32).flat_map(|steps| [(me + steps) % members, (me + members - steps) % members]).collect())
            .collect();
        assert!(!is_connected(&order, &(0..32).chain(100..132).collect()));
        assert!(exposure(200, 100) < -60.0 && exposure(1_000, 500) < -45.0 && exposure(1_000, 333) < -80.0);
        assert_eq!((exposure(65, 63), exposure(1_000, 63)), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    }
}
