//! The demo of a convex problem, for people.

use mingle_demo::{ConvexDemo, ConvexKind, ConvexReport, OnePlace, Output, ProblemDemo, ProblemOptions};
use mingle_lab::comparison::Comparison;
use mingle_peer::{Result, units};
use mingle_solving::{Answer, Problem};

use super::run;
use crate::out;
use crate::solving_report::print_solutions;

/// Solves the problem, and prints the report.
pub(super) fn execute(options: &ProblemOptions, kind: ConvexKind, json: bool) -> Result {
    let demo = ConvexDemo::prepare(options, kind)?;
    run(&demo, json, |report| print(report, &demo))?.check()
}

fn print(report: &ConvexReport, demo: &ConvexDemo) -> Result {
    out::line("");
    match report.solutions.first().map(|solution| &solution.answer) {
        Some(Answer::SparseRegression { coefficients, .. }) => {
            out::line(format!("{:<24} {:>12} {:>12}   each alone", "scaled coefficient", "swarm", "one place"));
            let both = coefficients.iter().zip(&report.one_place.numbers).zip(&report.alone);
            for ((found, one_place), (least, most)) in both {
                let column = &found.column;
                let swarm = found.scaled;
                out::line(format!("{column:<24} {swarm:>12.9} {one_place:>12.9}   {least:>6.3} to {most:>6.3}"));
            }
        }
        _ => {
            if let Ok(problem) = Problem::read(&demo.output().problem(), demo.plan()) {
                print_solutions(&problem, &report.solutions);
            }
        }
    }
    report.comparison.iter().for_each(print_drift);
    print_end(report, demo.output());
    Ok(())
}

fn print_end(report: &ConvexReport, output: &Output) {
    let Some(first) = report.solutions.first() else { return };
    let OnePlace { method, objective, .. } = &report.one_place;
    out::line("");
    let gap = first.certificate.gap.map_or_else(String::new, |gap| format!("duality gap {gap:.1e}, "));
    out::line(format!(
        "{} peers, {} iterations, {:.1} s; {gap}KKT residual {:.1e}, constraints to {:.1e}",
        report.peers, first.iterations, report.seconds, first.certificate.kkt, first.certificate.violation
    ));
    out::line(format!("objective {:.12}, in one place {objective:.12} ({method})", first.objective));
    out::line(format!("largest difference of any number of any peer from one place: {:.1e}", report.difference));
    if let Some(bytes) = report.peak_resident_bytes {
        out::line(format!("memory of a peer: up to {:.0} MB", units::megabytes(bytes)));
    }
    let folder = output.root().display();
    out::line(format!(
        "wrote {folder}/report.json, {folder}/residuals.svg; again, in one process:\n  \
         mingle solve --problem {folder}/problem.toml --plan {folder}/plan.json"
    ));
}

/// Percent of the measured range per unit: columns run from -1 to 1, so a deviation of 0.1 is 5 % of it.
const PERCENT_OF_RANGE: f64 = 50.0;

/// Prints how many patients are classified correctly as measuring devices drift, for people who measure.
fn print_drift(comparison: &Comparison) {
    let named = |name: &str| comparison.models.iter().find(|model| model.name == name);
    let (Some(usual), Some(robust)) = (named("usual"), named("robust")) else { return };
    out::line("");
    out::line("Of 100 new patients, so many are told right when every device is off at random by so much of its range");
    let head = ["usual model", "robust model", "usual, worst site", "robust, worst site"];
    out::line(format!("{:<12} {:>12} {:>13} {:>18} {:>19}", "off by", head[0], head[1], head[2], head[3]));
    for (at, noise) in comparison.noises.iter().enumerate().filter(|(_, noise)| noise.mean == 0.0) {
        let of_100 = |scores: &[f64]| format!("{:.0}", 100.0 * scores[at]);
        let off = format!("{:.1} %", PERCENT_OF_RANGE * noise.deviation);
        let (means, worst) = ([&usual.mean, &robust.mean], [&usual.worst_site, &robust.worst_site]);
        let [a, b] = means.map(|scores| of_100(scores));
        let [c, d] = worst.map(|scores| of_100(scores));
        out::line(format!("{off:<12} {a:>12} {b:>13} {c:>18} {d:>19}"));
    }
}
