//! Eigenpairs compared with those of dense matrices, also where multiplicities make plain Lanczos methods fail.
#![allow(clippy::unwrap_used)]

use mingle_spectra::{
    LanczosOptions, SparseSymmetric, SpectrumError, SymmetricOperator, WeightedGraph, largest, smallest_of_laplacian,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random_graph(nodes: u32, edges: usize, seed: u64) -> WeightedGraph {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || (dice.next_u64() % u64::from(nodes)) as u32;
    WeightedGraph::new(nodes as usize, (0..edges).map(|_| (draw(), draw(), 1.0)).filter(|edge| edge.0 != edge.1))
        .unwrap()
}

/// All eigenvalues of the normalised Laplacian by cyclic Jacobi rotations, a method that the crate does not use.
fn dense_spectrum(graph: &WeightedGraph) -> Vec<f64> {
    let n = graph.node_count();
    let mut a = vec![vec![0.0; n]; n];
    for (i, row) in a.iter_mut().enumerate() {
        row[i] = 1.0;
        for (j, value) in graph.normalized_adjacency().row(i) {
            row[j as usize] -= value;
        }
    }
    for _ in 0..100 {
        let off: f64 = (0..n).map(|i| (0..i).map(|j| a[i][j] * a[i][j]).sum::<f64>()).sum();
        if off < 1e-26 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    (row[p], row[q]) = (c * x - s * y, s * x + c * y);
                }
                let (upper, lower) = a.split_at_mut(q);
                for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn check(graph: &WeightedGraph, wanted: usize, options: &LanczosOptions) {
    let pairs = smallest_of_laplacian(graph, wanted, options).unwrap();
    let exact = dense_spectrum(graph);
    for (at, (found, exact)) in pairs.values.iter().zip(&exact).enumerate() {
        assert!((found - exact).abs() < 1e-10, "eigenvalue {at}: {found} and not {exact}");
    }
    let adjacency = graph.normalized_adjacency();
    for i in 0..wanted {
        let v = pairs.vector(i);
        let mut image = vec![0.0; v.len()];
        adjacency.apply(v, &mut image);
        let left = v.iter().zip(&image).map(|(v, image)| (v - image - pairs.values[i] * v).powi(2)).sum::<f64>();
        assert!(left.sqrt() < 1e-8, "pair {i} leaves {left:e}");
        for j in 0..=i {
            let product: f64 = v.iter().zip(pairs.vector(j)).map(|(a, b)| a * b).sum();
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-10, "{i} and {j}: {product}");
        }
    }
}

#[test]
fn eigenpairs_are_those_of_the_dense_matrix() {
    for (seed, edges) in [(1, 250), (2, 120), (3, 900)] {
        // A space of 40 vectors makes it restart; without a size the space is complete.
        check(&random_graph(100, edges, seed), 12, &LanczosOptions { subspace: Some(40), ..LanczosOptions::default() });
        check(&random_graph(100, edges, seed), 60, &LanczosOptions::default());
    }
}

#[test]
fn forty_components_have_forty_zeros_and_what_comes_after_them_is_found_with_its_multiplicity() {
    // Forty rings of five: every other eigenvalue has a multiplicity of eighty.
    let ring = |c: u32| (0..5).map(move |i| (5 * c + i, 5 * c + (i + 1) % 5, 1.0));
    let graph = WeightedGraph::new(200, (0..40).flat_map(ring)).unwrap();
    let pairs = smallest_of_laplacian(&graph, 64, &LanczosOptions::default()).unwrap();
    assert_eq!(pairs.values.iter().filter(|value| **value == 0.0).count(), 40);
    let next = 1.0 - (2.0 * std::f64::consts::PI / 5.0).cos();
    assert!(pairs.values[40..].iter().all(|value| (value - next).abs() < 1e-10), "{:?}", &pairs.values[40..]);
    check(&graph, 64, &LanczosOptions::default());
}

#[test]
fn thousands_of_components_and_isolated_nodes_take_no_iteration() {
    let graph = WeightedGraph::new(9_000, (0..4_000).map(|pair| (2 * pair, 2 * pair + 1, 1.0))).unwrap();
    let pairs = smallest_of_laplacian(&graph, 100, &LanczosOptions::default()).unwrap();
    assert!(pairs.values.iter().all(|value| *value == 0.0));
    assert_eq!(pairs.restarts, 0);
    let few = WeightedGraph::new(5, [(0, 1, 2.0)]).unwrap();
    let pairs = smallest_of_laplacian(&few, 5, &LanczosOptions::default()).unwrap();
    assert!(
        pairs.values.iter().zip([0.0, 1.0, 1.0, 1.0, 2.0]).all(|(a, b)| (a - b).abs() < 1e-12),
        "{:?}",
        pairs.values
    );
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_the_same_values() {
    let graph = random_graph(400, 1200, 7);
    let with = |seed| smallest_of_laplacian(&graph, 20, &LanczosOptions { seed, ..LanczosOptions::default() }).unwrap();
    assert_eq!(with(0), with(0));
    assert!(with(0).values.iter().zip(with(1).values).all(|(a, b)| (a - b).abs() < 1e-10));
}

#[test]
fn what_cannot_be_is_refused_with_what_is_wrong() {
    let told = |error: SpectrumError| error.to_string();
    assert_eq!(
        told(WeightedGraph::new(3, [(0, 1, 1.0), (0, 3, 1.0)]).unwrap_err()),
        "edge 1 joins 0 and 3, but the nodes are 0..3"
    );
    assert!(told(WeightedGraph::new(3, [(0, 1, f64::NAN)]).unwrap_err()).contains("edge 0 has weight NaN"));
    let graph = random_graph(400, 1200, 7);
    let wanted = smallest_of_laplacian(&graph, 401, &LanczosOptions::default()).unwrap_err();
    assert_eq!(told(wanted), "401 eigenpairs are wanted of a space of 400 dimensions");
    let impatient = LanczosOptions { restarts: 0, ..LanczosOptions::default() };
    assert!(matches!(smallest_of_laplacian(&graph, 20, &impatient), Err(SpectrumError::NotConverged { .. })));
}

#[test]
fn numbers_that_are_none_are_an_error() {
    struct Broken;
    impl SymmetricOperator for Broken {
        fn dimension(&self) -> usize {
            8
        }
        fn apply(&self, _: &[f64], image: &mut [f64]) {
            image.fill(f64::NAN);
        }
    }
    assert_eq!(largest(&Broken, 2, &LanczosOptions::default()), Err(SpectrumError::NotFinite));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn of_any_graph_components_cover_it_and_rows_are_symmetric(
        edges in proptest::collection::vec((0_u32..30, 0_u32..30, 0.1_f64..4.0), 0..60),
    ) {
        let graph = WeightedGraph::new(30, edges).unwrap();
        let components = graph.components();
        prop_assert_eq!(components.sizes().iter().sum::<usize>(), 30);
        let adjacency: &SparseSymmetric = graph.adjacency();
        for node in 0..30 {
            for (other, weight) in graph.neighbours(node) {
                prop_assert_eq!(components.of_node(node), components.of_node(other as usize));
                let back = adjacency.row(other as usize).find(|entry| entry.0 as usize == node).map(|entry| entry.1);
                prop_assert_eq!(back, Some(weight));
            }
        }
        let pairs = smallest_of_laplacian(&graph, 30, &LanczosOptions::default()).unwrap();
        let exact = dense_spectrum(&graph);
        prop_assert!(pairs.values.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-9), "{:?} {:?}", pairs.values, exact);
    }
}
