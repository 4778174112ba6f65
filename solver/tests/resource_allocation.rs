//! The first experiment of Watanabe and Sakurama: twenty nodes share four budgets, over cliques that overlap.
#![allow(missing_docs, clippy::unwrap_used)]

use mingle_solver::experiments::{BUDGETS, SharedBudgets};
use mingle_solver::{CliqueCost, Constraint, Descent, Metric, Quadratic, Smooth, SolverNode, solve};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

struct Instance(SharedBudgets);

impl Instance {
    fn random(seed: u64) -> Self {
        Self(SharedBudgets::random(seed))
    }

    /// The solution from its dual: `x_i = max(0, wish_i + sum of the prices of its budgets)`. The costs of the cliques are constant
    /// where the budgets hold. One price after the other is set so that its budget holds, until all do.
    fn reference(&self) -> (Vec<f64>, [f64; 4]) {
        let mut prices = [0.0; 4];
        let x = |prices: &[f64; 4], node: usize| {
            let paid = (0..4).filter(|&clique| self.0.cliques[clique].members.contains(&node));
            (self.0.wishes[node] + paid.map(|clique| prices[clique]).sum::<f64>()).max(0.0)
        };
        for _ in 0..20_000 {
            for clique in 0..4 {
                let sum = |price: f64| {
                    let mut prices = prices;
                    prices[clique] = price;
                    self.0.cliques[clique].members.iter().map(|&node| x(&prices, node)).sum::<f64>()
                };
                let (mut low, mut high) = (-50.0, 50.0);
                while high - low > 1e-15 * (1.0 + f64::abs(low))
                    && f64::midpoint(low, high) != low
                    && f64::midpoint(low, high) != high
                {
                    let middle = f64::midpoint(low, high);
                    if sum(middle) < BUDGETS[clique] { low = middle } else { high = middle }
                }
                prices[clique] = f64::midpoint(low, high);
            }
            let misses = |clique: usize| {
                let sum: f64 = self.0.cliques[clique].members.iter().map(|&node| x(&prices, node)).sum();
                (sum - BUDGETS[clique]).abs()
            };
            if (0..4).all(|clique| misses(clique) < 1e-13) {
                break;
            }
        }
        ((0..20).map(|node| x(&prices, node)).collect(), prices)
    }

    /// The prices that nodes pay for the budgets, besides what the costs of the cliques make of them.
    fn found_prices(&self, metric: Metric) -> [f64; 4] {
        let mut nodes = solve::clique_nodes(self.0.terms(), &self.0.cliques, 0.6, metric);
        (0..400).for_each(|_| solve::clique_iteration(&mut nodes).unwrap());
        let messages = nodes.iter_mut().enumerate().map(|(node, state)| (node, state.message())).collect();
        let mut prices = [f64::NAN; 4];
        let mut cost = 0.0;
        for (node, state) in nodes.iter().enumerate() {
            let found = state.optimality(&messages).unwrap();
            assert!(found.stationarity < 1e-10 && found.violation < 1e-10, "{found:?}");
            let cliques = (0..4).filter(|&clique| self.0.cliques[clique].members.contains(&node));
            for (clique, price) in cliques.zip(found.prices) {
                let CliqueCost::Mean { weight, target } = self.0.cliques[clique].cost else { continue };
                let members = self.0.cliques[clique].members.len() as f64;
                prices[clique] = price - weight * (BUDGETS[clique] / members - target) / members;
            }
            cost += state.cost(&messages).unwrap();
        }
        let solution: Vec<f64> = nodes.iter().map(|node| node.solution()[0]).collect();
        assert!((cost - self.0.objective(&solution)).abs() < 1e-10);
        prices
    }

    /// Iterations until the objective is this share off that of the reference, and how far the solution is off much later.
    fn iterations(&self, step: f64, metric: Metric, share: f64) -> (usize, f64) {
        let (reference, _) = self.reference();
        let least = self.0.objective(&reference);
        let mut nodes = solve::clique_nodes(self.0.terms(), &self.0.cliques, step, metric);
        let (mut reached, mut off) = (None, f64::INFINITY);
        for iteration in 1..=400 {
            solve::clique_iteration(&mut nodes).unwrap();
            let solution: Vec<f64> = nodes.iter().map(|node| node.solution()[0]).collect();
            let is_close = (self.0.objective(&solution) - least).abs() <= share * least;
            reached = if is_close { reached.or(Some(iteration)) } else { None };
            off = solution.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        }
        (reached.unwrap(), off)
    }
}

/// In `[0, 1)`.
fn uniform(dice: &mut ChaCha8Rng) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn budgets_are_shared_as_the_dual_says_in_both_metrics() {
    let mut counts = [const { Vec::new() }; 3];
    for seed in 0..10 {
        let instance = Instance::random(seed);
        let settings = [(0.5, Metric::Identity), (1.0 / 1.2, Metric::Identity), (0.625, Metric::Memberships)];
        for ((step, metric), counts) in settings.into_iter().zip(&mut counts) {
            assert!(step < solve::largest_clique_step(&[1.0; 20], &instance.0.cliques, metric));
            let (iterations, off) = instance.iterations(step, metric, 1e-8);
            assert!(off < 1e-8, "seed {seed}, {metric:?}: {off}");
            counts.push(iterations);
        }
    }
    println!("{counts:?}");
    let [paper, recommended, weighted] = counts.map(median);
    assert!(paper <= 62 && recommended < paper && weighted < paper, "{paper} {recommended} {weighted}");
}

/// The distance from where it settles, after so many iterations with a fixed step.
fn projected(instance: &Instance, descent: Descent, iterations: usize, settled: &[f64]) -> f64 {
    let mut nodes = solve::projected_nodes(instance.0.smooth(), &instance.0.cliques, descent);
    (0..iterations).for_each(|_| solve::projected_iteration(&mut nodes, 0.02).unwrap());
    nodes.iter().zip(settled).map(|(node, x)| (node.solution()[0] - x).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn momentum_forwards_helps_projected_descent_and_a_fixed_step_settles_near_the_solution() {
    for seed in 0..5 {
        let instance = Instance::random(seed);
        let mut nodes = solve::projected_nodes(instance.0.smooth(), &instance.0.cliques, Descent::Plain);
        (0..20_000).for_each(|_| solve::projected_iteration(&mut nodes, 0.02).unwrap());
        assert!(nodes.iter().all(|node| node.moved() < 1e-13));
        let settled: Vec<f64> = nodes.iter().map(|node| node.solution()[0]).collect();
        for iterations in [50, 200] {
            let [plain, accelerated] = [Descent::Plain, Descent::Accelerated]
                .map(|descent| projected(&instance, descent, iterations, &settled));
            assert!(accelerated < plain / 3.0, "seed {seed}, {iterations}: {plain} {accelerated}");
        }
        for clique in &instance.0.cliques {
            let Constraint::Sum(budget) = clique.constraint else { continue };
            let sum: f64 = clique.members.iter().map(|&node| settled[node]).sum();
            assert!((sum - budget).abs() < 0.5, "seed {seed}: {sum} for {budget}");
        }
    }
}

/// `T x`, by one iteration without a gradient.
fn averaged_projection(instance: &Instance, x: &[f64]) -> Vec<f64> {
    let centers = x.iter().map(|&x| Box::new(Quadratic { weight: 1.0, center: vec![x] }) as Box<dyn Smooth>);
    let mut nodes = solve::projected_nodes(centers.collect(), &instance.0.cliques, Descent::Plain);
    // From zero, a whole step down this gradient is x.
    solve::projected_iteration(&mut nodes, 1.0).unwrap();
    nodes.iter().map(|node| node.solution()[0]).collect()
}

#[test]
fn averaged_projections_are_firmly_nonexpansive() {
    let (instance, mut dice) = (Instance::random(1), ChaCha8Rng::seed_from_u64(9));
    for _ in 0..100 {
        let mut point = || (0..20).map(|_| 6.0 * uniform(&mut dice) - 3.0).collect::<Vec<f64>>();
        let (a, b) = (point(), point());
        let (to_a, to_b) = (averaged_projection(&instance, &a), averaged_projection(&instance, &b));
        let product = |u: &dyn Fn(usize) -> f64, v: &dyn Fn(usize) -> f64| (0..20).map(|at| u(at) * v(at)).sum::<f64>();
        let (before, after) = (|at: usize| a[at] - b[at], |at: usize| to_a[at] - to_b[at]);
        assert!(product(&after, &after) <= product(&after, &before) + 1e-12);
    }
}

#[test]
fn the_prices_of_budgets_are_those_of_the_dual() {
    for seed in 0..4 {
        let instance = Instance::random(seed);
        let (_, expected) = instance.reference();
        for metric in [Metric::Identity, Metric::Memberships] {
            let found = instance.found_prices(metric);
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-8, "seed {seed}, {metric:?}: {found:?} {expected:?}");
        }
    }
}
