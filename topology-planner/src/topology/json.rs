//! JSON topologies: node and edge lists, or the base graph of a plan file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{Builder, Topology, TopologyError};

/// A graph as a list of nodes and a list of edges; keys that are not listed here are ignored.
#[derive(Deserialize)]
struct GraphDocument {
    nodes: Option<Vec<Node>>,
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
enum Node {
    Id(Id),
    Object { id: Option<Id>, name: Option<String>, label: Option<String> },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a node is named by a whole number or a string")]
enum Id {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
struct Edge(Id, Id);

#[derive(Deserialize)]
#[serde(untagged)]
enum Positions {
    ByNumber(Vec<[f64; 2]>),
    ById(BTreeMap<String, [f64; 2]>),
}

/// Reads a plan's base graph, or a graph with `nodes` and `edges`.
pub(super) fn read(text: &str) -> Result<Topology, TopologyError> {
    let document: GraphDocument = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let Some(nodes) = document.nodes else {
        return Err(missing("\"nodes\""));
    };
    match (document.base, document.edges) {
        (Some(base), _) => read_base(nodes, &base),
        (None, Some(edges)) => {
            let directed = document.directed == Some(true);
            read_graph(nodes, edges, document.interference, directed, document.positions)
        }
        (None, None) => Err(missing("\"edges\"")),
    }
}

/// A plan file numbers its nodes from 0 in the order of its list.
fn read_base(nodes: Vec<Node>, base: &BaseGraph) -> Result<Topology, TopologyError> {
    let names = nodes.into_iter().enumerate().map(|(number, node)| node.id_and_label(number).0).collect();
    let topology = Topology::new(names, &base.edges)?;
    match &base.interference {
        None => Ok(topology),
        Some(edges) => topology.with_interference(edges),
    }
}

fn read_graph(
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    interference: Option<Vec<Edge>>,
    directed: bool,
    positions: Option<Positions>,
) -> Result<Topology, TopologyError> {
    let mut builder = Builder::default();
    let mut labels = Vec::with_capacity(nodes.len());
    for (number, node) in nodes.into_iter().enumerate() {
        let (id, label) = node.id_and_label(number);
        builder.add_node(&id)?;
        labels.push(label);
    }
    let ids = builder.names.clone();
    let edges = edges.into_iter().map(|edge| builder.ends(edge)).collect::<Result<Vec<_>, _>>()?;
    let interference = interference
        .map(|edges| edges.into_iter().map(|edge| builder.ends(edge)).collect::<Result<Vec<_>, _>>())
        .transpose()?;
    *(if directed { &mut builder.one_way } else { &mut builder.edges }) = edges;
    let topology = rename(builder.finish()?, labels);
    let topology = match interference {
        Some(edges) => topology.with_interference(&edges)?,
        None => topology,
    };
    Ok(match place(&ids, positions) {
        Some(places) => topology.with_positions(places),
        None => topology,
    })
}

impl Builder {
    /// The numbers of the ends of an edge.
    fn ends(&self, Edge(u, v): Edge) -> Result<(usize, usize), TopologyError> {
        let number = |id: String| self.numbers.get(&id).copied().ok_or(TopologyError::UnknownNode { id });
        Ok((number(u.text())?, number(v.text())?))
    }
}

/// Labels become names if every node has one and all are usable and differ; ids stay otherwise.
fn rename(topology: Topology, labels: Vec<Option<String>>) -> Topology {
    let named = labels.into_iter().collect::<Option<Vec<_>>>();
    let renamed = named.and_then(|names| Topology::new(names, topology.edges()).ok());
    renamed.unwrap_or(topology)
}

fn place(ids: &[String], positions: Option<Positions>) -> Option<Vec<[f64; 2]>> {
    match positions? {
        Positions::ByNumber(places) => Some(places),
        Positions::ById(places) => ids.iter().map(|id| places.get(id).copied()).collect(),
    }
}

impl Node {
    fn id_and_label(self, number: usize) -> (String, Option<String>) {
        match self {
            Self::Id(id) => (id.text(), None),
            Self::Object { id, name, label } => {
                let label = name.or(label);
                let id = id.map(Id::text).or_else(|| label.clone()).unwrap_or_else(|| number.to_string());
                (id, label)
            }
        }
    }
}

impl Id {
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

/// Positions only serve drawing: in a form that is not known they are left out.
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
    // serde_json ends its messages with the place, which we report first.
    let message = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
    TopologyError::Json { line, column, message }
}
