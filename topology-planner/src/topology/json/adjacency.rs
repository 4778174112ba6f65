//! Adjacency data of networkx: for each node a list of its neighbours.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::id::Id;
use super::{JsonNode, fault, parse, with_nodes};
use crate::topology::TopologyError;
use crate::topology::reading::{TopologyFormat, TopologyReading};

#[derive(Deserialize)]
struct AdjacencyDocument {
    adjacency: Option<Vec<Vec<Neighbor>>>,
    #[serde(default)]
    directed: Option<bool>,
}

/// A neighbour, with the attributes of the edge.
#[derive(Deserialize)]
struct Neighbor {
    id: Id,
    #[serde(flatten)]
    attributes: BTreeMap<String, IgnoredAny>,
}

/// The graph with these nodes; `None` where the text has no `adjacency`.
pub(super) fn read(text: &str, nodes: &[JsonNode]) -> Result<Option<TopologyReading>, TopologyError> {
    let document: AdjacencyDocument = parse(text)?;
    let Some(adjacency) = document.adjacency else { return Ok(None) };
    if adjacency.len() != nodes.len() {
        let lists = adjacency.len();
        return Err(fault(format!("\"adjacency\" has {lists} lists of neighbours for {} nodes", nodes.len())));
    }
    let mut builder = with_nodes(nodes)?;
    let is_directed = document.directed == Some(true);
    let mut linked = BTreeSet::new();
    for (node, neighbors) in adjacency.into_iter().enumerate() {
        for Neighbor { id, attributes } in neighbors {
            let neighbor = builder.number(id.text())?;
            // An edge without direction is in the lists of both of its ends.
            if is_directed || node <= neighbor {
                builder.note_attributes(attributes.keys().map(String::as_str).filter(|name| *name != "key"));
            }
            let is_in_both_lists = !is_directed && node != neighbor;
            if !(is_in_both_lists && linked.contains(&(neighbor, node))) {
                builder.link((node, neighbor), is_directed)?;
            }
            linked.insert((node, neighbor));
        }
    }
    builder.finish(TopologyFormat::Json).map(Some)
}
