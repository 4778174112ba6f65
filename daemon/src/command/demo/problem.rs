//! `mingle demo --problem`: peers on this machine that solve a problem, or learn in rounds.

mod convex;
mod nodes;
mod recommendation;
mod training;

use mingle_demo::{ConvexKind, ProblemDemo, ProblemEvent, ProblemOptions};
use mingle_peer::Result;

use super::this_program;
use crate::cli::ProblemKind;
use crate::{event_loop, out, signals};

/// Runs the demo.
pub(super) fn execute(options: &ProblemOptions, kind: ProblemKind, json: bool) -> Result {
    match kind {
        ProblemKind::SparseRegression => convex::execute(options, ConvexKind::SparseRegression, json),
        ProblemKind::ResourceAllocation => convex::execute(options, ConvexKind::ResourceAllocation, json),
        ProblemKind::RobustClassification => convex::execute(options, ConvexKind::RobustClassification, json),
        ProblemKind::Recommendation => recommendation::execute(options, json),
        ProblemKind::NodeClassification => nodes::execute(options, json),
        ProblemKind::Training => training::execute(options, json),
    }
}

/// Runs a demo, prints its report as `print` does or as one object, and returns it.
fn run<D: ProblemDemo>(demo: &D, json: bool, print: impl FnOnce(&D::Report) -> Result) -> Result<D::Report> {
    if !json {
        out::line(demo.introduction());
    }
    let tell = |event: &ProblemEvent<'_>| tell(event, json);
    let report = event_loop::run(async { demo.run(this_program()?, &tell, &mut signals::forward()?).await })?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report)?;
    }
    Ok(report)
}

/// Prints an event, for people.
fn tell(event: &ProblemEvent<'_>, json: bool) {
    match event {
        _ if json => {}
        ProblemEvent::Measured { round, metrics, after } => {
            let cell = |(name, value): &(&str, f64)| format!("   {} {value:.4}", name.replace('_', " "));
            let cells: Vec<String> = metrics.iter().map(cell).collect();
            out::line(format!("round {round:>4}{}   {:.1} s", cells.concat(), after.as_secs_f64()));
        }
        ProblemEvent::Comparing { methods } => {
            out::line(format!("the peers are done; comparing {methods} methods in this process ..."));
        }
        ProblemEvent::Iterated { iteration, residual, gap, after } => {
            let seconds = after.as_secs_f64();
            let gap = gap.map_or_else(String::new, |gap| format!("   gap {gap:.1e}"));
            out::line(format!("iteration {iteration:>5}   residual {residual:.1e}{gap}   {seconds:.2} s"));
        }
    }
}
