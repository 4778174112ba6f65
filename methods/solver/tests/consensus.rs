//! Solvers that should be equivalent are, and they find the solution.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use mingle_solver::{
    AverageNode, CliqueTerm, ConsensusTerms, DistanceMetric, Equal, L1, LeastSquares, Mixing, NidsNode, Nothing,
    Smooth, SolverNode,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

mod in_one_process;

use in_one_process::{clique_iteration, clique_nodes, iteration, mixed_iteration};

const VARIABLES: usize = 4;
const WEIGHT: f64 = 0.02;

/// Maximal cliques of a small graph of seven nodes.
fn cliques() -> Vec<Vec<usize>> {
    vec![vec![0, 1, 2], vec![2, 3], vec![3, 4, 5], vec![4, 5, 6]]
}

fn memberships(node: usize) -> usize {
    cliques().iter().filter(|clique| clique.contains(&node)).count()
}

/// Phi by its definition, with `q_i` and the sums of their inverses.
fn phi() -> Mixing {
    let mut dense = vec![vec![0.0; 7]; 7];
    for clique in cliques() {
        let sum: f64 = clique.iter().map(|&node| 1.0 / memberships(node) as f64).sum();
        for &i in &clique {
            for &j in &clique {
                dense[i][j] += 1.0 / (memberships(i) * memberships(j)) as f64 / sum;
            }
        }
    }
    let sparse = |row: Vec<f64>| row.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0).collect();
    Mixing::new(dense.into_iter().map(sparse).collect()).unwrap()
}

fn least_squares(dice: &mut ChaCha8Rng) -> LeastSquares {
    let mut number = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    let matrix = (0..VARIABLES * VARIABLES)
        .map(|at| f64::from(u8::from(at.is_multiple_of(VARIABLES + 1))) + 0.4 * number())
        .collect();
    LeastSquares::new(VARIABLES, matrix, (0..VARIABLES).map(|_| 4.0 * number()).collect())
}

fn smooth(seed: u64) -> Vec<LeastSquares> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    (0..7).map(|_| least_squares(&mut dice)).collect()
}

fn step(smooth: &[LeastSquares]) -> f64 {
    1.0 / smooth.iter().map(Smooth::smoothness).fold(0.0, f64::max)
}

fn sparse(smooth: &[LeastSquares]) -> Vec<ConsensusTerms> {
    let term = |smooth: &LeastSquares| ConsensusTerms {
        smooth: Box::new(smooth.clone()),
        nonsmooth: Box::new(L1 { weight: WEIGHT }),
    };
    smooth.iter().map(term).collect()
}

/// The solution in one place: proximal gradient descent on the sum, long after it has converged.
fn in_one_place(smooth: &[LeastSquares]) -> Vec<f64> {
    let step = 1.0 / smooth.iter().map(Smooth::smoothness).sum::<f64>();
    let mut x = vec![0.0; VARIABLES];
    for _ in 0..5_000 {
        let mut next = x.clone();
        for part in smooth {
            let mut gradient = vec![0.0; VARIABLES];
            part.gradient(&x, &mut gradient);
            next.iter_mut().zip(gradient).for_each(|(x, gradient)| *x -= step * gradient);
        }
        let threshold = step * WEIGHT * smooth.len() as f64;
        x = next.iter().map(|x| x.signum() * (x.abs() - threshold).max(0.0)).collect();
    }
    x
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn nids_over_phi_is_the_splitting_over_cliques_that_have_to_agree() {
    let smooth = smooth(1);
    let (mixing, step) = (phi(), step(&smooth));
    let terms = |clique: Vec<usize>| CliqueTerm {
        memberships: clique.iter().map(|&node| memberships(node)).collect(),
        members: clique,
        cost: None,
        coupling: Some(Arc::new(Equal)),
    };
    let coupled: Vec<CliqueTerm> = cliques().into_iter().map(terms).collect();
    let start = |node: usize| {
        let mut gradient = vec![0.0; VARIABLES];
        smooth[node].gradient(&[0.0; VARIABLES], &mut gradient);
        gradient.iter().map(|gradient| -step * gradient).collect::<Vec<f64>>()
    };
    let split = clique_nodes(sparse(&smooth), &coupled, step, DistanceMetric::Memberships);
    let mut split: Vec<_> = split.into_iter().map(|node| node.starting_at(start)).collect();
    let mut nids: Vec<_> = sparse(&smooth).into_iter().map(|terms| NidsNode::new(terms, step)).collect();
    for iteration in 0..200 {
        clique_iteration(&mut split).unwrap();
        mixed_iteration(&mut nids, &mixing);
        for (split, nids) in split.iter().zip(&nids) {
            assert!(distance(split.solution(), nids.solution()) < 1e-12, "iteration {iteration}");
        }
    }
}

/// The points `x - step grad f(x)` of all nodes.
fn descended(smooth: &[LeastSquares], step: f64, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let of_node = |(smooth, x): (&LeastSquares, &Vec<f64>)| {
        let mut gradient = vec![0.0; VARIABLES];
        smooth.gradient(x, &mut gradient);
        x.iter().zip(gradient).map(|(x, gradient)| x - step * gradient).collect()
    };
    smooth.iter().zip(x).map(of_node).collect()
}

/// Diffusion is `x' = W (x - step grad f(x))`, and exact diffusion `v' = x - step grad f(x); x' = W (v' + x - v)`
/// (appendix E of Watanabe and Sakurama).
#[test]
fn exact_diffusion_is_nids_where_nothing_is_nonsmooth_and_diffusion_stays_off() {
    let smooth = smooth(2);
    let (mixing, step) = (phi(), step(&smooth));
    let mix = |messages: &[Vec<f64>]| (0..messages.len()).map(|node| mixing.mix(node, messages)).collect::<Vec<_>>();
    let plain =
        |smooth: &LeastSquares| ConsensusTerms { smooth: Box::new(smooth.clone()), nonsmooth: Box::new(Nothing) };
    let mut nids: Vec<_> = smooth.iter().map(|smooth| NidsNode::new(plain(smooth), step)).collect();
    let zeros = vec![vec![0.0; VARIABLES]; smooth.len()];
    let mut exact = descended(&smooth, step, &zeros);
    let mut v = exact.clone();
    let mut biased = zeros;
    for iteration in 0..400 {
        mixed_iteration(&mut nids, &mixing);
        for (exact, nids) in exact.iter().zip(&nids) {
            assert!(distance(exact, nids.solution()) < 1e-12, "iteration {iteration}");
        }
        let next = descended(&smooth, step, &exact);
        for ((exact, v), next) in exact.iter_mut().zip(&v).zip(&next) {
            exact.iter_mut().zip(v).zip(next).for_each(|((x, v), next)| *x += next - v);
        }
        exact = mix(&exact);
        v = next;
        biased = mix(&descended(&smooth, step, &biased));
    }
    assert!(distance(nids[0].solution(), nids[6].solution()) < 1e-10, "they agree");
    assert!(distance(&biased[0], nids[0].solution()) > 1e-3, "a fixed step leaves diffusion off");
}

#[test]
fn nids_and_the_form_with_one_clique_find_the_solution_of_one_place() {
    for seed in 3..6 {
        let smooth = smooth(seed);
        let (expected, step) = (in_one_place(&smooth), step(&smooth));
        let mixing = phi();
        let mut nodes: Vec<_> = sparse(&smooth).into_iter().map(|terms| NidsNode::new(terms, step)).collect();
        (0..600).for_each(|_| mixed_iteration(&mut nodes, &mixing));
        for solution in nodes.iter().map(SolverNode::solution) {
            assert!(distance(solution, &expected) < 1e-10, "seed {seed}: {solution:?} {expected:?}");
        }
        let mut nodes: Vec<_> = sparse(&smooth).into_iter().map(|terms| AverageNode::new(terms, step)).collect();
        for _ in 0..600 {
            iteration(&mut nodes, |messages| {
                let mut mean = vec![0.0; VARIABLES];
                for message in &messages {
                    mean.iter_mut().zip(message).for_each(|(mean, x)| *mean += x / messages.len() as f64);
                }
                vec![mean; messages.len()]
            });
        }
        assert!(nodes.iter().all(|node| distance(node.solution(), &expected) < 1e-10), "seed {seed}");
        assert!(nodes[0].moved() < 1e-12);
    }
}
