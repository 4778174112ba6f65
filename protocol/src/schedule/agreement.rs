//! Rounds of mixing alone after which the nodes of a settled swarm agree, found by mixing probes.

use super::{NodeId, Schedule};

/// The disagreement at the end, as a part of what it was before.
const REMAINING: f64 = 0.05;
/// Independent vectors that are mixed: one of them seldom misses the slowest mode of a plan.
const PROBES: usize = 4;
/// Rounds that are tried at most.
const MOST_ROUNDS: u64 = 1_000;
/// Multiplications that are spent at most: some tenths of a second.
const MOST_WORK: u64 = 200_000_000;

/// The rounds after which every probe has come within [`REMAINING`] of agreement; the rounds tried where that takes too
/// long.
///
/// # Complexity
/// O(rounds * links of a round), within [`MOST_WORK`].
pub(super) fn rounds_to_agree(schedule: &Schedule) -> u64 {
    let nodes = schedule.nodes();
    let weights: Vec<f64> = ids(nodes).map(|node| schedule.stationary_weight(node, 0)).collect();
    let mut probes: Vec<Vec<f64>> = (0..PROBES).map(|probe| numerators(probe, &weights)).collect();
    let before: Vec<f64> = probes.iter().map(|x| disagreement(x, &weights)).collect();
    let links: usize = (0..schedule.round_length())
        .map(|step| ids(nodes).map(|node| schedule.out_links(node, step).len() + 1).sum::<usize>())
        .sum();
    let affordable = MOST_WORK / (links * PROBES).max(1) as u64;
    let most = MOST_ROUNDS.min(affordable.max(1));
    for round in 0..most {
        let has_agreed =
            |(x, before): (&Vec<f64>, &f64)| disagreement(x, &weights_at(schedule, round)) <= REMAINING * before;
        if probes.iter().zip(&before).all(has_agreed) {
            return round;
        }
        for step in 0..schedule.round_length() {
            let step = round * schedule.round_length() + step;
            probes.iter_mut().for_each(|x| *x = mix(schedule, step, x));
        }
    }
    most
}

fn ids(nodes: usize) -> impl Iterator<Item = NodeId> {
    (0..nodes).map(|node| NodeId(node as u32))
}

/// Weights at the start of a round.
fn weights_at(schedule: &Schedule, round: u64) -> Vec<f64> {
    let step = round * schedule.round_length();
    ids(schedule.nodes()).map(|node| schedule.stationary_weight(node, step)).collect()
}

/// The numerators of nodes with these weights whose ratios are drawn from -1 ..= 1 by a fixed mixing function
/// (SplitMix64).
fn numerators(probe: usize, weights: &[f64]) -> Vec<f64> {
    let draw = |node: usize| {
        let mut bits = ((probe as u64) << 32 | node as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
    };
    weights.iter().enumerate().map(|(node, weight)| weight * draw(node)).collect()
}

/// The root mean square distance of the ratios from their mean, weighted as the nodes are; nodes that the plan leaves
/// empty have none.
fn disagreement(x: &[f64], weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    let mean = x.iter().sum::<f64>() / total;
    let held = x.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
    let square: f64 = held.map(|(x, weight)| weight * (x / weight - mean).powi(2)).sum();
    (square / total).sqrt()
}

/// One step of mixing.
fn mix(schedule: &Schedule, step: u64, x: &[f64]) -> Vec<f64> {
    let mut next = vec![0.0; x.len()];
    for from in ids(x.len()) {
        let mut kept = if schedule.keeps(from, step) { 1.0 } else { 0.0 };
        for link in schedule.out_links(from, step) {
            let share = link.share.to_f64();
            next[link.to.index()] += share * x[from.index()];
            if schedule.keeps(from, step) {
                kept -= share;
            }
        }
        next[from.index()] += kept * x[from.index()];
    }
    next
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::Step;

    fn ring(nodes: u32) -> Schedule {
        let links = (0..nodes).map(|i| (NodeId(i), NodeId((i + 1) % nodes), 0.5)).collect();
        Schedule::new(nodes as usize, &[Step { keep: vec![0.5; nodes as usize], links }], 1).unwrap()
    }

    #[test]
    fn a_plan_that_averages_exactly_in_a_round_agrees_after_one() {
        assert_eq!(rounds_to_agree(&ring(2)), 1);
        let links = (0..4).flat_map(|i| (0..4).filter(move |j| *j != i).map(move |j| (NodeId(i), NodeId(j), 0.25)));
        let step = Step { keep: vec![0.25; 4], links: links.collect() };
        assert_eq!(rounds_to_agree(&Schedule::new(4, &[step], 1).unwrap()), 1);
    }

    #[test]
    fn a_ring_takes_the_rounds_that_its_second_eigenvalue_says() {
        // |lambda_2| of (I + P) / 2 on a directed ring of n nodes is cos(pi / n).
        for nodes in [8_u32, 16, 32] {
            let lambda = (std::f64::consts::PI / f64::from(nodes)).cos();
            let expected = REMAINING.ln() / lambda.ln();
            let found = rounds_to_agree(&ring(nodes)) as f64;
            assert!(found > 0.4 * expected && found < 1.3 * expected, "{nodes} nodes: {found}, expected {expected}");
        }
    }
}
