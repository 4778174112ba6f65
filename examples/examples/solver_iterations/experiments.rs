//! The experiments: each gives a curve for every method that it compares.

use mingle_home::error::Context;
use mingle_home::{ErrorKind, Result};
use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_solver::{DistanceMetric, Mixing, NidsNode, SolverNode};
use mingle_solving::symmetric_rows;

use super::in_one_process::{clique_iteration, clique_nodes, mixed_iteration};
use super::problems::{BUDGETS, SharedBudgets, SharedModel};

/// Nodes, variables, disturbance and weight of the second experiment.
const SHARED_MODEL: (usize, usize, f64, f64) = (50, 10, 0.05, 1e-3);
/// The mixing matrices that the second experiment compares.
const METHODS: [Method; 5] =
    [Method::CliquePhi, Method::ScaledLaplacian, Method::EdgePhi, Method::LazyMetropolis, Method::LazyLaplacian];
/// The least number of iterations that are drawn; no method needs twice as many.
pub(super) const DRAWN: usize = 150;
const MOST_ITERATIONS: usize = 2_000;
/// The relative distances of the objective from the least at which a method has converged, for each experiment.
pub(super) const TARGETS: (f64, f64) = (1e-8, 1e-10);
/// The least distance that is shown: below it there is only rounding.
const FLOOR: f64 = 1e-14;

/// A method, and the relative distance of its objective from the least after each iteration.
pub(super) struct Curve {
    pub(super) name: String,
    /// The error as the paper measures it: `| F(x) - F* | / F*`, each node's terms at that node's own values.
    pub(super) own: Vec<f64>,
    /// The error of the whole objective at the model of the worst node; `None` where nodes have no common model.
    pub(super) worst: Option<Vec<f64>>,
}

impl Curve {
    pub(super) fn of_budgets(name: impl Into<String>, own: Vec<f64>) -> Self {
        Self { name: name.into(), own, worst: None }
    }

    /// The values that are drawn.
    pub(super) fn drawn(&self) -> &[f64] {
        self.worst.as_ref().unwrap_or(&self.own)
    }
}

/// The first experiment.
pub(super) fn shared_budgets(seed: u64) -> Vec<Curve> {
    let problem = SharedBudgets::random(seed);
    let least =
        problem.objective(&budgets_after(&problem, 0.625, DistanceMetric::Memberships, MOST_ITERATIONS, |_| {}));
    let splitting = |step: f64, metric: DistanceMetric| {
        let mut curve = Vec::new();
        budgets_after(&problem, step, metric, DRAWN, |x| curve.push(distance(problem.objective(x), least)));
        curve
    };
    let mut curves = vec![
        Curve::of_budgets("weighted splitting, step 0.625", splitting(0.625, DistanceMetric::Memberships)),
        Curve::of_budgets("splitting, step 0.83", splitting(1.0 / 1.2, DistanceMetric::Identity)),
        Curve::of_budgets("splitting, step 0.5 (the paper's)", splitting(0.5, DistanceMetric::Identity)),
    ];
    for step in [0.09, 0.1] {
        curves
            .push(Curve::of_budgets(format!("primal-dual gradient, step {step}"), primal_dual(&problem, step, least)));
    }
    curves
}

/// The values of the splitting after this many iterations; `watch` is called with those of each.
fn budgets_after(
    problem: &SharedBudgets,
    step: f64,
    metric: DistanceMetric,
    iterations: usize,
    mut watch: impl FnMut(&[f64]),
) -> Vec<f64> {
    let mut nodes = clique_nodes(problem.terms(), &problem.cliques, step, metric);
    let mut x = Vec::new();
    for _ in 0..iterations {
        // All cliques have existing nodes as members.
        let _ = clique_iteration(&mut nodes);
        x = nodes.iter().map(|node| node.solution()[0]).collect();
        watch(&x);
    }
    x
}

/// The primal-dual gradient method, an alternative to the splitting: descends along the gradient of the Lagrangian, and
/// ascends along the prices of the budgets (Arrow, Hurwicz and Uzawa).
fn primal_dual(problem: &SharedBudgets, step: f64, least: f64) -> Vec<f64> {
    let (mut x, mut prices) = (vec![0.0; problem.wishes.len()], vec![0.0; problem.cliques.len()]);
    let iteration = |_| {
        let mut gradient: Vec<f64> = x.iter().zip(&problem.wishes).map(|(x, wish)| x - wish).collect();
        for (clique, price) in problem.cliques.iter().zip(&prices) {
            let numbers: Vec<&[f64]> = clique.members.iter().map(|&node| &x[node..=node]).collect();
            let slopes = clique.gradient(&numbers);
            clique.members.iter().zip(slopes).for_each(|(&node, slope)| gradient[node] += slope[0] + price);
        }
        x.iter_mut().zip(&gradient).for_each(|(x, gradient)| *x = (*x - step * gradient).max(0.0));
        for ((clique, price), budget) in problem.cliques.iter().zip(&mut prices).zip(BUDGETS) {
            *price += step * (clique.members.iter().map(|&node| x[node]).sum::<f64>() - budget);
        }
        distance(problem.objective(&x), least)
    };
    (0..DRAWN).map(iteration).collect()
}

/// The second experiment.
pub(super) fn shared_model(topology: &str, seed: u64) -> Result<Vec<Curve>> {
    let (nodes, variables, scale, weight) = SHARED_MODEL;
    let spec = format!("{topology},seed={seed}");
    let topology = Topology::generate(&spec).context(ErrorKind::BadInput, format!("--topology {spec}"))?;
    let problem = SharedModel::random(nodes, variables, scale, weight, seed);
    let least = problem.least();
    let curve = |method: Method| {
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let plan = mingle_planner::design(&topology, method, &options).context(ErrorKind::BadInput, method)?;
        let rows = symmetric_rows(&plan).unwrap_or_default();
        let mixing = Mixing::new(rows).context(ErrorKind::Unexpected, method)?;
        let mut nodes: Vec<NidsNode> = problem.terms().map(|terms| NidsNode::new(terms, problem.step())).collect();
        let (mut own, mut worst) = (Vec::new(), Vec::new());
        let is_above = |errors: &[f64]| errors.last() > Some(&TARGETS.1);
        while own.len() < DRAWN || (own.len() < MOST_ITERATIONS && (is_above(&own) || is_above(&worst))) {
            mixed_iteration(&mut nodes, &mixing);
            let models = || nodes.iter().map(SolverNode::solution);
            own.push(problem.own_error(least, models()).max(FLOOR));
            worst.push(problem.error(least, models()).max(FLOOR));
        }
        Ok(Curve { name: method.to_string(), own, worst: Some(worst) })
    };
    METHODS.into_iter().map(curve).collect()
}

fn distance(objective: f64, least: f64) -> f64 {
    ((objective - least) / least).abs().max(FLOOR)
}
