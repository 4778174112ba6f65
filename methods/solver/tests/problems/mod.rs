//! The problems of the two experiments of Watanabe and Sakurama (\[WS\], section 6), for tests and measurements of
//! convergence.
#![allow(dead_code)] // not every suite uses both

use std::sync::Arc;

use mingle_solver::{
    CliqueTerm, ConsensusTerms, L1, LeastSquares, MeanCost, Nonnegative, Nonsmooth, Quadratic, Smooth, SumTo, solve,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The budgets of the four cliques of the first experiment.
pub(crate) const BUDGETS: [f64; 4] = [5.0, 10.0, 5.0, 15.0];

/// The first experiment: twenty nodes share four budgets, over cliques that overlap.
pub(crate) struct SharedBudgets {
    /// The preferred number of each node.
    pub(crate) wishes: Vec<f64>,
    /// The preferred mean of the members of each clique.
    pub(crate) targets: Vec<f64>,
    /// The cliques, with their budgets and costs.
    pub(crate) cliques: Vec<CliqueTerm>,
}

fn members() -> [Vec<usize>; 4] {
    let all = |first: usize, last: usize| (first - 1..last).collect::<Vec<_>>();
    [all(1, 6), all(5, 9), all(8, 12), [all(9, 10), all(13, 20)].concat()]
}

impl SharedBudgets {
    /// The experiment with preferences of nodes and cliques drawn uniformly.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let members = members();
        let memberships = |node: usize| members.iter().filter(|clique| clique.contains(&node)).count();
        let targets: Vec<f64> = BUDGETS.iter().map(|_| uniform(&mut dice) * 5.0).collect();
        let term = |((clique, budget), &target): ((&Vec<usize>, f64), &f64)| CliqueTerm {
            members: clique.clone(),
            memberships: clique.iter().map(|&node| memberships(node)).collect(),
            cost: Some(Arc::new(MeanCost { weight: 1.0, target: vec![target] })),
            coupling: Some(Arc::new(SumTo(vec![budget]))),
        };
        let cliques = members.iter().zip(BUDGETS).zip(&targets).map(term).collect();
        Self { wishes: (0..20).map(|_| uniform(&mut dice)).collect(), targets, cliques }
    }

    /// The terms of each node.
    pub(crate) fn terms(&self) -> Vec<ConsensusTerms> {
        let smooth = self.smooth().into_iter();
        smooth.map(|smooth| ConsensusTerms { smooth, nonsmooth: Box::new(Nonnegative) }).collect()
    }

    /// The smooth term of each node.
    pub(crate) fn smooth(&self) -> Vec<Box<dyn Smooth>> {
        let term = |&wish: &f64| Box::new(Quadratic { weight: 1.0, center: vec![wish] }) as Box<dyn Smooth>;
        self.wishes.iter().map(term).collect()
    }

    /// The costs of all nodes and cliques.
    pub(crate) fn objective(&self, x: &[f64]) -> f64 {
        let own: f64 = x.iter().zip(&self.wishes).map(|(x, wish)| (x - wish).powi(2) / 2.0).sum();
        let costs = self.cliques.iter().zip(&self.targets).map(|(clique, target)| {
            let mean = clique.members.iter().map(|&node| x[node]).sum::<f64>() / clique.members.len() as f64;
            (mean - target).powi(2) / 2.0
        });
        own + costs.sum::<f64>()
    }
}

/// The second experiment: `min sum_i 1/2 || A_i x - b_i ||^2 + weight || x ||_1` over nodes that hold `A_i = I + scale Omega_i`
/// and `b_i`, with entries of the standard normal distribution.
pub(crate) struct SharedModel {
    parts: Vec<LeastSquares>,
    weight: f64,
}

impl SharedModel {
    /// The experiment with this many nodes and variables.
    pub(crate) fn random(nodes: usize, variables: usize, scale: f64, weight: f64, seed: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let part = |dice: &mut ChaCha8Rng| {
            let entry = |at: usize| f64::from(u8::from(at.is_multiple_of(variables + 1)));
            let matrix = (0..variables * variables).map(|at| entry(at) + scale * normal(dice)).collect();
            LeastSquares::new(variables, matrix, (0..variables).map(|_| normal(dice)).collect())
        };
        Self { parts: (0..nodes).map(|_| part(&mut dice)).collect(), weight }
    }

    /// The terms of each node.
    pub(crate) fn terms(&self) -> impl Iterator<Item = ConsensusTerms> {
        self.parts.iter().map(|part| ConsensusTerms {
            smooth: Box::new(part.clone()),
            nonsmooth: Box::new(L1 { weight: self.weight }),
        })
    }

    /// The inverse of the largest Lipschitz constant of all nodes.
    pub(crate) fn step(&self) -> f64 {
        1.0 / self.parts.iter().map(Smooth::smoothness).fold(0.0, f64::max)
    }

    /// The objective of all nodes at one model.
    pub(crate) fn objective(&self, x: &[f64]) -> f64 {
        let nonsmooth = L1 { weight: self.weight }.value(x) * self.parts.len() as f64;
        self.parts.iter().map(|part| part.value(x)).sum::<f64>() + nonsmooth
    }

    /// The least objective, computed from all parts in one place.
    pub(crate) fn least(&self) -> f64 {
        let nonsmooth = L1 { weight: self.weight * self.parts.len() as f64 };
        let (x, _) = solve::alone(&Together(&self.parts), &nonsmooth, 1e-14, 3_000);
        self.objective(&x)
    }

    /// `| F(x) - F* | / F*` as \[WS\] measure it (figure 5): each node's own terms at its own model, so differences of
    /// the models count to first order. The models are by node.
    pub(crate) fn own_error<'a>(&self, least: f64, models: impl Iterator<Item = &'a [f64]>) -> f64 {
        let penalty = L1 { weight: self.weight };
        let own = self.parts.iter().zip(models).map(|(part, model)| part.value(model) + penalty.value(model));
        ((own.sum::<f64>() - least) / least).abs()
    }

    /// The relative error of the objective of all at the worst node's model: the loss of a user of that model. It falls
    /// with the square of the distance from the solution.
    pub(crate) fn error<'a>(&self, least: f64, models: impl Iterator<Item = &'a [f64]>) -> f64 {
        models.map(|model| ((self.objective(model) - least) / least).abs()).fold(0.0, f64::max)
    }
}

/// The sum of the parts.
struct Together<'a>(&'a [LeastSquares]);

impl Smooth for Together<'_> {
    fn dimension(&self) -> usize {
        self.0.first().map_or(0, Smooth::dimension)
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.0.iter().map(|part| part.value(x)).sum()
    }

    fn gradient(&self, x: &[f64], gradient: &mut [f64]) {
        gradient.fill(0.0);
        let mut one = vec![0.0; x.len()];
        for part in self.0 {
            part.gradient(x, &mut one);
            gradient.iter_mut().zip(&one).for_each(|(sum, one)| *sum += one);
        }
    }

    fn smoothness(&self) -> f64 {
        self.0.iter().map(Smooth::smoothness).sum()
    }
}

/// A uniform number in `[0, 1)`.
fn uniform(dice: &mut ChaCha8Rng) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number of the standard normal distribution (Box and Muller).
fn normal(dice: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || ((dice.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}
