//! Clients on this machine that learn the classes of nodes of a planted graph, compared with each alone and with
//! FedAvg.

use std::fs;
use std::path::Path;

use mingle_graphs::{NodeData, Overlap, deal_out, homophily};
use mingle_peer::error::Context;
use mingle_peer::stop::StopRequests;
use mingle_peer::{ErrorKind, Result};
use mingle_planner::Plan;
use mingle_problems::read_graph;
use mingle_solving::Learned;
use serde::Serialize;

use super::rounds::{self, Comparison, RoundDemo, RoundsReport, Way};
use super::{ProblemDemo, Tell, given};
use crate::options::{PeerProgram, ProblemOptions, check_peers};
use crate::output::Output;

/// The name of the graph, which is embedded in the program.
const GRAPH: &str = "two-characters";
/// Default number of rounds.
const ROUNDS: u64 = 60;
/// The metric in the final table: the test score of the model that a client's validation nodes choose.
pub const JUDGED: &str = "test_at_best";
/// The network of all methods.
const MODEL: &str = "\n[model]\norders = 4\nhidden = 32\nlayers = 2\n";
/// The methods that are compared: columns of the table.
const WAYS: &[Way] = &[
    Way { name: "alone", lines: "sharing = \"local\"\n" },
    Way { name: "FedAvg", lines: "sharing = \"average\"\n" },
    Way { name: "angle", lines: "sharing = \"angle\"\n" },
];
/// The picture of the collaboration weights, which all peers have.
pub const WEIGHTS: &str = "collaboration.svg";

/// A client's part of the graph, and the accuracy of each method there.
#[derive(Debug, Serialize)]
pub struct ClientScores {
    /// Its name in the plan.
    pub client: String,
    /// The number of its nodes.
    pub nodes: usize,
    /// The share of its links that join nodes of one class.
    pub homophily: Option<f64>,
    /// The accuracy of each method, in the order of the table.
    pub accuracy: Vec<Option<f64>>,
}

/// The report of a demo of node classification.
#[derive(Debug, Serialize)]
pub struct NodesReport {
    /// The common part of all reports of learning in rounds.
    #[serde(flatten)]
    pub report: RoundsReport,
    /// The results by client.
    pub clients: Vec<ClientScores>,
}

/// A demo of node classification on this machine.
pub struct NodesDemo {
    demo: RoundDemo,
    plan: Plan,
    parts: Vec<NodeData>,
    output: Output,
}

impl NodesDemo {
    /// Makes the plan, and deals out the graph.
    ///
    /// # Errors
    /// The options are invalid, or the folder holds something else.
    pub fn prepare(options: &ProblemOptions) -> Result<Self> {
        check_peers(options.peers)?;
        let plan = given::design(options, &given::places(options)?)?;
        let parts = parts(options)?;
        let output = Output::at(&options.output)?;
        let demo = RoundDemo {
            schema: "mingle.demo.nodes/1",
            question: "Of which class is a node? Each client keeps its part of the graph.",
            files: Vec::new(),
            lines: format!("kind = \"node-classification\"\ndata = \"{GRAPH}\"\nseed = {}\n{MODEL}", options.seed),
            rounds: options.rounds.unwrap_or(ROUNDS),
            ways: WAYS,
            comparison: Comparison::OneProcess,
            metrics: &["validation", JUDGED],
        };
        Ok(Self { demo, plan, parts, output })
    }

    /// The methods that are compared, in the order of [`ClientScores::accuracy`]; the last one is that of the peers.
    pub fn ways(&self) -> &'static [Way] {
        WAYS
    }
}

impl ProblemDemo for NodesDemo {
    type Report = NodesReport;

    fn introduction(&self) -> String {
        let nodes: usize = self.parts.iter().map(NodeData::node_count).sum();
        format!(
            "{} clients have {nodes} nodes of a planted graph between them: in half of it linked nodes are alike, in the other half opposites.\n\
             No node, feature or link leaves its client: what is shared are directions of filtered features, once, and models.\n",
            self.parts.len()
        )
    }

    fn output(&self) -> &Output {
        &self.output
    }

    async fn run(&self, program: PeerProgram, tell: Tell<'_>, stop: &mut StopRequests) -> Result<NodesReport> {
        let (homes, report) = self.demo.learn(self.plan.clone(), &self.output, program, tell, stop).await?;
        let picture = homes[0].root().join(WEIGHTS);
        let doing = format!("cannot read {}", picture.display());
        self.output.write(WEIGHTS, &fs::read(&picture).context(ErrorKind::Unexpected, doing)?)?;
        let clients = clients(&self.plan, &self.parts, &report.in_one_process);
        let report = NodesReport { report, clients };
        rounds::write(&report, &self.output)?;
        Ok(report)
    }
}

/// The parts of the graph, as the peers will have them.
fn parts(options: &ProblemOptions) -> Result<Vec<NodeData>> {
    let all = read_graph(GRAPH, Path::new("")).context(ErrorKind::Unexpected, "the embedded graph")?;
    let parts = deal_out(all.graph(), options.peers, Overlap::Disjoint, options.seed);
    let parts = parts.context(ErrorKind::BadInput, format!("--peers {}", options.peers))?;
    Ok(parts.iter().map(|nodes| all.induced(nodes)).collect())
}

fn clients(plan: &Plan, parts: &[NodeData], by_way: &[Vec<Learned>]) -> Vec<ClientScores> {
    let accuracy = |at: usize, learned: &Vec<Learned>| {
        let own = learned.get(at)?;
        own.metric(&own.best()?.own, JUDGED)
    };
    let client = |(at, ((name, _), part)): (usize, ((&str, _), &NodeData))| ClientScores {
        client: name.to_owned(),
        nodes: part.node_count(),
        homophily: homophily(part.graph(), part.labels()).map(|measured| measured.edge),
        accuracy: by_way.iter().map(|learned| accuracy(at, learned)).collect(),
    };
    plan.nodes().zip(parts).enumerate().map(client).collect()
}

impl NodesReport {
    /// The table of all clients, with the verdict on sharing below it.
    pub fn clients_table(&self, ways: &[Way]) -> String {
        let means: Vec<Option<f64>> = ways.iter().map(|way| self.report.mean(way.name, JUDGED)).collect();
        let names: String = ways.iter().map(|way| format!("{:>9}", way.name)).collect();
        let mut text =
            "Accuracy on test nodes, of the model that each client's own validation nodes choose\n".to_owned();
        text += &format!("{:<12}{:>7}{:>11}{names}\n", "client", "nodes", "homophily");
        for ClientScores { client, nodes, homophily, accuracy } in &self.clients {
            text += &format!("{client:<12}{nodes:>7}{:>11}{}\n", number(*homophily), cells(accuracy));
        }
        text += &format!("{:<12}{:>7}{:>11}{}\n\n", "mean", "", "", cells(&means));
        text + &self.report.verdict(ways, JUDGED)
    }
}

fn cells(values: &[Option<f64>]) -> String {
    values.iter().map(|value| format!("{:>9}", number(*value))).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}
