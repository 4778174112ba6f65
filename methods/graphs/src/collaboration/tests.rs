#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::steps::{by_reciprocals, difference, distances, spreads, uniform, weights_of};
use super::*;

fn random_vectors(clients: usize, dimension: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..clients).map(|_| (0..dimension).map(|_| rng.random::<f64>() - 0.5).collect()).collect()
}

fn random_signatures(clients: usize, shape: SignatureShape, seed: u64) -> Vec<Signatures> {
    let unit = |vector: Vec<f64>| {
        let values = vector.chunks(shape.dimension).flat_map(|direction| {
            let norm = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
            direction.iter().map(move |value| value / norm).collect::<Vec<_>>()
        });
        Signatures::from_values(shape, values.collect()).unwrap()
    };
    random_vectors(clients, shape.len(), seed).into_iter().map(unit).collect()
}

/// A point of the simplex, uniformly.
fn on_simplex(rng: &mut ChaCha8Rng, dimension: usize) -> Vec<f64> {
    let raw: Vec<f64> = (0..dimension).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
    let total: f64 = raw.iter().sum();
    raw.into_iter().map(|value| value / total).collect()
}

/// The printed Newton iteration for a row: `w = (h - b)_+` with `mean (b - h)_+ = b`, started at `b = 0`, until the
/// active set is constant.
fn newton(t: &[f64], gamma: f64) -> (Vec<f64>, usize) {
    let clients = t.len() as f64;
    let shift = t.iter().sum::<f64>() / (2.0 * clients * gamma);
    let h: Vec<f64> = t.iter().map(|t| 1.0 / clients - t / (2.0 * gamma) + shift).collect();
    let (mut b, mut steps) = (0.0, 0);
    loop {
        let below = h.iter().filter(|&&h| h < b).count();
        let f = h.iter().map(|h| (b - h).max(0.0)).sum::<f64>() / clients - b;
        b -= f / (below as f64 / clients - 1.0);
        steps += 1;
        if h.iter().filter(|&&h| h < b).count() == below || steps > 100 {
            return (h.iter().map(|h| (h - b).max(0.0)).collect(), steps);
        }
    }
}

#[test]
fn the_w_step_is_the_printed_newton_iteration_carried_to_its_end() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for gamma in [0.01, 0.3, 5.0] {
        for clients in [2, 5, 20] {
            let t: Vec<f64> = (0..clients).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
            let (expected, steps) = newton(&t, gamma);
            let projected = &weights_of(&vec![t], gamma)[0];
            assert!(steps <= 8, "{steps}");
            for (one, other) in projected.iter().zip(&expected) {
                assert!((one - other).abs() < 1e-10, "{projected:?} {expected:?}");
            }
        }
    }
}

#[test]
fn a_large_gamma_makes_weights_equal_and_a_small_one_takes_the_best_alone() {
    let t = vec![vec![0.4, -0.2, 0.1, 0.3]];
    assert!(weights_of(&t, 1e12)[0].iter().all(|weight| (weight - 0.25).abs() < 1e-10));
    assert_eq!(weights_of(&t, 1e-9)[0], [0.0, 1.0, 0.0, 0.0]);
}

proptest! {
    #[test]
    fn a_projection_is_on_the_simplex_and_nothing_there_is_nearer(
        point in prop::collection::vec(-5.0_f64..5.0, 1..12), seed in any::<u64>(),
    ) {
        let projected = project_onto_simplex(&point);
        prop_assert!(projected.iter().all(|weight| *weight >= 0.0));
        prop_assert!((projected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let distance = |other: &[f64]| other.iter().zip(&point).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..50 {
            prop_assert!(distance(&on_simplex(&mut rng, point.len())) >= distance(&projected) - 1e-12);
        }
    }
}

#[test]
fn the_r_step_is_better_than_twenty_thousand_points_of_the_simplex() {
    let e: Vec<f64> = random_vectors(1, 8, 4)[0].iter().map(|value| value.abs() + 0.05).collect();
    let value = |r: &[f64]| r.iter().zip(&e).map(|(r, e)| r * r * e).sum::<f64>();
    let best = value(&by_reciprocals(&e, 0.0));
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..20_000 {
        assert!(value(&on_simplex(&mut rng, e.len())) >= best);
    }
}

#[test]
fn the_printed_s_step_maximises_what_it_should_minimise() {
    // Documented and kept in the mode `paper`, whose purpose is to be the printed algorithm.
    let n: Vec<f64> = random_vectors(1, 8, 6)[0].iter().map(|value| value.abs() + 0.05).collect();
    let value = |s: &[f64]| -s.iter().zip(&n).map(|(s, n)| s * s * n).sum::<f64>();
    let printed = value(&by_reciprocals(&n, 0.0));
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..20_000 {
        assert!(value(&on_simplex(&mut rng, n.len())) <= printed);
    }
    let largest = n.iter().copied().fold(0.0, f64::max);
    let vertex = -largest;
    assert!(vertex < 2.0 * printed, "the best vertex {vertex} is far below {printed}");
}

#[test]
fn the_sum_of_weighted_distances_is_twice_the_trace() {
    let vectors = random_vectors(6, 9, 8);
    let weights: WeightMatrix = random_vectors(6, 6, 9).iter().map(|row| project_onto_simplex(row)).collect();
    let trace: f64 = spreads(&vectors, &weights).iter().sum();
    let all = distances(&vectors, &[1.0; 9]);
    let sum: f64 = (0..6).flat_map(|i| (0..6).map(move |j| (i, j))).map(|(i, j)| weights[i][j] * all[i][j]).sum();
    assert!((sum - 2.0 * trace).abs() < 1e-12, "{sum} {trace}");
}

#[test]
fn the_printed_steps_give_all_to_coordinates_that_are_the_same_everywhere_and_weights_become_equal() {
    // Ten clients, 500 coordinates, of which 50 are absent everywhere, as rare words are.
    let clear = |mut vector: Vec<f64>| {
        vector[..50].fill(0.0);
        vector
    };
    let p: Vec<Vec<f64>> = random_vectors(10, 500, 10).into_iter().map(clear).collect();
    let r = by_reciprocals(&spreads(&p, &uniform(10)), 1e-10);
    assert!(r[..50].iter().sum::<f64>() > 0.999_999, "constant coordinates take everything");
    let weights = super::distances::paper(&p, &p, 0.1);
    assert!(weights.iter().flatten().all(|weight| (weight - 0.1).abs() < 1e-6));
    // The other two modes distinguish clients.
    let shape = SignatureShape { orders: 1, directions: 2, dimension: 50 };
    let signatures = random_signatures(10, shape, 11);
    for mode in [CollaborationMode::Angle, CollaborationMode::Robust] {
        let options = CollaborationOptions { mode, gamma: 1.0, most_weights: 10, ..Default::default() };
        let graph = CollaborationGraph::of(&signatures, &options).unwrap();
        assert!(graph.all().iter().flatten().any(|weight| (weight - 0.1).abs() > 0.02), "{mode}");
    }
}

#[test]
fn the_printed_alternation_swings_where_gamma_is_small() {
    // R, S and W as printed, from equal weights: the W of one pass is not the W of the next, whatever the number of
    // passes.
    let pass = |weights: &WeightMatrix, seed: u64| {
        let (p, q) = (random_vectors(5, 6, seed), random_vectors(5, 6, seed + 1_000));
        let r = by_reciprocals(&spreads(&p, weights), 1e-10);
        let s = by_reciprocals(&spreads(&q, weights), 1e-10);
        weights_of(&difference(&distances(&p, &r), &distances(&q, &s)), 1e-4)
    };
    let swinging = (0..40).filter(|&seed| {
        let weights = (0..50).fold(uniform(5), |weights, _| pass(&weights, seed));
        let next = pass(&weights, seed);
        next.iter().flatten().zip(weights.iter().flatten()).any(|(next, before)| (next - before).abs() > 0.1)
    });
    assert!(swinging.count() >= 4);
}

#[test]
fn a_client_can_discard_its_own_model_by_distances_and_keeps_the_floor_that_is_asked_for() {
    // Complementary neighbours have t_ij < 0 = t_ii.
    let t = vec![vec![0.0, -1.0, -1.0], vec![-1.0, 0.0, -1.0], vec![-1.0, -1.0, 0.0]];
    assert_eq!(weights_of(&t, 0.1)[0], [0.0, 0.5, 0.5]);
    let shape = SignatureShape { orders: 2, directions: 2, dimension: 6 };
    let signatures = random_signatures(5, shape, 14);
    for mode in [CollaborationMode::Paper, CollaborationMode::Angle, CollaborationMode::Robust] {
        let options = CollaborationOptions { mode, self_floor: 0.4, most_weights: 5, ..Default::default() };
        let graph = CollaborationGraph::of(&signatures, &options).unwrap();
        for matrix in graph.matrices() {
            for (client, row) in matrix.iter().enumerate() {
                assert!(row[client] >= 0.4 - 1e-12, "{mode}: {row:?}");
            }
        }
    }
}

#[test]
fn rows_are_on_the_simplex_and_have_no_more_weights_than_asked_for() {
    let shape = SignatureShape { orders: 3, directions: 2, dimension: 10 };
    let signatures = random_signatures(9, shape, 15);
    for mode in [CollaborationMode::Paper, CollaborationMode::Angle, CollaborationMode::Robust] {
        for most_weights in [1, 4, 9] {
            let options = CollaborationOptions { mode, most_weights, ..Default::default() };
            let graph = CollaborationGraph::of(&signatures, &options).unwrap();
            assert_eq!(graph.orders().len(), 3);
            for row in graph.matrices().flatten() {
                assert!(row.iter().all(|weight| *weight >= 0.0));
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
            for client in 0..9 {
                assert!(graph.of_client(client).sources().len() <= most_weights);
            }
        }
    }
}

#[test]
fn angles_give_clients_that_are_alike_weight_and_each_client_its_own() {
    // Two groups of three clients with the same directions within a group.
    let shape = SignatureShape { orders: 1, directions: 1, dimension: 4 };
    let of_group = |group: usize| {
        let mut values = vec![0.0; shape.len()];
        values[group] = 1.0;
        values[4 + group] = 1.0;
        Signatures::from_values(shape, values).unwrap()
    };
    let signatures: Vec<Signatures> = [0, 0, 0, 1, 1, 1].map(of_group).to_vec();
    let options = CollaborationOptions { gamma: 1.0, ..Default::default() };
    let graph = CollaborationGraph::of(&signatures, &options).unwrap();
    for (client, row) in graph.all().iter().enumerate() {
        assert!(row[client] > 0.0);
        let own_group: f64 = (0..6).filter(|other| other / 3 == client / 3).map(|other| row[other]).sum();
        assert!(own_group > 0.99, "{row:?}");
    }
}

#[test]
fn equal_signatures_give_equal_weights_in_every_mode_and_one_client_keeps_all() {
    let shape = SignatureShape { orders: 2, directions: 2, dimension: 5 };
    let one = random_signatures(1, shape, 16);
    for mode in [CollaborationMode::Paper, CollaborationMode::Angle, CollaborationMode::Robust] {
        let options = CollaborationOptions { mode, most_weights: 9, ..Default::default() };
        let same = CollaborationGraph::of(&vec![one[0].clone(); 4], &options).unwrap();
        assert!(same.all().iter().flatten().all(|weight| (weight - 0.25).abs() < 1e-9), "{mode}: {:?}", same.all());
        assert_eq!(CollaborationGraph::of(&one, &options).unwrap().all(), &vec![vec![1.0]]);
        assert_eq!(CollaborationGraph::of(&[], &options), Err(CollaborationError::NoClients));
    }
}

#[test]
fn what_cannot_be_weighed_is_refused() {
    let one = random_signatures(1, SignatureShape { orders: 2, directions: 2, dimension: 5 }, 17);
    let other = random_signatures(1, SignatureShape { orders: 2, directions: 2, dimension: 6 }, 17);
    let both = [one[0].clone(), other[0].clone()];
    assert_eq!(
        CollaborationGraph::of(&both, &CollaborationOptions::default()),
        Err(CollaborationError::Shape { client: 1 })
    );
    for (gamma, self_floor, most_weights) in [(0.0, 0.0, 4), (f64::NAN, 0.0, 4), (1.0, 1.5, 4), (1.0, 0.0, 0)] {
        let options = CollaborationOptions { gamma, self_floor, most_weights, ..Default::default() };
        assert!(matches!(CollaborationGraph::of(&one, &options), Err(CollaborationError::Option { .. })));
    }
}

#[test]
fn the_hash_tells_weights_apart_and_is_that_of_the_same_signatures() {
    let shape = SignatureShape { orders: 2, directions: 2, dimension: 5 };
    let signatures = random_signatures(4, shape, 18);
    let options = CollaborationOptions::default();
    let graph = CollaborationGraph::of(&signatures, &options).unwrap();
    assert_eq!(graph.hash(), CollaborationGraph::of(&signatures, &options).unwrap().hash());
    let other = CollaborationOptions { gamma: 1.7, ..options };
    assert_ne!(graph.hash(), CollaborationGraph::of(&signatures, &other).unwrap().hash());
}
