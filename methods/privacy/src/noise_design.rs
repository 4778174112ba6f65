//! The choice of the pairs that share noise under a plan, and of its parts.

use thiserror::Error;

use crate::noise_graph::{NoiseGraph, NoiseParts};

/// Own parts that are tried, as multiples of the least with which any noise of pairs could do. More of it stays in the
/// models for good, less takes more noise of pairs, which stands in them until it has met its opposite.
const OWN_PARTS: [f64; 5] = [1.1, 1.2, 1.4, 1.8, 2.5];

/// The most members that share noise: each pair costs both the drawing of a number for each parameter.
const MOST_SHARING: usize = 65;
/// The share of the variance of a change that counts before it is mixed: codecs round what is large more coarsely.
const UNMIXED: f64 = 2e-4;

/// The pairs of members that share noise, and the parts of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseDesign {
    /// The pairs.
    pub graph: NoiseGraph,
    /// The parts; that of pairs is 0 where nothing is to be shared.
    pub parts: NoiseParts,
}

/// A reason for which members cannot share noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NoiseDesignError {
    /// Fewer than two honest members.
    #[error("{colluders} colluders among {members} members leave no two honest ones to share noise: {} is the most", members.saturating_sub(2))]
    NobodyHonest { members: usize, colluders: usize },
    /// More members than can share noise.
    #[error("at most {MOST_SHARING} members share noise, and this plan has {members}")]
    TooMany { members: usize },
}

impl NoiseDesign {
    /// The design for members with these links that leaves the least noise in their models, with the noise `noise` of
    /// each member against any `colluders` others.
    ///
    /// `mixed` gives, for each of some rounds, the matrix, `[members][members]`, by which changes of that many rounds ago are in
    /// the models. Tried are pairs with a link, pairs within two links, all pairs, and no pairs at all. Every member that
    /// calls this with the same arguments gets the same bits: nothing but sums, products, quotients and roots is taken.
    ///
    /// # Errors
    /// [`NoiseDesignError`].
    pub fn new(
        links: &NoiseGraph,
        mixed: impl FnOnce() -> Vec<Vec<f64>>,
        noise: f64,
        colluders: usize,
    ) -> Result<Self, NoiseDesignError> {
        let members = links.members();
        if members < colluders.saturating_add(2) {
            return Err(NoiseDesignError::NobodyHonest { members, colluders });
        }
        if members > MOST_SHARING {
            return Err(NoiseDesignError::TooMany { members });
        }
        let mixed = &mixed();
        let own = own_noise(mixed) + UNMIXED * (mixed.len() * members) as f64;
        let nothing_shared = Self { graph: NoiseGraph::new(members, []), parts: NoiseParts { own: noise, pair: 0.0 } };
        let mut best = (noise * noise * own, nothing_shared);
        for graph in [links.clone(), links.within_two_links(), NoiseGraph::complete(members)] {
            let Some(cover) = graph.cover(colluders) else { continue };
            // Each pair is in two changes.
            let unmixed = (mixed.len() * 2 * graph.pairs().count()) as f64;
            let of_pairs = noise_of_pairs(&graph, mixed) + UNMIXED * unmixed;
            let least = noise / (cover as f64).sqrt();
            let parts = OWN_PARTS.into_iter().filter_map(|more| graph.calibrate(noise, more * least, colluders));
            for parts in parts.filter(|parts| parts.own < noise) {
                let left = parts.own.powi(2) * own + parts.pair.powi(2) * of_pairs;
                if left < best.0 {
                    best = (left, Self { graph: graph.clone(), parts });
                }
            }
        }
        Ok(best.1)
    }
}

/// The variance in all models of noise that each member draws for itself, with variance 1 in each of the rounds.
fn own_noise(mixed: &[Vec<f64>]) -> f64 {
    mixed.iter().flatten().map(|share| share * share).sum()
}

/// The same for noise that pairs share.
fn noise_of_pairs(graph: &NoiseGraph, mixed: &[Vec<f64>]) -> f64 {
    let members = graph.members();
    let of_row = |row: &[f64]| graph.pairs().map(|(one, other)| (row[one] - row[other]).powi(2)).sum::<f64>();
    mixed.iter().flat_map(|matrix| matrix.chunks(members.max(1))).map(of_row).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ring(members: usize) -> NoiseGraph {
        NoiseGraph::new(members, (0..members).map(|member| (member, (member + 1) % members)))
    }

    /// Powers of the matrix by which each member of a ring takes a third of itself and of both neighbours.
    fn averaging_along(members: usize, rounds: usize) -> Vec<Vec<f64>> {
        let mut powers = vec![];
        let mut now: Vec<f64> =
            (0..members * members).map(|at| if at % members == at / members { 1.0 } else { 0.0 }).collect();
        for _ in 0..rounds {
            let row = |node: usize| (0..members).map(move |column| (node % members) * members + column);
            let mixed = (0..members).flat_map(|node| {
                let rows = row(node).zip(row(node + 1)).zip(row(node + members - 1));
                rows.map(|((own, next), last)| (now[own] + now[next] + now[last]) / 3.0).collect::<Vec<_>>()
            });
            now = mixed.collect();
            powers.push(now.clone());
        }
        powers
    }

    /// Exact averages in each of these rounds.
    fn exact(members: usize, rounds: usize) -> Vec<Vec<f64>> {
        vec![vec![1.0 / members as f64; members * members]; rounds]
    }

    #[test]
    fn where_averages_are_exact_all_members_share_and_hardly_more_than_the_least_stays() {
        let design = NoiseDesign::new(&ring(12), || exact(12, 40), 4.0, 3).unwrap();
        assert!((design.parts.own - 1.1 * 4.0 / 9.0_f64.sqrt()).abs() < 1e-9, "{design:?}");
        assert_eq!(design.graph, NoiseGraph::complete(12), "all pairs have the smallest parts");
        assert!(design.parts.pair > 0.0);
    }

    #[test]
    fn where_mixing_is_slow_each_member_has_noise_of_its_own() {
        let slow = vec![averaging_along(24, 1).remove(0); 3];
        let design = NoiseDesign::new(&ring(24), || slow, 4.0, 1).unwrap();
        assert_eq!(design.parts, NoiseParts { own: 4.0, pair: 0.0 });
    }

    #[test]
    fn neighbours_share_where_their_noise_meets_first() {
        let design = NoiseDesign::new(&ring(5), || averaging_along(5, 40), 4.0, 1).unwrap();
        assert!(design.parts.pair > 0.0 && design.parts.own < 4.0, "{design:?}");
        // Every other set of parts that was tried leaves more.
        let left = |design: &NoiseDesign, mixed: &[Vec<f64>]| {
            design.parts.own.powi(2) * own_noise(mixed)
                + design.parts.pair.powi(2) * noise_of_pairs(&design.graph, mixed)
        };
        let mixed = averaging_along(5, 40);
        let all = NoiseGraph::complete(5);
        let of_all = all.calibrate(4.0, 1.2 * 2.0, 1).unwrap();
        assert!(left(&design, &mixed) <= left(&NoiseDesign { graph: all, parts: of_all }, &mixed));
    }

    #[test]
    fn colluders_that_leave_nobody_and_more_members_than_can_share_are_refused() {
        let nobody = NoiseDesign::new(&ring(4), || exact(4, 2), 4.0, 3).unwrap_err();
        assert_eq!(
            nobody.to_string(),
            "3 colluders among 4 members leave no two honest ones to share noise: 2 is the most"
        );
        let many = NoiseDesign::new(&ring(66), || exact(66, 1), 4.0, 1);
        assert_eq!(many, Err(NoiseDesignError::TooMany { members: 66 }));
        assert!(
            NoiseDesign::new(&ring(65), || exact(65, 1), 4.0, 30).unwrap().parts.pair > 0.0,
            "all pairs need no try"
        );
    }
}
