//! JSON topologies: node and edge lists, node-link and adjacency data of networkx, graphs of D3 and Cytoscape, or the
//! base graph of a plan file.

mod adjacency;
mod cytoscape;
mod id;
mod not_a_number;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

use self::id::{Edge, Id, are_places};
use super::builder::Builder;
use super::reading::{EdgeAttributes, TopologyFormat, TopologyReading};
use super::{Topology, TopologyError};

/// A graph as a list of nodes and a list of edges; keys that are not listed here are ignored.
#[derive(Deserialize)]
struct GraphDocument {
    nodes: Option<Vec<JsonNode>>,
    edges: Option<Vec<Edge>>,
    base: Option<BaseGraph>,
    /// Pairs of nodes that disturb each other, where these are not the edges.
    #[serde(default)]
    interference: Option<Vec<Edge>>,
    #[serde(default)]
    directed: Option<bool>,
    #[serde(default, deserialize_with = "positions_or_nothing")]
    positions: Option<Positions>,
}

/// The base graph of a plan file.
#[derive(Deserialize)]
struct BaseGraph {
    edges: Vec<(usize, usize)>,
    #[serde(default)]
    interference: Option<Vec<(usize, usize)>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a node is a number, a string, or an object with an id")]
enum JsonNode {
    Id(Id),
    Object(NodeObject),
}

#[derive(Deserialize)]
struct NodeObject {
    id: Option<Id>,
    #[serde(flatten)]
    attributes: BTreeMap<String, Value>,
}

/// The edges under the name that they have in D3 and in networkx before 3.4.
#[derive(Deserialize)]
struct Links {
    links: Option<Vec<Edge>>,
}

/// A second list of edges, under the other name: only its presence counts.
#[derive(Deserialize)]
struct OtherLinks {
    #[serde(default)]
    links: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Positions {
    ByNumber(Vec<[f64; 2]>),
    ById(BTreeMap<String, [f64; 2]>),
}

/// Reads a plan's base graph, or a graph with `nodes` and `edges` or `links`, or one of Cytoscape. `NaN`, which Python
/// writes and JSON does not have, is read as `null`.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    match read_strictly(text) {
        Err(error @ TopologyError::Json { .. }) => match not_a_number::replaced(text) {
            Some(text) => read_strictly(&text),
            None => Err(error),
        },
        reading => reading,
    }
}

fn read_strictly(text: &str) -> Result<TopologyReading, TopologyError> {
    if text.trim_start().starts_with('[') {
        return cytoscape::read_list(text);
    }
    let mut document: GraphDocument = parse(text)?;
    let Some(nodes) = document.nodes.take() else {
        return cytoscape::read(text)?.ok_or_else(|| missing("\"nodes\""));
    };
    if let Some(base) = &document.base {
        return read_base(&nodes, base);
    }
    match edges(text, document.edges.take())? {
        Some(edges) => read_graph(&nodes, edges, document),
        None => adjacency::read(text, &nodes)?.ok_or_else(|| missing("\"edges\"")),
    }
}

/// The edges, called `edges` or `links`.
fn edges(text: &str, edges: Option<Vec<Edge>>) -> Result<Option<Vec<Edge>>, TopologyError> {
    let has_links = || -> Result<bool, TopologyError> {
        let other = if text.contains("\"links\"") { parse::<OtherLinks>(text)?.links } else { None };
        Ok(other.as_ref().and_then(Value::as_array).is_some_and(|links| !links.is_empty()))
    };
    match edges {
        None => Ok(parse::<Links>(text)?.links),
        Some(edges) if !has_links()? => Ok(Some(edges)),
        Some(edges) if edges.is_empty() => Ok(parse::<Links>(text)?.links),
        Some(_) => Err(fault("the JSON has edges under \"edges\" and under \"links\": keep one of the lists")),
    }
}

fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, TopologyError> {
    serde_json::from_str(text).map_err(|error| json_error(&error))
}

/// Reads the base graph of a plan file, which numbers its nodes from 0 in the order of its list.
fn read_base(nodes: &[JsonNode], base: &BaseGraph) -> Result<TopologyReading, TopologyError> {
    let names = nodes.iter().enumerate().map(|(number, node)| node.id(number)).collect();
    let topology = Topology::new(names, &base.edges)?;
    let topology = match &base.interference {
        None => topology,
        Some(edges) => topology.with_interference(edges)?,
    };
    let edge_attributes = EdgeAttributes::default();
    Ok(TopologyReading {
        topology,
        format: TopologyFormat::Plan,
        edge_attributes,
        named_by_label: 0,
        placed: 0,
        repeated: 0,
    })
}

/// A builder with the nodes of a list.
fn with_nodes(nodes: &[JsonNode]) -> Result<Builder, TopologyError> {
    let mut builder = Builder::default();
    for (number, node) in nodes.iter().enumerate() {
        let number = builder.add_node(&node.id(number))?;
        if let JsonNode::Object(object) = node {
            object.attributes.iter().for_each(|(name, value)| describe(&mut builder, number, name, value));
        }
    }
    Ok(builder)
}

fn read_graph(nodes: &[JsonNode], edges: Vec<Edge>, document: GraphDocument) -> Result<TopologyReading, TopologyError> {
    let mut builder = with_nodes(nodes)?;
    let ids = builder.ids().to_vec();
    let by_place = are_places(&edges, &builder);
    for edge in edges {
        builder.note_attributes(edge.attributes());
        let ends = edge.ends(&builder, by_place)?;
        builder.link(ends, document.directed == Some(true))?;
    }
    let interference = document
        .interference
        .map(|edges| edges.into_iter().map(|edge| edge.ends(&builder, by_place)).collect::<Result<Vec<_>, _>>());
    let interference = interference.transpose()?;
    let mut reading = builder.finish(TopologyFormat::Json)?;
    if let Some(edges) = interference {
        reading.topology = reading.topology.with_interference(&edges)?;
    }
    if let Some(places) = place(&ids, document.positions) {
        reading.topology = reading.topology.with_positions(places);
        reading.placed = ids.len();
    }
    Ok(reading)
}

/// Passes on attributes that are text or numbers; others are not used.
fn describe(builder: &mut Builder, node: usize, name: &str, value: &Value) {
    match value {
        Value::String(text) => builder.describe(node, name, text),
        Value::Number(number) => builder.describe(node, name, &number.to_string()),
        _ => {}
    }
}

fn place(ids: &[String], positions: Option<Positions>) -> Option<Vec<[f64; 2]>> {
    match positions? {
        Positions::ByNumber(places) => Some(places),
        Positions::ById(places) => ids.iter().map(|id| places.get(id).copied()).collect(),
    }
}

impl JsonNode {
    /// The id of a node; without an id its name or label; without these its number.
    fn id(&self, number: usize) -> String {
        let object = match self {
            Self::Id(id) => return id.text(),
            Self::Object(object) => object,
        };
        let text = |key: &str| object.attributes.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = object.id.as_ref().map(Id::text);
        id.or_else(|| text("name")).or_else(|| text("label")).unwrap_or_else(|| number.to_string())
    }
}

/// Reads positions; these only serve drawing, so those of an unknown form are left out.
fn positions_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Positions>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Anything {
        Known(Positions),
        Other(IgnoredAny),
    }
    Ok(match Anything::deserialize(deserializer)? {
        Anything::Known(positions) => Some(positions),
        Anything::Other(_) => None,
    })
}

fn missing(key: &str) -> TopologyError {
    fault(format!(
        "the JSON has no {key}: write {{\"nodes\": [...], \"edges\": [[u, v], ...]}}, as networkx.node_link_data does"
    ))
}

/// An error of the whole document.
fn fault(message: impl Into<String>) -> TopologyError {
    TopologyError::Json { line: 1, column: 1, message: message.into() }
}

fn json_error(error: &serde_json::Error) -> TopologyError {
    let line = error.line();
    let column = error.column();
    let message = error.to_string();
    // serde_json ends its messages with the position, which we report first.
    let message = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
    TopologyError::Json { line, column, message }
}
