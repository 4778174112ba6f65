//! A topology as it was read, with what the text contains beyond nodes and edges.

use std::collections::BTreeSet;
use std::fmt;

use super::Topology;

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
    /// The number of edges that repeat another one: parallel edges, which count once.
    pub repeated: usize,
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
