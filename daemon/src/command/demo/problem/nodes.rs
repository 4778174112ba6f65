//! `mingle demo --problem node-classification`: clients on this machine that learn to tell the classes of nodes of a planted graph, beside
//! each alone and beside FedAvg.

use std::fs;
use std::path::Path;

use mingle_graphs::{NodeData, Overlap, deal_out, homophily};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use mingle_planner::Plan;
use mingle_problems::read_graph;
use mingle_solving::Learned;
use serde::Serialize;

use super::super::output::Output;
use super::rounds::{self, Report, RoundDemo, Way};
use super::{given, out};
use crate::cli::DemoArgs;

/// The graph, which the program carries.
const GRAPH: &str = "two-characters";
/// Rounds, unless the user says how many.
const ROUNDS: u64 = 60;
/// What is told at the end: of the model that a client's validation nodes choose, on its test nodes.
const JUDGED: &str = "test_at_best";
/// The network of all ways.
const MODEL: &str = "\n[model]\norders = 4\nhidden = 32\nlayers = 2\n";
const ALONE: Way = Way { name: "alone", lines: "sharing = \"local\"\n" };
/// The columns of the table.
const WAYS: &[Way] = &[
    ALONE,
    Way { name: "FedAvg", lines: "sharing = \"average\"\n" },
    Way { name: "angle", lines: "sharing = \"angle\"\n" },
];
/// The picture of who takes how much of whom, which all peers have.
const WEIGHTS: &str = "collaboration.svg";

/// What a client has, and how well each way does there.
#[derive(Debug, Serialize)]
struct Client {
    client: String,
    nodes: usize,
    /// The share of its links that join nodes of one class.
    homophily: Option<f64>,
    /// By way, in the order of the table.
    accuracy: Vec<Option<f64>>,
}

/// What came of all of it.
#[derive(Debug, Serialize)]
struct NodesReport {
    #[serde(flatten)]
    report: Report,
    clients: Vec<Client>,
}

/// Runs it.
pub(super) fn execute(arguments: &DemoArgs, json: bool) -> Result {
    let plan = given::design(arguments, &given::places(arguments)?)?;
    let parts = parts(arguments)?;
    let output = Output::create(&arguments.output)?;
    if !json {
        let nodes: usize = parts.iter().map(NodeData::node_count).sum();
        out::line(format!(
            "{} clients have {nodes} nodes of a planted graph between them: in half of it linked nodes are alike, in the other half opposites.\n\
             No node, feature or link leaves its client: what is shared are directions of filtered features, once, and models.\n",
            arguments.peers
        ));
    }
    let demo = RoundDemo {
        schema: "mingle.demo.nodes/1",
        question: "Of which class is a node? Each client keeps its part of the graph.",
        lines: format!("kind = \"node-classification\"\ndata = \"{GRAPH}\"\nseed = {}\n{MODEL}", arguments.seed),
        rounds: arguments.rounds.unwrap_or(ROUNDS),
        ways: WAYS,
        metrics: &["validation", JUDGED],
    };
    let (homes, report) = demo.learn(plan.clone(), &output, json)?;
    let picture = homes[0].root().join(WEIGHTS);
    let picture = fs::read(&picture).context(ErrorKind::Unexpected, format!("cannot read {}", picture.display()))?;
    output.write(WEIGHTS, &picture)?;
    let clients = clients(&plan, &parts, &report.in_one_process);
    let report = NodesReport { report, clients };
    rounds::write(&report, &output)?;
    if json {
        out::line(serde_json::json!(report));
    } else {
        report.print(&output);
    }
    report.report.check()
}

/// The parts of the graph as the peers will find them.
fn parts(arguments: &DemoArgs) -> Result<Vec<NodeData>> {
    let all = read_graph(GRAPH, Path::new("")).context(ErrorKind::Unexpected, "the embedded graph")?;
    let parts = deal_out(all.graph(), arguments.peers, Overlap::Disjoint, arguments.seed);
    let parts = parts.context(ErrorKind::BadInput, format!("--peers {}", arguments.peers))?;
    Ok(parts.iter().map(|nodes| all.induced(nodes)).collect())
}

fn clients(plan: &Plan, parts: &[NodeData], by_way: &[Vec<Learned>]) -> Vec<Client> {
    let accuracy = |at: usize, learned: &Vec<Learned>| {
        let own = learned.get(at)?;
        own.metric(&own.best()?.own, JUDGED)
    };
    let client = |(at, ((name, _), part)): (usize, ((&str, _), &NodeData))| Client {
        client: name.to_owned(),
        nodes: part.node_count(),
        homophily: homophily(part.graph(), part.labels()).map(|measured| measured.edge),
        accuracy: by_way.iter().map(|learned| accuracy(at, learned)).collect(),
    };
    plan.nodes().zip(parts).enumerate().map(client).collect()
}

impl NodesReport {
    fn print(&self, output: &Output) {
        let means: Vec<Option<f64>> = WAYS.iter().map(|way| self.report.mean(way.name, JUDGED)).collect();
        let names: Vec<String> = WAYS.iter().map(|way| format!("{:>9}", way.name)).collect();
        out::line("\nAccuracy on test nodes, of the model that each client's own validation nodes choose");
        out::line(format!("{:<12}{:>7}{:>11}{}", "client", "nodes", "homophily", names.concat()));
        for Client { client, nodes, homophily, accuracy } in &self.clients {
            out::line(format!("{client:<12}{nodes:>7}{:>11}{}", number(*homophily), cells(accuracy)));
        }
        out::line(format!("{:<12}{:>7}{:>11}{}", "mean", "", "", cells(&means)));
        out::line(format!("\n{}", verdict(&means)));
        self.report.print_end();
        let folder = output.root().display();
        out::line(format!(
            "wrote {folder}/report.json, curves.svg and {WEIGHTS}, who takes how much of whom; over seeds:\n  \
             mingle evaluate examples/evaluation/nodes-planted.toml"
        ));
    }
}

/// Whether sharing did any good; the first is that of learning alone.
fn verdict(means: &[Option<f64>]) -> String {
    let shared = WAYS.iter().zip(means).skip(1).filter_map(|(way, mean)| Some((way.name, (*mean)?)));
    let best = shared.reduce(|best, next| if next.1 > best.1 { next } else { best });
    match (means.first().copied().flatten(), best) {
        (Some(alone), Some((name, best))) if best > alone => {
            format!("{name} is {:.4} above learning alone; with one seed that may be chance.", best - alone)
        }
        (Some(alone), Some((name, best))) => {
            format!("Nothing beats learning alone here: the next best, {name}, is {:.4} below it.", alone - best)
        }
        _ => "Some way could not be judged: no client has test nodes.".to_owned(),
    }
}

fn cells(values: &[Option<f64>]) -> String {
    values.iter().map(|value| format!("{:>9}", number(*value))).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_sharing_is_what_was_measured() {
        assert!(verdict(&[Some(0.5), Some(0.25), Some(0.375)]).contains("angle, is 0.1250 below"));
        assert!(verdict(&[Some(0.5), Some(0.5), Some(0.25)]).contains("FedAvg, is 0.0000 below"));
        assert!(verdict(&[Some(0.5), Some(0.75), Some(0.25)]).contains("FedAvg is 0.2500 above"));
        assert!(verdict(&[None, Some(0.5), None]).contains("could not be judged"));
    }
}
