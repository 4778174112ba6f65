//! Reports of solutions: text, files and a chart.

pub(crate) mod comparison;
mod robust;

use std::path::Path;

use mingle_lab::solving::Solved;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file, units};
use mingle_solving::{Answer, Problem, Solution, solution_files};

use crate::out;

/// Prints what the solution cost.
pub(crate) fn conclude(solved: &Solved, seconds: f64) {
    let lost = match solved.lost {
        0 => String::new(),
        lost => format!(", {:.1} % of them lost", 100.0 * lost as f64 / solved.messages as f64),
    };
    out::line(format!("{} messages, {:.1} MB{lost}; {seconds:.1} s", solved.messages, units::megabytes(solved.bytes)));
}

/// Prints the solutions of all nodes, for people.
pub(crate) fn print_solutions(problem: &Problem, solutions: &[Solution]) {
    let Some(first) = solutions.first() else { return };
    problem.report(solutions).into_iter().for_each(out::line);
    robust::print(problem, &first.answer);
    print_certificate(first);
}

/// Prints the certificate that a solution is right.
pub(crate) fn print_certificate(solution: &Solution) {
    let certificate = &solution.certificate;
    let what = match solution.answer {
        Answer::SparseRegression { .. } => "nodes differ by",
        Answer::ResourceAllocation { .. } => "budgets missed by",
        Answer::CliqueCoupling { .. } | Answer::NetworkLasso { .. } | Answer::Robust { .. } => "constraints missed by",
    };
    out::line(format!("objective {:.12}", solution.objective));
    let gap = certificate.gap.map_or_else(String::new, |gap| format!("duality gap {gap:.1e}, "));
    out::line(format!(
        "{} after {} iterations: {gap}KKT residual {:.1e}, {what} {:.1e}, last step {:.1e}",
        if solution.converged { "solved" } else { "NOT solved" },
        solution.iterations,
        certificate.kkt,
        certificate.violation,
        certificate.residual,
    ));
}

/// Writes the files of the solutions into a folder.
pub(crate) fn write_files(folder: &Path, title: &str, solutions: &[Solution], residuals: &[f64]) -> Result {
    let files =
        solution_files(title, solutions, residuals).context(ErrorKind::Unexpected, "cannot encode the solution")?;
    for (name, text) in files {
        output_file::write(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}
