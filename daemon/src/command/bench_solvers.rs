//! `mingle bench solvers`: the two experiments of Watanabe and Sakurama, counted in iterations, as tables and pictures.
//!
//! Everything happens in this process, without messages: how fast the methods are depends on steps and mixing matrices alone.

use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_plot::{Horizontal, Panel, Scale, Series, Weight, line_chart};
use mingle_solver::experiments::{SharedBudgets, SharedModel};
use mingle_solver::{Constraint, Metric, Mixing, NidsNode, SolverNode, solve};
use mingle_solving::symmetric_rows;

use crate::cli::BenchSolversArgs;
use crate::{out, output_file};

/// Nodes, variables, disturbance and weight of the second experiment.
const SHARED_MODEL: (usize, usize, f64, f64) = (50, 10, 0.05, 1e-3);
/// The matrices that it compares.
const METHODS: [Method; 5] =
    [Method::CliquePhi, Method::ScaledLaplacian, Method::EdgePhi, Method::LazyMetropolis, Method::LazyLaplacian];
/// Iterations that are drawn, at least; none of the methods needs twice as many.
const DRAWN: usize = 150;
const MOST_ITERATIONS: usize = 2_000;
/// When a method counts as through: relative distances of the objective from the least.
const TARGETS: (f64, f64) = (1e-8, 1e-10);
/// Below, only rounding is seen.
const FLOOR: f64 = 1e-14;

/// A method, and the relative distance of its objective from the least after each iteration.
struct Curve {
    name: String,
    /// As the paper measures it: `| F(x) - F* | / F*`, each node's terms at what that node has.
    own: Vec<f64>,
    /// The objective of all at the model of the worst node; none where nodes have no model in common.
    worst: Option<Vec<f64>>,
}

impl Curve {
    fn of_budgets(name: impl Into<String>, own: Vec<f64>) -> Self {
        Self { name: name.into(), own, worst: None }
    }

    /// The curve that is drawn.
    fn drawn(&self) -> &[f64] {
        self.worst.as_ref().unwrap_or(&self.own)
    }
}

/// Runs both experiments.
pub(super) fn execute(arguments: &BenchSolversArgs, json: bool) -> Result {
    if let Some(folder) = &arguments.output {
        output_file::make_folder(folder)?;
    }
    let seeds = 0..u64::from(arguments.seeds);
    let budgets: Vec<Vec<Curve>> = seeds.clone().map(shared_budgets).collect();
    let models: Vec<Vec<Curve>> = seeds.map(|seed| shared_model(&arguments.topology, seed)).collect::<Result<_>>()?;
    tell("shared budgets, 20 nodes in 4 cliques", TARGETS.0, &budgets, json);
    tell(&format!("shared model, 50 nodes on {}", arguments.topology), TARGETS.1, &models, json);
    let Some(folder) = &arguments.output else { return Ok(()) };
    draw(&folder.join("solving-budgets.svg"), "Twenty nodes share four budgets", &budgets)?;
    draw(&folder.join("solving-matrices.svg"), "Fifty nodes agree on a sparse model", &models)
}

/// The first experiment.
fn shared_budgets(seed: u64) -> Vec<Curve> {
    let problem = SharedBudgets::random(seed);
    let least = problem.objective(&budgets_after(&problem, 0.625, Metric::Memberships, MOST_ITERATIONS, |_| {}));
    let splitting = |step: f64, metric: Metric| {
        let mut curve = Vec::new();
        budgets_after(&problem, step, metric, DRAWN, |x| curve.push(distance(problem.objective(x), least)));
        curve
    };
    let mut curves = vec![
        Curve::of_budgets("weighted splitting, step 0.625", splitting(0.625, Metric::Memberships)),
        Curve::of_budgets("splitting, step 0.83", splitting(1.0 / 1.2, Metric::Identity)),
        Curve::of_budgets("splitting, step 0.5 (the paper's)", splitting(0.5, Metric::Identity)),
    ];
    for step in [0.09, 0.1] {
        curves
            .push(Curve::of_budgets(format!("primal-dual gradient, step {step}"), primal_dual(&problem, step, least)));
    }
    curves
}

/// Where the splitting is after so many iterations; `watch` sees each.
fn budgets_after(
    problem: &SharedBudgets,
    step: f64,
    metric: Metric,
    iterations: usize,
    mut watch: impl FnMut(&[f64]),
) -> Vec<f64> {
    let mut nodes = solve::clique_nodes(problem.terms(), &problem.cliques, step, metric);
    let mut x = Vec::new();
    for _ in 0..iterations {
        // All cliques are of nodes that are there.
        let _ = solve::clique_iteration(&mut nodes);
        x = nodes.iter().map(|node| node.solution()[0]).collect();
        watch(&x);
    }
    x
}

/// What one would do without the splitting: descend along the gradient of the Lagrangian, and ascend along the budgets' prices
/// (Arrow, Hurwicz and Uzawa).
fn primal_dual(problem: &SharedBudgets, step: f64, least: f64) -> Vec<f64> {
    let (mut x, mut prices) = (vec![0.0; problem.wishes.len()], vec![0.0; problem.cliques.len()]);
    let iteration = |_| {
        let mut gradient: Vec<f64> = x.iter().zip(&problem.wishes).map(|(x, wish)| x - wish).collect();
        for (clique, price) in problem.cliques.iter().zip(&prices) {
            let slope = clique.slope(clique.members.iter().map(|&node| x[node]));
            clique.members.iter().for_each(|&node| gradient[node] += slope + price);
        }
        x.iter_mut().zip(&gradient).for_each(|(x, gradient)| *x = (*x - step * gradient).max(0.0));
        for (clique, price) in problem.cliques.iter().zip(&mut prices) {
            let Constraint::Sum(budget) = clique.constraint else { continue };
            *price += step * (clique.members.iter().map(|&node| x[node]).sum::<f64>() - budget);
        }
        distance(problem.objective(&x), least)
    };
    (0..DRAWN).map(iteration).collect()
}

/// The second experiment.
fn shared_model(topology: &str, seed: u64) -> Result<Vec<Curve>> {
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
            solve::mixed_iteration(&mut nodes, &mixing);
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

/// The iterations until a curve stays below the target; none if it does not.
fn iterations(errors: &[f64], target: f64) -> Option<usize> {
    let above = errors.iter().rposition(|error| *error > target).map_or(0, |at| at + 1);
    (above < errors.len()).then_some(above + 1)
}

/// The median over the seeds of the iterations of one method, by the measure that `errors` picks; none if that method is not
/// through.
fn median(runs: &[Vec<Curve>], method: usize, target: f64, errors: impl Fn(&Curve) -> Option<&[f64]>) -> Option<f64> {
    let count = |curves: &Vec<Curve>| errors(&curves[method]).and_then(|errors| iterations(errors, target));
    let mut counts: Vec<f64> = runs.iter().map(|run| count(run).map_or(f64::INFINITY, |count| count as f64)).collect();
    counts.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (counts.get((counts.len() - 1) / 2)?, counts.get(counts.len() / 2)?);
    Some(f64::midpoint(*lower, *upper)).filter(|median| median.is_finite())
}

fn names(runs: &[Vec<Curve>]) -> impl Iterator<Item = (usize, &str)> {
    runs.iter().take(1).flatten().map(|curve| curve.name.as_str()).enumerate()
}

/// The medians of a method by both measures.
struct Medians<'a> {
    name: &'a str,
    own: Option<f64>,
    worst: Option<f64>,
    has_worst: bool,
}

fn medians<'a>(target: f64, runs: &'a [Vec<Curve>]) -> impl Iterator<Item = Medians<'a>> {
    names(runs).map(move |(method, name)| Medians {
        name,
        own: median(runs, method, target, |curve| Some(&curve.own)),
        worst: median(runs, method, target, |curve| curve.worst.as_deref()),
        has_worst: runs.iter().all(|curves| curves[method].worst.is_some()),
    })
}

fn tell(title: &str, target: f64, runs: &[Vec<Curve>], json: bool) {
    if json {
        let method = |medians: Medians<'_>| {
            let Medians { name, own, worst, .. } = medians;
            serde_json::json!({ "method": name, "iterations": own, "iterations_worst_model": worst })
        };
        out::line(serde_json::json!({
            "schema": "mingle.bench-solvers/2", "experiment": title, "target": target,
            "methods": medians(target, runs).map(method).collect::<Vec<_>>(),
        }));
        return;
    }
    out::line(format!("{title}: iterations until the objective is within {target:e} of the least, medians"));
    let has_worst = medians(target, runs).any(|medians| medians.has_worst);
    let second = if has_worst { format!(" {:>16}", "at the worst") } else { String::new() };
    out::line(format!("  {:<40} {:>14}{second}", "", "|F - F*| / F*"));
    let count = |count: Option<f64>| count.map_or_else(|| format!("more than {DRAWN}"), |count| count.to_string());
    for Medians { name, own, worst, has_worst } in medians(target, runs) {
        let second = if has_worst { format!(" {:>16}", count(worst)) } else { String::new() };
        out::line(format!("  {name:<40} {:>14}{second}", count(own)));
    }
}

/// The geometric means over the seeds.
fn draw(path: &Path, title: &str, runs: &[Vec<Curve>]) -> Result {
    let mean = |method: usize, at: usize| {
        let logarithms: f64 = runs.iter().map(|curves| curves[method].drawn()[at].ln()).sum();
        (logarithms / runs.len() as f64).exp()
    };
    let line = |(method, name): (usize, &str)| Series {
        name: name.to_owned(),
        points: (0..DRAWN).map(|at| ((at + 1) as f64, mean(method, at))).collect(),
        weight: if method == 0 { Weight::Bold } else { Weight::Thin },
    };
    let panel = Panel {
        y_label: "objective above the least, relative".to_owned(),
        scale: Scale::Log,
        bands: Vec::new(),
        series: names(runs).map(line).collect(),
        references: Vec::new(),
    };
    let picture = line_chart(title, Horizontal { label: "iteration", scale: Scale::Linear }, &[panel], &[]);
    output_file::write(path, picture.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_count_until_a_curve_stays_below() {
        assert_eq!(iterations(&[1.0, 0.01, 0.2, 0.05, 0.01], 0.1), Some(4));
        assert_eq!(iterations(&[0.01, 0.01], 0.1), Some(1));
        assert_eq!(iterations(&[0.01, 0.5], 0.1), None);
    }

    #[test]
    fn the_splitting_is_faster_than_the_primal_dual_gradient_and_phi_than_the_other_matrices() {
        let budgets: Vec<Vec<Curve>> = (0..3).map(shared_budgets).collect();
        let counts: Vec<Option<f64>> = medians(1e-8, &budgets).map(|medians| medians.own).collect();
        assert!(counts[0] < counts[2] && counts[2].is_some() && counts[3..] == [None, None], "{counts:?}");
        let models: Vec<Vec<Curve>> = (0..2).filter_map(|seed| shared_model("rg:n=50,r=0.5", seed).ok()).collect();
        let both: Vec<[Option<f64>; 2]> = medians(1e-10, &models).map(|medians| [medians.own, medians.worst]).collect();
        for measure in [0, 1] {
            let counts: Vec<Option<f64>> = both.iter().map(|counts| counts[measure]).collect();
            assert!(counts[0].is_some() && counts[1..].iter().all(|count| count > &counts[0]), "{both:?}");
        }
        // What a node's model is worth falls with the square of what the models differ by.
        assert!(both.iter().all(|[own, worst]| own > worst), "{both:?}");
    }

    #[test]
    fn a_median_of_two_is_between_them_and_none_where_one_is_not_through() {
        let run = |errors: &[f64]| vec![Curve::of_budgets("a", errors.to_vec())];
        let own = |runs: &[Vec<Curve>]| median(runs, 0, 0.1, |curve| Some(&curve.own));
        assert_eq!(own(&[run(&[0.01]), run(&[1.0, 0.5, 0.5, 0.01])]), Some(2.5));
        assert_eq!(own(&[run(&[0.01]), run(&[1.0])]), None);
    }
}
