//! The parts of the method against their definitions.
#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use mingle_recommend::{
    DealOptions, EPSILON, K, Kernel, LowPass, MarginRule, Planted, RankingLoss, Size, UserSplit, angle,
    bipartite_graph, co_cluster, compared_eigenvalues, divergence, ndcg, recall, reference_graph, reference_shares,
    shares, shifted_cosine, similarity, top,
};
use proptest::prelude::*;

fn planted(communities: usize) -> mingle_recommend::Interactions {
    Planted { communities, users: 40, items: 30, ..Planted::default() }.draw()
}

fn seeded(seed: u64) -> DealOptions {
    DealOptions { seed, ..DealOptions::default() }
}

fn graph(communities: usize) -> mingle_spectra::WeightedGraph {
    let interactions = planted(communities);
    let split = UserSplit::of(&interactions, 0);
    bipartite_graph(interactions.users().len(), interactions.items().len(), &split.train).unwrap()
}

/// `P P^T` applied to a column.
fn filtered(filter: &LowPass, column: &[f64]) -> Vec<f64> {
    let rows: Vec<&[f32]> = filter.vectors.chunks_exact(filter.frequencies()).collect();
    let low: Vec<f64> = (0..filter.frequencies())
        .map(|at| rows.iter().zip(column).map(|(row, value)| f64::from(row[at]) * value).sum())
        .collect();
    rows.iter().map(|row| row.iter().zip(&low).map(|(a, b)| f64::from(*a) * b).sum()).collect()
}

#[test]
fn the_filter_is_idempotent_and_one_less_than_all_frequencies_leave_out_the_highest_alone() {
    let graph = graph(1);
    let n = graph.node_count();
    let column: Vec<f64> = (0..n).map(|at| ((at * 37 % 11) as f64) - 5.0).collect();
    let filter = LowPass::of(&graph, 12).unwrap();
    let once = filtered(&filter, &column);
    let twice = filtered(&filter, &once);
    assert!(once.iter().zip(&twice).all(|(a, b)| (a - b).abs() < 1e-5));
    assert!(once.iter().zip(&column).any(|(a, b)| (a - b).abs() > 0.1));
    // All frequencies but one: the missing dimension is that of the largest eigenvalue, 2 in a bipartite graph.
    let nearly = LowPass::of(&graph, n - 1).unwrap();
    let missing: Vec<f64> = filtered(&nearly, &column).iter().zip(&column).map(|(a, b)| b - a).collect();
    let mut image: Vec<f64> = missing.clone();
    mingle_spectra::SymmetricOperator::apply(&graph.normalized_adjacency(), &missing, &mut image);
    assert!(image.iter().zip(&missing).all(|(image, value)| (image + value).abs() < 1e-4));
    assert!(LowPass::of(&graph, n).unwrap_err().to_string().contains("frequencies = "));
}

#[test]
fn divergences_are_zero_of_equals_and_not_negative_and_finite_with_a_zero_eigenvalue() {
    let eigenvalues = compared_eigenvalues(&graph(1), Kernel::Paper, 16).unwrap();
    assert_eq!(eigenvalues[0], 0.0);
    let own = shares(&eigenvalues);
    assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(divergence(&own, &own), 0.0);
    let other = shares(&compared_eigenvalues(&graph(3), Kernel::Paper, 16).unwrap());
    assert!(divergence(&own, &other).is_finite() && divergence(&other, &own) >= 0.0);
    // Two more components are two more zeros, each of which costs a term with `eps`.
    let zeros = compared_eigenvalues(
        &mingle_spectra::WeightedGraph::new(40, (0..20).map(|i| (i, i + 20, 1.0))).unwrap(),
        Kernel::Paper,
        8,
    );
    let isolated = shares(&zeros.unwrap());
    let expected: f64 =
        own.iter().filter(|share| **share > 0.0).map(|share| share * (share / EPSILON).ln()).sum::<f64>();
    assert!((divergence(&own[..8], &isolated) - expected).abs() < expected, "{isolated:?}");
    // The largest component alone has a single zero, whatever the number of components.
    let connected = compared_eigenvalues(&graph(3), Kernel::Connected, 16).unwrap();
    assert_eq!(connected.iter().filter(|value| **value < 1e-12).count(), 1);
}

#[test]
fn every_peer_draws_the_same_reference_graph_and_hears_the_same_frequencies() {
    let size = Size::mean(&[Size { users: 40, items: 31, edges: 700 }, Size { users: 45, items: 30, edges: 600 }]);
    assert_eq!(size, Size { users: 43, items: 31, edges: 650 });
    let graph = reference_graph(size, 5).unwrap();
    assert_eq!(graph, reference_graph(size, 5).unwrap());
    assert_ne!(graph, reference_graph(size, 6).unwrap());
    assert_eq!((graph.node_count(), graph.edge_count()), (74, 650));
    assert!((0..43).all(|user| graph.neighbours(user).all(|(item, weight)| item >= 43 && weight == 1.0)));
    let told = reference_shares(size, Kernel::Paper, 16, 5).unwrap();
    assert_eq!(told, reference_shares(size, Kernel::Paper, 16, 5).unwrap());
    assert!(
        told.iter().all(|share| (share * 1e9).fract() == 0.0 || (share * 1e9 - (share * 1e9).round()).abs() < 1e-5)
    );
}

#[test]
fn equal_clients_go_along_wholly_and_others_from_nothing_to_all() {
    let all = [0.3, 0.1, 0.2, 0.7];
    let found: Vec<f64> = all.iter().map(|own| similarity(*own, &all, 0.0)).collect();
    assert!((found[0] - 2.0 / 3.0).abs() < 1e-12 && found[1] == 1.0 && found[3] == 0.0);
    assert_eq!(similarity(0.7, &all, 0.25), 0.25);
    assert_eq!(similarity(0.4, &[0.4, 0.4], 0.0), 1.0);
    assert_eq!(similarity(0.4, &[0.4], 0.0), 1.0);
}

proptest! {
    #[test]
    fn the_shifted_cosine_is_that_of_the_angle(f in -30.0_f64..30.0, m in 0.0_f64..PI) {
        let (value, _) = shifted_cosine(f, m);
        prop_assert!((value - (angle(f) + m).cos()).abs() < 1e-8);
        if f.abs() < 8.0 {
            prop_assert!((angle(f) - f.tanh().acos()).abs() < 1e-6);
        }
    }

    #[test]
    fn an_angle_with_its_margin_never_exceeds_pi(
        f in -60.0_f64..60.0, xi in 0.0_f64..PI, of_all in proptest::option::of(0.0_f64..PI),
        gamma in 0.0_f64..1.0, omega in 0.0_f64..1.0,
    ) {
        let rule = MarginRule { gamma, omega };
        let own = rule.own(f, xi);
        prop_assert!(own >= 0.0 && angle(f) + own <= PI + 1e-12);
        prop_assert!(angle(f) + rule.refined(f, own, of_all) <= PI + 1e-12);
    }

    #[test]
    fn derivatives_of_both_losses_are_those_of_finite_differences(
        positive in -6.0_f64..6.0, negatives in proptest::collection::vec(-6.0_f64..6.0, 1..6), margin in 0.0_f64..1.5,
    ) {
        for loss in [RankingLoss::Contrastive { temperature: 0.1 }, RankingLoss::Bpr] {
            let (_, gradient) = loss.of(positive, margin, &negatives);
            let at = |place: usize, shift: f64| {
                let (mut positive, mut negatives) = (positive, negatives.clone());
                if place == 0 { positive += shift } else { negatives[place - 1] += shift }
                loss.of(positive, margin, &negatives).0
            };
            for (place, found) in gradient.iter().enumerate() {
                let slope = (at(place, 1e-5) - at(place, -1e-5)) / 2e-5;
                prop_assert!((slope - found).abs() <= 1e-4 * slope.abs().max(1.0), "{place}: {slope} {found}");
            }
        }
    }
}

#[test]
fn scores_that_saturate_give_losses_and_slopes_that_are_numbers_in_f32_too() {
    for positive in [-50.0, -10.0, 0.0, 10.0, 50.0] {
        for loss in [RankingLoss::Contrastive { temperature: 0.1 }, RankingLoss::Bpr] {
            let (value, slopes) = loss.of(positive, 1.2, &[50.0, -50.0, 9.5]);
            assert!(value.is_finite() && slopes.iter().all(|slope| (*slope as f32).is_finite()), "{positive}");
        }
    }
    // Without margins the loss is plain contrastive: the cross-entropy of cosines over a temperature.
    let rule = MarginRule { gamma: 0.0, omega: 0.0 };
    let margin = rule.refined(0.3, rule.own(0.3, 2.0), Some(0.7));
    assert_eq!(margin, 0.0);
    let (loss, _) = RankingLoss::Contrastive { temperature: 0.1 }.of(0.3, margin, &[0.1, -0.4]);
    let terms: Vec<f64> = [0.3_f64, 0.1, -0.4].iter().map(|f| (f.tanh() / 0.1).exp()).collect();
    assert!((loss + (terms[0] / terms.iter().sum::<f64>()).ln()).abs() < 1e-12);
}

#[test]
fn recall_and_gain_are_those_of_hand() {
    // One of two test items at rank 3.
    let ranking = [9, 8, 4, 7, 6];
    assert_eq!(recall(&ranking, &[4, 5], K), 0.5);
    let expected = (1.0 / 4.0_f64.log2()) / (1.0 + 1.0 / 3.0_f64.log2());
    assert!((ndcg(&ranking, &[4, 5], K) - expected).abs() < 1e-12 && (expected - 0.3066).abs() < 1e-4);
    assert_eq!((ndcg(&ranking, &[9, 8], 2), recall(&ranking, &[9, 8, 4], 2)), (1.0, 2.0 / 3.0));
    assert_eq!((ndcg(&ranking, &[1], K), ndcg(&[], &[1], K)), (0.0, 0.0));
    let scores = [0.1, 0.9, 0.5, 0.9, f32::MIN, 0.7];
    assert_eq!(top(&scores, &[&[3], &[5]], 3), [1, 2, 0]);
    assert_eq!(top(&scores, &[], 100), [1, 3, 5, 2, 0, 4]);
}

#[test]
fn co_clustering_finds_planted_communities_and_drops_what_lies_between() {
    let interactions = planted(4);
    let found = co_cluster(&interactions, 4, seeded(1)).unwrap();
    assert_eq!(found, co_cluster(&interactions, 4, seeded(1)).unwrap());
    for part in &found.parts {
        let community = part.users()[0][..2].to_owned();
        let strangers = part.users().iter().filter(|user| user[..2] != community).count();
        assert!(strangers <= 1, "{strangers} of {}", part.users().len());
    }
    let kept: usize = found.parts.iter().map(mingle_recommend::Interactions::count).sum();
    assert_eq!(kept + found.dropped, interactions.count());
    assert!(found.dropped * 10 < interactions.count(), "{}", found.dropped);
    assert_eq!(co_cluster(&interactions, 1, seeded(0)).unwrap().dropped, 0);
    assert!(co_cluster(&interactions, 0, seeded(0)).is_err());
}

#[test]
fn users_keep_something_to_learn_from_and_nothing_is_in_two_parts() {
    let interactions = planted(2);
    let split = UserSplit::of(&interactions, 3);
    assert_ne!(split, UserSplit::of(&interactions, 4));
    for user in 0..interactions.users().len() {
        let mut all = [&split.train[user][..], &split.validation[user], &split.test[user]].concat();
        all.sort_unstable();
        assert_eq!(all, interactions.of_user(user));
        let held_out = if all.len() < 3 { 0 } else { (all.len() / 10).max(1) };
        assert_eq!((split.test[user].len(), split.validation[user].len()), (held_out, held_out));
    }
}
