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

/// The last rounds before `end` that bring every probe within [`REMAINING`] of agreement; the rounds tried where that
/// takes too long.
///
/// The rounds of a plan may differ, so they are taken from the end of the run. Going backwards needs the adjoint of each
/// step, under which a probe shrinks as the ratios do: the two have the same norm.
///
/// # Complexity
/// O(rounds * links of a mean round), within [`MOST_WORK`].
pub(super) fn rounds_to_agree(schedule: &Schedule, end: u64) -> u64 {
    let work_of = |step| ids(schedule.nodes()).map(|node| schedule.out_links(node, step).len() + 1).sum::<usize>();
    let work: usize = (0..schedule.period()).map(work_of).sum::<usize>() * PROBES;
    let affordable = MOST_WORK * schedule.rounds_in_period() / work.max(1) as u64;
    let most = MOST_ROUNDS.min(affordable.max(1));
    // The same place in the period, with enough rounds before it.
    let end = end + MOST_ROUNDS * schedule.rounds_in_period();
    let weights = weights_at(schedule, end);
    let mut probes: Vec<Vec<f64>> = (0..PROBES).map(|probe| probe_without_mean(probe, &weights)).collect();
    let before: Vec<f64> = probes.iter().map(|probe| norm(probe, &weights)).collect();
    for rounds in 0..most {
        let weights = weights_at(schedule, end - rounds);
        if probes.iter().zip(&before).all(|(probe, before)| norm(probe, &weights) <= REMAINING * before) {
            return rounds;
        }
        let last_step = (end - rounds) * schedule.round_length() - 1;
        for step in 0..schedule.round_length() {
            probes.iter_mut().for_each(|probe| *probe = mix_back(schedule, last_step - step, probe));
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

/// Ratios that are drawn from -1 ..= 1 by a fixed mixing function (SplitMix64), less their mean.
fn probe_without_mean(probe: usize, weights: &[f64]) -> Vec<f64> {
    let draw = |node: usize| {
        let mut bits = ((probe as u64) << 32 | node as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
    };
    let drawn: Vec<f64> = (0..weights.len()).map(draw).collect();
    let sum: f64 = drawn.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    let mean = sum / weights.iter().sum::<f64>();
    drawn.iter().map(|value| value - mean).collect()
}

/// The root mean square of a probe, weighted as the nodes are.
fn norm(probe: &[f64], weights: &[f64]) -> f64 {
    let square: f64 = probe.iter().zip(weights).map(|(value, weight)| weight * value.powi(2)).sum();
    (square / weights.iter().sum::<f64>()).sqrt()
}

/// The adjoint of a step of mixing: each node gets the mean of the values where its weight goes.
fn mix_back(schedule: &Schedule, step: u64, probe: &[f64]) -> Vec<f64> {
    let value_of = |from: NodeId| {
        let links = schedule.out_links(from, step);
        let given: f64 = links.iter().map(|link| link.share.to_f64()).sum();
        let kept = if schedule.keeps(from, step) { (1.0 - given) * probe[from.index()] } else { 0.0 };
        kept + links.iter().map(|link| link.share.to_f64() * probe[link.to.index()]).sum::<f64>()
    };
    ids(probe.len()).map(value_of).collect()
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
        assert_eq!(rounds_to_agree(&ring(2), 0), 1);
        let links = (0..4).flat_map(|i| (0..4).filter(move |j| *j != i).map(move |j| (NodeId(i), NodeId(j), 0.25)));
        let step = Step { keep: vec![0.25; 4], links: links.collect() };
        assert_eq!(rounds_to_agree(&Schedule::new(4, &[step], 1).unwrap(), 0), 1);
    }

    #[test]
    fn a_ring_takes_the_rounds_that_its_second_eigenvalue_says() {
        // |lambda_2| of (I + P) / 2 on a directed ring of n nodes is cos(pi / n).
        for nodes in [8_u32, 16, 32] {
            let lambda = (std::f64::consts::PI / f64::from(nodes)).cos();
            let expected = REMAINING.ln() / lambda.ln();
            let found = rounds_to_agree(&ring(nodes), 0) as f64;
            assert!(found > 0.4 * expected && found < 1.3 * expected, "{nodes} nodes: {found}, expected {expected}");
        }
    }

    #[test]
    fn where_the_rounds_of_a_plan_differ_those_before_the_end_count() {
        // Nine rounds without a link, and one that averages exactly.
        let links = (0..4).flat_map(|i| (0..4).filter(move |j| *j != i).map(move |j| (NodeId(i), NodeId(j), 0.25)));
        let mixing = Step { keep: vec![0.25; 4], links: links.collect() };
        let idle = Step { keep: vec![1.0; 4], links: Vec::new() };
        let steps: Vec<Step> = std::iter::once(mixing).chain(std::iter::repeat_n(idle, 9)).collect();
        let schedule = Schedule::new(4, &steps, 1).unwrap().with_round_length(1).unwrap();
        let found = [10, 11, 15, 20].map(|end| rounds_to_agree(&schedule, end));
        assert_eq!(found, [10, 1, 5, 10]);
        // Of the rounds wanted, the last that trains is one.
        assert_eq!([110, 111, 115].map(|rounds| schedule.closing_rounds(rounds)), [9, 0, 4]);
    }
}
