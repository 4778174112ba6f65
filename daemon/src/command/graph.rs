//! `mingle graph`: what a graph is like, and whether sharing models helps on it.

use std::path::Path;

use mingle_graphs::{CollaborationMode, Federation, NodeData, NodeOptions, Overlap, Sharing, deal_out, homophily};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::cli::{GraphCompareArgs, GraphShowArgs};
use crate::{nodes, out, task};

/// What is compared.
const WAYS: [(&str, Sharing); 5] = [
    ("local", Sharing::Local),
    ("average", Sharing::Average),
    ("paper", Sharing::Collaboration(CollaborationMode::Paper)),
    ("angle", Sharing::Collaboration(CollaborationMode::Angle)),
    ("robust", Sharing::Collaboration(CollaborationMode::Robust)),
];

/// Reads and describes a graph.
pub(super) fn show(arguments: &GraphShowArgs, json: bool) -> Result {
    let data = read(&arguments.data, Path::new(""))?;
    let parts = match arguments.clients {
        Some(clients) => dealt(&data, clients, arguments.seed)?,
        None => Vec::new(),
    };
    if json {
        let parts: Vec<Summary> = parts.iter().map(Summary::of).collect();
        out::line(serde_json::json!({ "schema": "mingle.graph/1", "graph": Summary::of(&data), "clients": parts }));
        return Ok(());
    }
    let summary = Summary::of(&data);
    out::line(format!("nodes      {}", summary.nodes));
    out::line(format!("edges      {}", summary.edges));
    out::line(format!("features   {}", summary.features));
    let classes: Vec<String> = summary.classes.iter().map(ToString::to_string).collect();
    out::line(format!("classes    {}, of {} nodes", classes.len(), classes.join(", ")));
    out::line(format!("homophily  {}", measures(&summary)));
    summary.notes.iter().for_each(|note| out::line(format!("note       {note}")));
    if !parts.is_empty() {
        let kept: usize = parts.iter().map(|part| part.graph().edge_count()).sum();
        let share = 100.0 * kept as f64 / data.graph().edge_count().max(1) as f64;
        out::line(format!("\n{} clients keep {share:.1} % of the edges", parts.len()));
    }
    for (at, part) in parts.iter().enumerate() {
        let summary = Summary::of(part);
        out::line(format!("{at:>4}  {:>6} nodes {:>7} edges  {}", summary.nodes, summary.edges, measures(&summary)));
    }
    Ok(())
}

fn read(text: &str, folder: &Path) -> Result<NodeData> {
    let text = text.strip_prefix("graph:").unwrap_or(text);
    nodes::graph(text, folder).context(ErrorKind::BadInput, format!("the graph {text} cannot be used"))
}

fn dealt(data: &NodeData, clients: usize, seed: u64) -> Result<Vec<NodeData>> {
    let parts = deal_out(data.graph(), clients, Overlap::Disjoint, seed);
    let parts = parts.context(ErrorKind::BadInput, format!("--clients {clients}"))?;
    Ok(parts.iter().map(|nodes| data.induced(nodes)).collect())
}

#[derive(Serialize)]
struct Summary {
    nodes: usize,
    edges: usize,
    features: usize,
    /// Nodes of each class.
    classes: Vec<usize>,
    edge_homophily: Option<f64>,
    node_homophily: Option<f64>,
    adjusted_homophily: Option<f64>,
    notes: Vec<String>,
}

impl Summary {
    fn of(data: &NodeData) -> Self {
        let measured = homophily(data.graph(), data.labels());
        Self {
            nodes: data.node_count(),
            edges: data.graph().edge_count(),
            features: data.feature_count(),
            classes: data.class_counts(),
            edge_homophily: measured.map(|measured| measured.edge),
            node_homophily: measured.map(|measured| measured.node),
            adjusted_homophily: measured.map(|measured| measured.adjusted).filter(|adjusted| adjusted.is_finite()),
            notes: data.notes(),
        }
    }
}

fn measures(summary: &Summary) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let [edge, node, adjusted] =
        [summary.edge_homophily, summary.node_homophily, summary.adjusted_homophily].map(number);
    format!("edge {edge}, node {node}, adjusted {adjusted}")
}

/// Learns in every way with every seed, in one process, and compares.
pub(super) fn compare(arguments: &GraphCompareArgs, json: bool) -> Result {
    let file = nodes::read_file(&arguments.problem)?;
    if arguments.seeds == 0 {
        return Err(Error::new(ErrorKind::BadInput, "--seeds 0: one run at least"));
    }
    let folder = arguments.problem.parent().unwrap_or(Path::new(""));
    let data = read(&file.data, folder)?;
    let device = task::open_device(&file.device)?;
    let mut results = vec![Vec::new(); WAYS.len()];
    for seed in file.seed..file.seed + arguments.seeds {
        let clients = dealt(&data, arguments.clients, seed)?;
        let options = NodeOptions { seed, data_seed: seed, ..file.options() };
        let failed = |(client, error): (usize, mingle_graphs::ClientError)| {
            Error::new(ErrorKind::Training, format!("client {client}: {error}"))
        };
        let mut federation =
            Federation::new(&options, &clients, Sharing::Local, (seed, file.epochs), &device).map_err(failed)?;
        for ((name, sharing), results) in WAYS.iter().zip(&mut results) {
            federation.begin_anew(&options, *sharing).map_err(failed)?;
            for _ in 0..file.rounds {
                federation.round(file.metric()).map_err(failed)?;
            }
            let value = federation.test(file.metric()).unwrap_or(f64::NAN);
            if json {
                out::line(
                    serde_json::json!({ "schema": "mingle.graph-run/1", "sharing": name, "seed": seed, "test": value }),
                );
            } else {
                out::line(format!("seed {seed}  {name:<8} {value:.4}"));
            }
            results.push(value);
        }
    }
    if !json {
        print_comparison(&results);
    }
    Ok(())
}

fn print_comparison(results: &[Vec<f64>]) {
    out::line(format!("\n{:<10}{:>8}{:>10}{:>16}{:>8}", "sharing", "mean", "deviation", "beyond local", "t"));
    for ((name, _), values) in WAYS.iter().zip(results) {
        let (mean, deviation) = moments(values);
        let differences: Vec<f64> = values.iter().zip(&results[0]).map(|(value, local)| value - local).collect();
        let (beyond, spread) = moments(&differences);
        let t = beyond / (spread / (differences.len() as f64).sqrt());
        let t = if t.is_finite() { format!("{t:.2}") } else { "-".to_owned() };
        out::line(format!("{name:<10}{mean:>8.4}{deviation:>10.4}{beyond:>+16.4}{t:>8}"));
    }
    let freedom = results[0].len() - 1;
    out::line(format!("t is that of the paired differences, with {freedom} degrees of freedom"));
}

/// Mean and standard deviation of a sample.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}
