//! `mingle topology`: looks at topologies and writes them in other formats.

use std::ffi::OsStr;
use std::path::Path;

use mingle_planner::{Link, Topology, digraph::Digraph, distance, resilience::Resilience};

use super::design_request::read_topology;
use crate::cli::{TopologyCommand, TopologyWriteArgs};
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::{home, out};

/// At most so many names are listed in text.
const LISTED_NAMES: usize = 12;

/// Does what was asked of a topology.
pub(super) fn execute(command: &TopologyCommand, json: bool) -> Outcome {
    match command {
        TopologyCommand::Show(arguments) => {
            show(&read_topology(&arguments.topology)?, json);
            Ok(())
        }
        TopologyCommand::Convert(arguments) => write(arguments),
        TopologyCommand::Generate(arguments) => {
            if !Topology::looks_like_generator(&arguments.topology) {
                return Err(Failure::new(
                    Kind::BadInput,
                    format!("{}: this is no generator: write for example ring:n=8", arguments.topology),
                ));
            }
            write(arguments)
        }
    }
}

fn show(topology: &Topology, json: bool) {
    let links = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
    let graph = Digraph::new(topology.node_count(), links);
    let diameter = distance::diameter(&graph).unwrap_or(0);
    let resilience = Resilience::of(&graph);
    let name = |node: usize| topology.names()[node].clone();
    let cut_nodes: Vec<String> = resilience.critical_nodes.iter().map(|&node| name(node)).collect();
    let one_way = resilience.critical_links.iter().filter(|link| link.from < link.to);
    let bridges: Vec<String> = one_way.map(|link| format!("{} - {}", name(link.from), name(link.to))).collect();
    let degrees = || (0..topology.node_count()).map(|node| topology.neighbors(node).len());
    let (least, most) = (degrees().min().unwrap_or(0), degrees().max().unwrap_or(0));
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.topology/1",
            "nodes": topology.node_count(),
            "edges": topology.edges().len(),
            "min_degree": least,
            "max_degree": most,
            "diameter": diameter,
            "cut_nodes": cut_nodes,
            "bridges": bridges,
            "has_interference_graph": topology.interference_edges().is_some(),
            "has_positions": topology.positions().is_some(),
        }));
        return;
    }
    let mean = 2.0 * topology.edges().len() as f64 / topology.node_count() as f64;
    out::line(format!("nodes      {}", topology.node_count()));
    out::line(format!("edges      {}", topology.edges().len()));
    out::line(format!("degrees    {least} to {most}, {mean:.1} on average"));
    out::line(format!("diameter   {diameter}"));
    out::line(format!("cut nodes  {}", listed(&cut_nodes)));
    out::line(format!("bridges    {}", listed(&bridges)));
    if let Some(edges) = topology.interference_edges() {
        out::line(format!("interference graph of {} edges", edges.len()));
    }
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count => {
            let rest = if count > LISTED_NAMES { ", ..." } else { "" };
            format!("{count}: {}{rest}", names.iter().take(LISTED_NAMES).cloned().collect::<Vec<_>>().join(", "))
        }
    }
}

fn write(arguments: &TopologyWriteArgs) -> Outcome {
    let topology = read_topology(&arguments.topology)?;
    let Some(path) = &arguments.output else {
        out::line(topology.to_json().trim_end());
        return Ok(());
    };
    let text = text(&topology, path)?;
    home::write_atomically(path, text.as_bytes())
        .or_fail(Kind::BadInput, format!("cannot write {}", path.display()))?;
    eprintln!("wrote      {}", path.display());
    Ok(())
}

/// The topology in the format that the ending names.
fn text(topology: &Topology, path: &Path) -> Outcome<String> {
    match path.extension().and_then(OsStr::to_str).unwrap_or_default() {
        "json" => Ok(topology.to_json()),
        "graphml" => Ok(topology.to_graphml()),
        "dot" | "gv" => Ok(topology.to_dot()),
        "edges" | "txt" => topology.to_edge_list().ok_or_else(|| {
            Failure::new(Kind::BadInput, "a node has a name that an edge list cannot hold: use .json or .graphml")
        }),
        _ => Err(Failure::new(
            Kind::BadInput,
            format!("{}: the ending says what to write: use .json, .edges, .graphml or .dot", path.display()),
        )),
    }
}
