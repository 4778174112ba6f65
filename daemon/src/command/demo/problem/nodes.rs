//! `mingle demo --problem node-classification`: the results of all clients, for people.

use mingle_demo::{NodesDemo, NodesReport, ProblemDemo, ProblemOptions, WEIGHTS};
use mingle_peer::Result;

use super::run;
use crate::out;

/// Runs the clients, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = NodesDemo::prepare(options)?;
    run(&demo, json, |report| print(report, &demo))?.report.check()
}

fn print(report: &NodesReport, demo: &NodesDemo) -> Result {
    out::line(format!("\n{}", report.clients_table(demo.ways())));
    out::line(format!("\n{}", report.report.end()));
    let folder = demo.output().root().display();
    out::line(format!(
        "wrote {folder}/report.json, curves.svg and {WEIGHTS}, who takes how much of whom; over seeds:\n  \
         mingle evaluate examples/evaluation/nodes-planted.toml"
    ));
    Ok(())
}
