//! Couplings of cliques beyond budgets and equality, and one that a user wrote.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_solver::{
    CliqueCost, CliqueCoupling, CliqueMessage, CliqueNode, CliqueTerm, DistanceMetric, Formation, FormationCost,
    NetworkLasso, Preference, SolverNode, SumTo, Within,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

mod in_one_process;

use in_one_process::{clique_iteration, clique_nodes};

const METRICS: [DistanceMetric; 2] = [DistanceMetric::Identity, DistanceMetric::Memberships];

/// A problem: what nodes wish for, by component, and their cliques.
struct Posed {
    preferences: Vec<Vec<Preference>>,
    cliques: Vec<CliqueTerm>,
}

type Coupled = (Vec<usize>, Option<Arc<dyn CliqueCost>>, Option<Arc<dyn CliqueCoupling>>);

fn wish(wishes: &[f64]) -> Vec<Preference> {
    let free = Preference { lower: f64::NEG_INFINITY, ..Preference::default() };
    wishes.iter().map(|&wish| Preference { wish, ..free }).collect()
}

impl Posed {
    fn new(preferences: Vec<Vec<Preference>>, cliques: Vec<Coupled>) -> Self {
        let memberships = |node: &usize| cliques.iter().filter(|(members, ..)| members.contains(node)).count();
        let memberships: Vec<Vec<usize>> =
            cliques.iter().map(|(members, ..)| members.iter().map(memberships).collect()).collect();
        let term = |((members, cost, coupling), memberships)| CliqueTerm { members, memberships, cost, coupling };
        Self { preferences, cliques: cliques.into_iter().zip(memberships).map(term).collect() }
    }

    fn chain(wishes: &[f64], coupling: &Arc<dyn CliqueCoupling>) -> Self {
        let links = (1..wishes.len()).map(|node| (vec![node - 1, node], None, Some(Arc::clone(coupling))));
        Self::new(wishes.iter().map(|&one| wish(&[one])).collect(), links.collect())
    }

    /// The solution, certified: nothing is left of the optimality conditions, and nodes that take part in the sum of
    /// costs find the objective.
    fn solve(&self, metric: DistanceMetric) -> Vec<Vec<f64>> {
        let own = self.preferences.iter().map(|components| Preference::terms_of(components)).collect();
        let memberships = |node: usize| self.cliques.iter().filter(|clique| clique.members.contains(&node)).count();
        let smoothness = (0..self.preferences.len()).map(|node| metric.own_smoothness(1.0, memberships(node)));
        let coupled = self.cliques.iter().map(|clique| metric.cost_smoothness(clique)).fold(0.0, f64::max);
        let step = 1.0 / (smoothness.fold(0.0, f64::max) + coupled);
        let mut nodes = clique_nodes(own, &self.cliques, step, metric);
        (0..4_000).for_each(|_| clique_iteration(&mut nodes).unwrap());
        let said: BTreeMap<usize, CliqueMessage> =
            nodes.iter_mut().enumerate().map(|(node, state)| (node, state.message())).collect();
        let x: Vec<Vec<f64>> = nodes.iter().map(|node| node.solution().to_vec()).collect();
        let taken: Vec<_> = nodes.iter().map(|node| node.multipliers(&said).unwrap()).collect();
        for (node, state) in nodes.iter().enumerate() {
            let found = state.optimality(&said, &self.multipliers_of(node, &taken)).unwrap();
            assert!(found.stationarity < 1e-9 && found.violation < 1e-9, "{metric:?}, node {node}: {found:?}");
        }
        let cost: f64 = nodes.iter().map(|node: &CliqueNode| node.cost(&said).unwrap()).sum();
        assert!((cost - self.objective(&x).unwrap()).abs() < 1e-9, "{metric:?}: {cost}");
        x
    }

    /// The multipliers of the members of each of a node's cliques, from those of each node for its own cliques.
    fn multipliers_of(&self, node: usize, taken: &[Vec<Vec<f64>>]) -> Vec<Vec<Vec<f64>>> {
        let cliques = self.cliques.iter().enumerate().filter(|(_, clique)| clique.members.contains(&node));
        let place = |at: usize, member: usize| {
            self.cliques[..at].iter().filter(|earlier| earlier.members.contains(&member)).count()
        };
        let of = |(at, clique): (usize, &CliqueTerm)| {
            clique.members.iter().map(|&member| taken[member][place(at, member)].clone()).collect()
        };
        cliques.map(of).collect()
    }

    /// The objective, computed in one place; none where a constraint is missed.
    fn objective(&self, x: &[Vec<f64>]) -> Option<f64> {
        let square = |(x, wish): (&f64, &Preference)| (x - wish.wish).powi(2) / 2.0;
        let of_node = |(x, wishes): (&Vec<f64>, &Vec<Preference>)| x.iter().zip(wishes).map(square).sum::<f64>();
        let mut sum: f64 = x.iter().zip(&self.preferences).map(of_node).sum();
        for clique in &self.cliques {
            let members: Vec<&[f64]> = clique.members.iter().map(|&node| x[node].as_slice()).collect();
            if clique.violation(&members) > 1e-8 {
                return None;
            }
            sum += clique.cost.as_ref().map_or(0.0, |cost| cost.value(&members));
            sum += clique.coupling.as_ref().map_or(0.0, |coupling| coupling.value(&members));
        }
        Some(sum)
    }

    /// Checks that no point near the solution that keeps the constraints is better.
    fn check_best(&self, x: &[Vec<f64>]) {
        let least = self.objective(x).unwrap();
        let mut dice = ChaCha8Rng::seed_from_u64(4);
        let mut tried = 0;
        for _ in 0..4_000 {
            let mut other = x.to_vec();
            let moved = dice.next_u64();
            for (at, x) in other.iter_mut().flatten().enumerate() {
                let uniform = (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                *x += if moved >> (at % 64) & 1 == 1 { 0.2 * (uniform - 0.5) } else { 0.0 };
            }
            if let Some(value) = self.objective(&other) {
                tried += 1;
                assert!(value >= least - 1e-9, "{value} below {least} at {other:?}");
            }
        }
        assert!(tried > 100, "{tried} points kept the constraints");
    }
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn a_network_lasso_draws_near_nodes_together_until_they_are_equal() {
    for metric in METRICS {
        // Two nodes: each moves by the weight, until they meet in the middle.
        for (weight, expected) in [(0.5, [0.5, 2.5]), (1.0, [1.0, 2.0]), (4.0, [1.5, 1.5])] {
            let lasso: Arc<dyn CliqueCoupling> = Arc::new(NetworkLasso { weight });
            let found = Posed::chain(&[0.0, 3.0], &lasso).solve(metric).concat();
            assert!(apart(&found, &expected) < 1e-9, "{metric:?}, {weight}: {found:?}");
        }
        // Six nodes of two clusters: equal within each, apart between them.
        let lasso: Arc<dyn CliqueCoupling> = Arc::new(NetworkLasso { weight: 0.4 });
        let posed = Posed::chain(&[0.1, -0.1, 0.0, 5.0, 5.2, 4.8], &lasso);
        let found = posed.solve(metric);
        posed.check_best(&found);
        let found = found.concat();
        assert!(found[..3].iter().all(|x| (x - 0.4 / 3.0).abs() < 1e-9), "{found:?}");
        assert!(found[3..].iter().all(|x| (x - (5.0 - 0.4 / 3.0)).abs() < 1e-9), "{found:?}");
    }
}

#[test]
fn a_formation_is_kept_exactly_or_as_well_as_the_members_want() {
    let offsets = vec![vec![0.0, 0.0], vec![-1.0, -1.0], vec![1.0, -1.0]];
    let wishes = || vec![wish(&[3.0, 4.0]), wish(&[0.0, 0.0]), wish(&[5.0, 1.0])];
    for metric in METRICS {
        let rigid: Arc<dyn CliqueCoupling> = Arc::new(Formation { offsets: offsets.clone() });
        let found = Posed::new(wishes(), vec![(vec![0, 1, 2], None, Some(rigid))]).solve(metric);
        // The centre of a formation that is kept exactly is that of the wishes.
        let center = [(3.0 + 1.0 + 4.0) / 3.0, (4.0 + 1.0 + 2.0) / 3.0];
        for (x, offset) in found.iter().zip(&offsets) {
            assert!(apart(x, &[center[0] + offset[0], center[1] + offset[1]]) < 1e-9, "{metric:?}: {found:?}");
        }
        let soft: Arc<dyn CliqueCost> = Arc::new(FormationCost { weight: 2.0, offsets: offsets.clone() });
        let posed = Posed::new(wishes(), vec![(vec![0, 1, 2], Some(soft), None)]);
        let found = posed.solve(metric);
        posed.check_best(&found);
    }
}

#[test]
fn budgets_of_several_components_and_distances_bind_together() {
    // Two teams share two resources, and a node that is in both may not be far from its neighbour.
    let cliques: Vec<Coupled> = vec![
        (vec![0, 1, 2], None, Some(Arc::new(SumTo(vec![6.0, 3.0])))),
        (vec![2, 3], None, Some(Arc::new(SumTo(vec![2.0, -1.0])))),
        (vec![2, 3], None, Some(Arc::new(Within { distance: 0.5 }))),
    ];
    let wishes = vec![wish(&[1.0, 0.0]), wish(&[2.0, 1.0]), wish(&[4.0, 0.0]), wish(&[0.0, 3.0])];
    for metric in METRICS {
        let found = Posed::new(wishes.clone(), cliques.clone()).solve(metric);
        let sum = |nodes: &[usize], at: usize| nodes.iter().map(|&node| found[node][at]).sum::<f64>();
        let budgets = [sum(&[0, 1, 2], 0), sum(&[0, 1, 2], 1), sum(&[2, 3], 0), sum(&[2, 3], 1)];
        assert!(apart(&budgets, &[6.0, 3.0, 2.0, -1.0]) < 1e-9, "{budgets:?}");
        // Without the bound they would be further apart.
        assert!((apart(&found[2], &found[3]) - 0.5).abs() < 1e-9, "{metric:?}: {found:?}");
    }
}

/// A coupling that this crate does not have: the second difference of three members is zero, so that they are on a line.
#[derive(Debug)]
struct OnALine;

impl OnALine {
    fn bend(x: &[impl AsRef<[f64]>], at: usize) -> f64 {
        let [first, second, third] = [0, 1, 2].map(|member| x[member].as_ref()[at]);
        first - 2.0 * second + third
    }
}

impl CliqueCoupling for OnALine {
    fn prox(&self, _: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        const NORMAL: [f64; 3] = [1.0, -2.0, 1.0];
        let length: f64 = NORMAL.iter().zip(weights).map(|(normal, weight)| weight * normal * normal).sum();
        for at in 0..v[0].len() {
            let force = Self::bend(v, at) / length;
            for ((v, normal), weight) in v.iter_mut().zip(NORMAL).zip(weights) {
                v[at] -= force * weight * normal;
            }
        }
    }

    fn violation(&self, x: &[&[f64]]) -> f64 {
        (0..x[0].len()).map(|at| Self::bend(x, at).abs()).fold(0.0, f64::max)
    }

    fn is_for(&self, members: usize, _: usize) -> bool {
        members == 3
    }
}

#[test]
fn a_coupling_of_a_user_is_solved_and_certified_like_the_others() {
    for metric in METRICS {
        let line = || Some(Arc::new(OnALine) as Arc<dyn CliqueCoupling>);
        let wishes = [0.0, 2.0, 1.0, 5.0].map(|one| wish(&[one])).to_vec();
        let found = Posed::new(wishes, vec![(vec![0, 1, 2], None, line()), (vec![1, 2, 3], None, line())]);
        let found = found.solve(metric).concat();
        // The regression line through (0, 0), (1, 2), (2, 1), (3, 5).
        let expected = [-0.1, 1.3, 2.7, 4.1];
        let mean = found.iter().sum::<f64>() / 4.0;
        assert!((mean - 2.0).abs() < 1e-9 && apart(&found, &expected) < 1e-9, "{metric:?}: {found:?}");
    }
}

#[test]
#[should_panic(expected = "is not for 1 components")]
fn a_coupling_of_two_members_is_not_taken_for_three() {
    let lasso: Arc<dyn CliqueCoupling> = Arc::new(NetworkLasso { weight: 1.0 });
    let wishes = [0.0, 1.0, 2.0].map(|one| wish(&[one])).to_vec();
    Posed::new(wishes, vec![(vec![0, 1, 2], None, Some(lasso))]).solve(DistanceMetric::Identity);
}
