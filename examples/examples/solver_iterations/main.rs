//! The two experiments of Watanabe and Sakurama, counted in iterations, as tables and pictures.
//!
//! `cargo run --release -p mingle-examples --example solver_iterations -- --output FOLDER`
//!
//! Everything happens in this process, without messages: the speed of the methods depends on steps and mixing matrices
//! alone.

mod experiments;
#[path = "../../../methods/solver/tests/in_one_process/mod.rs"]
mod in_one_process;
#[path = "../../../methods/solver/tests/problems/mod.rs"]
mod problems;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use mingle_home::error::Context;
use mingle_home::{ErrorKind, Result};
use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};

use experiments::{Curve, DRAWN, TARGETS, shared_budgets, shared_model};

/// Count the iterations that solvers of coupled problems take, by step and mixing matrix; with pictures.
#[derive(Debug, Parser)]
#[command(name = "solver_iterations")]
struct Arguments {
    /// Problems of each kind, drawn at random; medians are printed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: u32,
    /// A generator of topologies with 50 nodes, without its seed
    #[arg(long, value_name = "GENERATOR", default_value = "rg:n=50,r=0.5")]
    topology: String,
    /// Draw both, as geometric means, into this folder
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object an experiment instead of tables
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run_both(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs both experiments.
fn run_both(arguments: &Arguments) -> Result {
    if let Some(folder) = &arguments.output {
        let doing = format!("cannot make the folder {}", folder.display());
        std::fs::create_dir_all(folder).context(ErrorKind::BadInput, doing)?;
    }
    let seeds = 0..u64::from(arguments.seeds);
    let budgets: Vec<Vec<Curve>> = seeds.clone().map(shared_budgets).collect();
    let models: Vec<Vec<Curve>> = seeds.map(|seed| shared_model(&arguments.topology, seed)).collect::<Result<_>>()?;
    tell("shared budgets, 20 nodes in 4 cliques", TARGETS.0, &budgets, arguments.json);
    tell(&format!("shared model, 50 nodes on {}", arguments.topology), TARGETS.1, &models, arguments.json);
    let Some(folder) = &arguments.output else { return Ok(()) };
    draw(&folder.join("solving-budgets.svg"), "Twenty nodes share four budgets", &budgets)?;
    draw(&folder.join("solving-matrices.svg"), "Fifty nodes agree on a sparse model", &models)
}

/// The iterations until a curve stays at or below the target; `None` if it does not.
fn iterations(errors: &[f64], target: f64) -> Option<usize> {
    let above = errors.iter().rposition(|error| *error > target).map_or(0, |at| at + 1);
    (above < errors.len()).then_some(above + 1)
}

/// The median over the seeds of the iterations of one method, by the measure that `errors` picks; `None` if that method
/// has not converged.
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
        let object = serde_json::json!({
            "schema": "mingle.bench-solvers/2", "experiment": title, "target": target,
            "methods": medians(target, runs).map(method).collect::<Vec<_>>(),
        });
        println!("{object}");
        return;
    }
    println!("{title}: iterations until the objective is within {target:e} of the least, medians");
    let has_worst = medians(target, runs).any(|medians| medians.has_worst);
    let second = if has_worst { format!(" {:>16}", "at the worst") } else { String::new() };
    println!("  {:<40} {:>14}{second}", "", "|F - F*| / F*");
    let count = |count: Option<f64>| count.map_or_else(|| format!("more than {DRAWN}"), |count| count.to_string());
    for Medians { name, own, worst, has_worst } in medians(target, runs) {
        let second = if has_worst { format!(" {:>16}", count(worst)) } else { String::new() };
        println!("  {name:<40} {:>14}{second}", count(own));
    }
}

/// Draws the geometric means over the seeds.
fn draw(path: &Path, title: &str, runs: &[Vec<Curve>]) -> Result {
    let mean = |method: usize, at: usize| {
        let logarithms: f64 = runs.iter().map(|curves| curves[method].drawn()[at].ln()).sum();
        (logarithms / runs.len() as f64).exp()
    };
    let line = |(method, name): (usize, &str)| Series {
        name: name.to_owned(),
        points: (0..DRAWN).map(|at| ((at + 1) as f64, mean(method, at))).collect(),
        weight: if method == 0 { LineWeight::Bold } else { LineWeight::Thin },
    };
    let panel = Panel {
        y_label: "objective above the least, relative".to_owned(),
        scale: Scale::Log,
        bands: Vec::new(),
        series: names(runs).map(line).collect(),
        references: Vec::new(),
    };
    let picture = line_chart(title, Horizontal { label: "iteration", scale: Scale::Linear }, &[panel], &[]);
    std::fs::write(path, picture).context(ErrorKind::BadInput, format!("cannot write {}", path.display()))
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
        // The error of the objective at one node's model falls with the square of the differences between the models.
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
