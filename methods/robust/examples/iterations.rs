//! The iterations of the method until its gap is small, beside those with constant penalties: the table of
//! docs/robust-models.md.
#![allow(clippy::unwrap_used)]

#[path = "../tests/instances/mod.rs"]
mod instances;

use instances::{patients, small_unequal};
use mingle_robust::{Linearisation, LpmmLimits, Penalty, RobustProblem, solve_by_lpmm};

const TOLERANCE: f64 = 1e-4;

/// The iterations with each penalty: the default one, and constant ones with the least and the paper's constants.
/// `None` where the gap was not small enough in the end.
fn iterations(name: &str, problem: &RobustProblem, most: u64) -> [Option<u64>; 3] {
    let tolerance = TOLERANCE / problem.scale().unwrap().loss.max(1.0);
    let constant = |linearisation| Penalty::constant(0.1, linearisation);
    let penalties = [Penalty::default(), constant(Linearisation::Least), constant(Linearisation::Paper)];
    let found = penalties.map(|penalty| {
        let found = solve_by_lpmm(problem, penalty, LpmmLimits { tolerance, iterations: most }).unwrap();
        found.converged.then_some(found.iterations)
    });
    println!("{name}: {found:?}");
    found
}

/// Prints a row of the table for each penalty.
fn report(name: &str, found: &[[Option<u64>; 3]]) {
    for (at, penalty) in ["default", "constant, least", "constant, paper"].iter().enumerate() {
        let mut all: Vec<u64> = found.iter().map(|of_case| of_case[at].unwrap_or(u64::MAX)).collect();
        all.sort_unstable();
        let ended = all.iter().filter(|iterations| **iterations < u64::MAX).count();
        let [lower, upper] = [(all.len() - 1) / 2, all.len() / 2].map(|middle| all[middle]);
        println!(
            "{name}, {penalty}: {ended} of {} ended, middle {lower} and {upper}, last {:?}",
            all.len(),
            all.last()
        );
    }
}

fn main() {
    let cases: Vec<_> = (0..40).map(|case| iterations(&format!("case {case}"), &small_unequal(case), 2_000)).collect();
    report("40 small cases", &cases);
    let draws = (0..5).flat_map(|seed| [0.0, 0.1].map(|theta| (seed, theta)));
    let problems = draws.map(|(seed, theta)| Some((format!("patients {seed}, theta {theta}"), patients(seed, theta)?)));
    let Some(problems) = problems.collect::<Option<Vec<_>>>() else {
        eprintln!("left out: 75 patients, for there is no ../shared/data/tables/wdbc.data");
        return;
    };
    let draws: Vec<_> = problems.iter().map(|(name, problem)| iterations(name, problem, 10_000)).collect();
    report("75 patients", &draws);
}
