//! `mingle demo --problem training`: the results of all methods, for people.

use mingle_demo::{ProblemEvent, ProblemOptions, RoundsReport, SharedNoiseDemo};
use mingle_peer::Result;

use super::tell;
use crate::command::demo::this_program;
use crate::{event_loop, out, signals};

/// Runs the members, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = SharedNoiseDemo::prepare(options)?;
    if !json {
        out::line(demo.introduction());
    }
    let tell = |event: &ProblemEvent<'_>| tell(event, json);
    let report = event_loop::run(async { demo.run(this_program()?, &tell, &mut signals::forward()?).await })?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        print(&report, &demo);
    }
    report.check()
}

fn print(report: &RoundsReport, demo: &SharedNoiseDemo) {
    out::line(format!("\n{}\n\n{}", report.means_table(demo.ways(), &["accuracy", "loss", "epsilon"]), report.end()));
    let folder = demo.output().root().display();
    out::line(format!("wrote {folder}/report.json, {folder}/curves.svg; the model of all members, on other images:"));
    out::line(format!("  mingle eval {} --data digits", demo.output().home(0).join("model.safetensors").display()));
}
