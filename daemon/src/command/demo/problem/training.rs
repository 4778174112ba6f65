//! `mingle demo --problem training`: the results of all methods, for people.

use mingle_demo::{ProblemDemo, ProblemOptions, RoundsReport, SharedNoiseDemo};
use mingle_peer::Result;

use super::run;
use crate::out;

/// Runs the members, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = SharedNoiseDemo::prepare(options)?;
    run(&demo, json, |report| print(report, &demo))?.check()
}

fn print(report: &RoundsReport, demo: &SharedNoiseDemo) -> Result {
    out::line(format!("\n{}\n\n{}", report.means_table(demo.ways(), &["accuracy", "loss", "epsilon"]), report.end()));
    let folder = demo.output().root().display();
    out::line(format!("wrote {folder}/report.json, {folder}/curves.svg; the model of all members, on other images:"));
    out::line(format!("  mingle eval {} --data digits", demo.output().home(0).join("model.safetensors").display()));
    Ok(())
}
