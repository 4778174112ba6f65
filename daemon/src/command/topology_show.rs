//! `mingle topology show`: properties of a topology.

use mingle_peer::Result;
use mingle_planner::Topology;
use mingle_planner::topology::{TopologyFormat, TopologySummary};

use crate::cli::TopologyShowArgs;
use crate::{out, topology};

/// Most names listed for people; `--json` has all.
const MOST_NAMES: usize = 10;

/// Reads and describes a topology.
pub(super) fn execute(arguments: &TopologyShowArgs, json: bool) -> Result {
    let (topology, format) = topology::read_with_format(&arguments.topology)?;
    let summary = topology.summary();
    let format = format.map(TopologyFormat::name);
    out::line(if json {
        to_json(&topology, &summary, format).to_string()
    } else {
        describe(&topology, &summary, format)
    });
    Ok(())
}

fn describe(topology: &Topology, summary: &TopologySummary, format: Option<&str>) -> String {
    let names = topology.names();
    let bridges = summary.bridges.iter().map(|&(u, v)| format!("{} - {}", names[u], names[v]));
    let cut_nodes = summary.cut_nodes.iter().map(|&node| names[node].clone());
    let diameter = summary.diameter.map_or_else(|| "not computed, too large".to_owned(), |hops| hops.to_string());
    let mut lines: Vec<String> = format.map(|format| format!("format     {format}")).into_iter().collect();
    lines.extend([
        format!("nodes      {}, connected", summary.nodes),
        format!("edges      {}", summary.edges),
        format!(
            "degree     from {} to {}, {:.2} on average",
            summary.min_degree, summary.max_degree, summary.mean_degree
        ),
        format!("diameter   {diameter}"),
        format!("bridges    {}", listed(summary.bridges.len(), bridges, "none: no lost edge splits it")),
        format!("cut nodes  {}", listed(summary.cut_nodes.len(), cut_nodes, "none: no lost node splits the rest")),
        format!("positions  {}", if topology.positions().is_some() { "one for each node" } else { "none" }),
    ]);
    if let Some(edges) = topology.interference_edges() {
        lines.push(format!("disturbs   {} pairs in an interference graph of its own", edges.len()));
    }
    lines.join("\n")
}

/// The number of names, and the first of them.
fn listed(count: usize, names: impl Iterator<Item = String>, none: &str) -> String {
    if count == 0 {
        return none.to_owned();
    }
    let shown: Vec<String> = names.take(MOST_NAMES).collect();
    let more = if count > MOST_NAMES { format!(" and {} more", count - MOST_NAMES) } else { String::new() };
    format!("{count}: {}{more}", shown.join(", "))
}

fn to_json(topology: &Topology, summary: &TopologySummary, format: Option<&str>) -> serde_json::Value {
    let names = topology.names();
    let bridges: Vec<[&str; 2]> =
        summary.bridges.iter().map(|&(u, v)| [names[u].as_str(), names[v].as_str()]).collect();
    let cut_nodes: Vec<&str> = summary.cut_nodes.iter().map(|&node| names[node].as_str()).collect();
    serde_json::json!({
        "schema": "mingle.topology/1",
        "format": format,
        "nodes": summary.nodes,
        "edges": summary.edges,
        "min_degree": summary.min_degree,
        "mean_degree": summary.mean_degree,
        "max_degree": summary.max_degree,
        "diameter": summary.diameter,
        "bridges": bridges,
        "cut_nodes": cut_nodes,
        "positions": topology.positions().is_some(),
        "interference_edges": topology.interference_edges().map(<[_]>::len),
    })
}
