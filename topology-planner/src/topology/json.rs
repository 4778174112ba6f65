//! JSON topologies: node and edge lists, node-link data of networkx and D3, or the base graph of a plan file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

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
#[serde(untagged)]
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

#[derive(Deserialize)]
#[serde(untagged, expecting = "a node is named by a whole number or a string")]
enum Id {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an edge is [u, v], or an object with source and target")]
enum Edge {
    Pair(Id, Id),
    Object {
        source: Id,
        target: Id,
        #[serde(flatten)]
        attributes: BTreeMap<String, IgnoredAny>,
    },
}

/// The edges under the name that they have in D3 and in networkx before 3.4.
#[derive(Deserialize)]
struct Links {
    links: Option<Vec<Edge>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Positions {
    ByNumber(Vec<[f64; 2]>),
    ById(BTreeMap<String, [f64; 2]>),
}

/// Reads a plan's base graph, or a graph with `nodes` and `edges` or `links`.
pub(super) fn read(text: &str) -> Result<TopologyReading, TopologyError> {
    let mut document: GraphDocument = parse(text)?;
    let Some(nodes) = document.nodes.take() else {
        return Err(missing("\"nodes\""));
    };
    if let Some(base) = &document.base {
        return read_base(&nodes, base);
    }
    let edges = match document.edges.take() {
        Some(edges) => Some(edges),
        None => parse::<Links>(text)?.links,
    };
    match edges {
        Some(edges) => read_graph(&nodes, edges, document),
        None => Err(missing("\"edges\"")),
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
    Ok(TopologyReading { topology, format: TopologyFormat::Plan, edge_attributes, named_by_label: 0, placed: 0 })
}

fn read_graph(nodes: &[JsonNode], edges: Vec<Edge>, document: GraphDocument) -> Result<TopologyReading, TopologyError> {
    let mut builder = Builder::default();
    for (number, node) in nodes.iter().enumerate() {
        let number = builder.add_node(&node.id(number))?;
        if let JsonNode::Object(object) = node {
            object.attributes.iter().for_each(|(name, value)| describe(&mut builder, number, name, value));
        }
    }
    let ids = builder.ids().to_vec();
    for edge in edges {
        if let Edge::Object { attributes, .. } = &edge {
            // `key` distinguishes several edges between two nodes, and `id` is the number of an edge.
            let names = attributes.keys().map(String::as_str).filter(|name| !["key", "id"].contains(name));
            builder.note_attributes(names);
        }
        let ends = edge.ends(&builder)?;
        builder.link(ends, document.directed == Some(true));
    }
    let interference = document
        .interference
        .map(|edges| edges.into_iter().map(|edge| edge.ends(&builder)).collect::<Result<Vec<_>, _>>());
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

impl Edge {
    /// The numbers of the ends of an edge.
    fn ends(self, builder: &Builder) -> Result<(usize, usize), TopologyError> {
        let (Self::Pair(u, v) | Self::Object { source: u, target: v, .. }) = self;
        Ok((builder.number(u.text())?, builder.number(v.text())?))
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

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
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
    let message = format!("the JSON has no {key}: write {{\"nodes\": [...], \"edges\": [[u, v], ...]}}");
    TopologyError::Json { line: 1, column: 1, message }
}

fn json_error(error: &serde_json::Error) -> TopologyError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    // serde_json ends its messages with the position, which we report first.
    let message = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
    TopologyError::Json { line, column, message }
}
