//! `mingle demo --problem node-classification`: the results of all clients, for people.

use mingle_demo::{NodesDemo, NodesReport, ProblemEvent, ProblemOptions, WEIGHTS};
use mingle_peer::Result;

use super::tell;
use crate::command::demo::this_program;
use crate::{event_loop, out, signals};

/// Runs the clients, and prints the report.
pub(super) fn execute(options: &ProblemOptions, json: bool) -> Result {
    let demo = NodesDemo::prepare(options)?;
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
    report.report.check()
}

fn print(report: &NodesReport, demo: &NodesDemo) {
    out::line(format!("\n{}", report.clients_table(demo.ways())));
    out::line(format!("\n{}", report.report.end()));
    let folder = demo.output().root().display();
    out::line(format!(
        "wrote {folder}/report.json, curves.svg and {WEIGHTS}, who takes how much of whom; over seeds:\n  \
         mingle evaluate examples/evaluation/nodes-planted.toml"
    ));
}
