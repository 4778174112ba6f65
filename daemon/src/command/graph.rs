//! `mingle graph`: properties of a graph.

use std::path::Path;

use mingle_graphs::{NodeData, Overlap, deal_out, homophily};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use mingle_problems::read_graph;
use serde::Serialize;

use crate::cli::GraphShowArgs;
use crate::out;

/// Reads and describes a graph.
pub(super) fn show(arguments: &GraphShowArgs, json: bool) -> Result {
    let data = read(&arguments.data)?;
    let parts = match arguments.clients {
        Some(clients) => dealt(&data, clients, arguments.seed)?,
        None => Vec::new(),
    };
    if json {
        let parts: Vec<GraphSummary> = parts.iter().map(GraphSummary::of).collect();
        out::line(
            serde_json::json!({ "schema": "mingle.graph/1", "graph": GraphSummary::of(&data), "clients": parts }),
        );
        return Ok(());
    }
    let summary = GraphSummary::of(&data);
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
        let summary = GraphSummary::of(part);
        out::line(format!("{at:>4}  {:>6} nodes {:>7} edges  {}", summary.nodes, summary.edges, measures(&summary)));
    }
    Ok(())
}

fn read(text: &str) -> Result<NodeData> {
    let text = text.strip_prefix("graph:").unwrap_or(text);
    read_graph(text, Path::new("")).context(ErrorKind::BadInput, format!("the graph {text} cannot be used"))
}

fn dealt(data: &NodeData, clients: usize, seed: u64) -> Result<Vec<NodeData>> {
    let parts = deal_out(data.graph(), clients, Overlap::Disjoint, seed);
    let parts = parts.context(ErrorKind::BadInput, format!("--clients {clients}"))?;
    Ok(parts.iter().map(|nodes| data.induced(nodes)).collect())
}

#[derive(Serialize)]
struct GraphSummary {
    nodes: usize,
    edges: usize,
    features: usize,
    /// Number of nodes of each class.
    classes: Vec<usize>,
    edge_homophily: Option<f64>,
    node_homophily: Option<f64>,
    adjusted_homophily: Option<f64>,
    notes: Vec<String>,
}

impl GraphSummary {
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

fn measures(summary: &GraphSummary) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let [edge, node, adjusted] =
        [summary.edge_homophily, summary.node_homophily, summary.adjusted_homophily].map(number);
    format!("edge {edge}, node {node}, adjusted {adjusted}")
}
