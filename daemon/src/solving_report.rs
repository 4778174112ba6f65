//! Reports of solutions: text, files and a chart.

pub(crate) mod comparison;
mod robust;

use std::path::Path;

use mingle_lab::solving::Solved;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file, units};
use mingle_solving::{Answer, Coefficient, Paid, Problem, ProblemTask, Solution, solution_files};

use crate::out;

/// Largest magnitude of a coefficient that counts as zero, set so by the penalty.
const ZERO: f64 = 1e-12;

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
    match &first.answer {
        Answer::SparseRegression { coefficients, intercept, rows } => {
            out::line(format!("{:<28} {:>16}   {:>12}", "column", "coefficient", "scaled"));
            coefficients.iter().for_each(print_coefficient);
            out::line(format!("{:<28} {intercept:>16.9}", "(intercept)"));
            let zeros = coefficients.iter().filter(|coefficient| coefficient.scaled.abs() <= ZERO).count();
            out::line(format!("{rows} rows, {zeros} of {} columns left out", coefficients.len()));
        }
        Answer::Robust { .. } => robust::print(problem, &first.answer),
        Answer::ResourceAllocation { .. } => {
            out::line(format!("{:<28} {:>16}", "node", "number"));
            let (mut seen, mut all) = (Vec::new(), Vec::<Paid>::new());
            for solution in solutions {
                let Answer::ResourceAllocation { number, cliques } = &solution.answer else { continue };
                let name = problem.names.get(solution.node).map_or("", String::as_str);
                out::line(format!("{name:<28} {number:>16.9}"));
                for paid in cliques.iter().filter(|paid| !seen.contains(&paid.clique)) {
                    all.push(paid.clone());
                }
                seen.extend(cliques.iter().map(|paid| paid.clique.clone()));
            }
            out::line(format!("{:<28} {:>16}   {:>16}   {:>16}", "clique", "budget", "sum", "price of a unit"));
            in_file_order(problem, all).iter().for_each(print_paid);
        }
    }
    print_certificate(first);
}

/// Prints the certificate that a solution is right.
pub(crate) fn print_certificate(solution: &Solution) {
    let certificate = &solution.certificate;
    let what = match solution.answer {
        Answer::SparseRegression { .. } => "nodes differ by",
        Answer::ResourceAllocation { .. } => "budgets missed by",
        Answer::Robust { .. } => "constraints missed by",
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

pub(crate) fn print_coefficient(coefficient: &Coefficient) {
    let Coefficient { column, value, scaled } = coefficient;
    out::line(format!("{column:<28} {value:>16.9}   {scaled:>12.6}"));
}

fn print_paid(paid: &Paid) {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.9}"));
    let Paid { clique, budget, sum, price } = paid;
    out::line(format!("{clique:<28} {:>16}   {sum:>16.9}   {:>16}", number(*budget), number(*price)));
}

fn in_file_order(problem: &Problem, mut cliques: Vec<Paid>) -> Vec<Paid> {
    if let ProblemTask::Allocation(task) = &problem.task {
        let place = |paid: &Paid| task.budgets.all().iter().position(|clique| clique.name == paid.clique);
        cliques.sort_by_key(place);
    }
    cliques
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
