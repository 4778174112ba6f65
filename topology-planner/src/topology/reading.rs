//! Reading of topologies from text of any format, with what the text contains beyond nodes and edges.

use std::collections::BTreeSet;
use std::fmt;

use super::{Topology, TopologyError, edge_list, gml, graphml, json};

/// The most names of attributes that are kept for a message, and the most characters of one.
const MOST_NAMES: usize = 8;
const MOST_CHARACTERS: usize = 40;

/// A topology as it was read, and other contents of its text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TopologyReading {
    /// The graph.
    pub topology: Topology,
    /// The format of the text.
    pub format: TopologyFormat,
    /// Attributes of edges, such as weights. A topology uses none: it holds only which nodes reach which.
    pub edge_attributes: EdgeAttributes,
    /// The number of nodes whose name is a label instead of the id.
    pub named_by_label: usize,
    /// The number of nodes with a place of their own.
    pub placed: usize,
}

/// A format of topologies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyFormat {
    /// A plan file: its base graph.
    Plan,
    /// JSON with `nodes` and `edges`, node-link data of networkx and D3 included.
    Json,
    /// GraphML.
    GraphMl,
    /// GML.
    Gml,
    /// An edge list.
    EdgeList,
}

impl TopologyFormat {
    /// The name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Json => "JSON",
            Self::GraphMl => "GraphML",
            Self::Gml => "GML",
            Self::EdgeList => "edge list",
        }
    }
}

/// Attributes of edges that a text holds and a topology does not: weights, capacities, labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EdgeAttributes {
    edges: usize,
    names: BTreeSet<String>,
}

impl EdgeAttributes {
    /// The number of edges that have one.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Records the names of the attributes of one edge; only the first few of all edges are kept.
    pub(super) fn note<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let mut has_one = false;
        for name in names {
            has_one = true;
            if self.names.len() < MOST_NAMES {
                self.names.insert(name.chars().filter(|sign| !sign.is_control()).take(MOST_CHARACTERS).collect());
            }
        }
        self.edges += usize::from(has_one);
    }
}

/// The names of the attributes, such as `LinkSpeed, weight`; the first eight, then an ellipsis.
impl fmt::Display for EdgeAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let more = if names.len() == MOST_NAMES { ", ..." } else { "" };
        write!(f, "{}{more}", names.join(", "))
    }
}

impl Topology {
    /// Reads a topology from text of any of these formats:
    ///
    /// - a plan file (`"format": "mingle-plan/1"`): its nodes and its base graph;
    /// - JSON `{"nodes": [...], "edges": [[u, v], ...]}`, where nodes are numbers, strings, or objects with an `id` and
    ///   perhaps a `label` or `name` and coordinates, `positions` gives plane coordinates by node, and `interference`
    ///   the pairs of nodes that disturb each other where these are not the edges. An edge may be an object with
    ///   `source` and `target`, and the edges be called `links`, as in node-link data of networkx and D3;
    /// - GraphML and GML, as networkx, igraph and the Topology Zoo write them;
    /// - an edge list: `u v` per line, `#` starts a comment, `u -> v` is a link in one direction. The names may be
    ///   followed by the attributes of networkx (`{'weight': 2.5}`) or, on every line, a number. A first line such as
    ///   `source,target` is a header.
    ///
    /// The label of a node becomes its name where no other node has the same; the others keep their ids. Coordinates
    /// are `x` and `y`, or `Longitude` and `Latitude`; other attributes of nodes are left out. Attributes of edges,
    /// weights among them, are left out too: the reading names them.
    ///
    /// Neighbours must receive from each other: a graph marked directed is accepted only when every link has its
    /// reverse.
    ///
    /// # Errors
    ///
    /// The errors of [`Topology::new`], text that is none of the formats (with the line), and links without a reverse.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let reading = Topology::read("0 1 {'weight': 2.5}\n1 2 {'weight': 4}\n")?;
    /// assert_eq!(reading.topology.edges(), [(0, 1), (1, 2)]);
    /// assert_eq!((reading.edge_attributes.edges(), reading.edge_attributes.to_string()), (2, "weight".to_owned()));
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    pub fn read(text: &str) -> Result<TopologyReading, TopologyError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match text.trim_start().chars().next() {
            None => Err(TopologyError::Empty),
            Some('{' | '[') => json::read(text),
            Some('<') => graphml::read(text),
            Some(_) if gml::looks_like(text) => gml::read(text),
            Some(_) => edge_list::read(text),
        }
    }
}
