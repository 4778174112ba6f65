//! `mingle demo --problem training`: the results of all methods, for people.

use mingle_demo::{ProblemEvent, ProblemOptions, RoundsReport, SharedNoiseDemo, Way};
use mingle_peer::Result;

use super::{print_rounds_end, tell};
use crate::command::demo::this_program;
use crate::{event_loop, out, signals};

/// The columns of the table.
const COLUMNS: [&str; 3] = ["accuracy", "loss", "epsilon"];

/// Runs the members, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = SharedNoiseDemo::prepare(options)?;
    if !json {
        out::line(demo.introduction());
    }
    let (program, tell) = (this_program()?, |event: &ProblemEvent<'_>| tell(event, json));
    let report = event_loop::run(async { demo.run(program, &tell, &mut signals::forward()?).await })?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report, &demo);
    }
    report.check()
}

fn print(report: &RoundsReport, demo: &SharedNoiseDemo) {
    let head: Vec<String> = COLUMNS.iter().map(|name| format!("{name:>12}")).collect();
    out::line(format!("\n{:<14}{}", "mean", head.concat()));
    for Way { name, .. } in demo.ways() {
        let cell =
            |metric: &&str| report.mean(name, metric).map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let cells: Vec<String> = COLUMNS.iter().map(|metric| format!("{:>12}", cell(metric))).collect();
        out::line(format!("{name:<14}{}", cells.concat()));
    }
    print_rounds_end(report);
    let folder = demo.output().root().display();
    out::line(format!("wrote {folder}/report.json, {folder}/curves.svg; the model of all members, on other images:"));
    out::line(format!("  mingle eval {} --data digits", demo.output().home(0).join("model.safetensors").display()));
}
