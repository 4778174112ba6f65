//! Graphs of Cytoscape, whose nodes and edges are `elements` with their `data`, as networkx writes them too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::id::Id;
use super::{describe, fault, parse};
use crate::topology::TopologyError;
use crate::topology::builder::Builder;
use crate::topology::reading::{TopologyFormat, TopologyReading};

#[derive(Deserialize)]
struct Document {
    elements: Option<Elements>,
    #[serde(default)]
    directed: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "elements are lists of nodes and edges, each with its data")]
enum Elements {
    Grouped {
        nodes: Vec<Element>,
        #[serde(default)]
        edges: Vec<Element>,
    },
    Flat(Vec<Element>),
}

/// A node or an edge.
#[derive(Deserialize)]
struct Element {
    data: BTreeMap<String, Value>,
    #[serde(default)]
    position: BTreeMap<String, Value>,
}

impl Element {
    fn is_edge(&self) -> bool {
        self.data.contains_key("source") && self.data.contains_key("target")
    }

    fn id(&self, key: &str) -> Result<String, TopologyError> {
        let id = self.data.get(key).map(Id::deserialize).and_then(Result::ok);
        id.as_ref().map(Id::text).ok_or_else(|| no_id(key))
    }
}

fn no_id(key: &str) -> TopologyError {
    fault(format!("the data of an element have no \"{key}\" that names a node"))
}

/// The graph in `elements`; `None` where the text has none.
pub(super) fn read(text: &str) -> Result<Option<TopologyReading>, TopologyError> {
    let document: Document = parse(text)?;
    let is_directed = document.directed == Some(true);
    let (nodes, edges) = match document.elements {
        None => return Ok(None),
        Some(Elements::Grouped { nodes, edges }) => (nodes, edges),
        Some(Elements::Flat(elements)) => elements.into_iter().partition(|element| !element.is_edge()),
    };
    graph(&nodes, &edges, is_directed).map(Some)
}

/// The graph of a list of elements.
pub(super) fn read_list(text: &str) -> Result<TopologyReading, TopologyError> {
    // The error of the list itself says less than that there should be none.
    let elements = parse::<Vec<Element>>(text).map_err(|error| match error {
        TopologyError::Json { line, column, message } if message.starts_with("invalid type") || message.starts_with("missing field") => {
            let message = "the JSON is a list, and not one of elements of Cytoscape: write {\"nodes\": [...], \"edges\": [[u, v], ...]}";
            TopologyError::Json { line, column, message: message.to_owned() }
        }
        error => error,
    })?;
    let (nodes, edges): (Vec<Element>, Vec<Element>) = elements.into_iter().partition(|element| !element.is_edge());
    graph(&nodes, &edges, false)
}

fn graph(nodes: &[Element], edges: &[Element], is_directed: bool) -> Result<TopologyReading, TopologyError> {
    let mut builder = Builder::default();
    for node in nodes {
        let number = builder.add_node(&node.id("id")?)?;
        node.data.iter().chain(&node.position).for_each(|(name, value)| describe(&mut builder, number, name, value));
    }
    for edge in edges {
        let names = edge.data.keys().map(String::as_str);
        builder.note_attributes(names.filter(|name| !["id", "key", "source", "target"].contains(name)));
        let ends = (builder.number(edge.id("source")?)?, builder.number(edge.id("target")?)?);
        builder.link(ends, is_directed)?;
    }
    builder.finish(TopologyFormat::Json)
}
