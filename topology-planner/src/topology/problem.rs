//! Errors of topologies.

use std::fmt;

use super::{MAX_EDGES, MAX_NAME_BYTES, MAX_NODES};

/// The reason why a text or a list of edges is not a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TopologyError {
    /// There are no nodes.
    #[error("the topology is empty: give at least two nodes and an edge between them")]
    Empty,
    /// There is one node only.
    #[error("node {node:?} is alone: a topology needs at least two nodes")]
    SingleNode { node: String },
    /// More nodes than [`MAX_NODES`].
    #[error("the topology has {nodes} nodes or more: the limit is {MAX_NODES}")]
    TooManyNodes { nodes: usize },
    /// More edges than [`MAX_EDGES`].
    #[error("the topology has {edges} edges or more: the limit is {MAX_EDGES}")]
    TooManyEdges { edges: usize },
    /// Two nodes have the same name or id.
    #[error("two nodes are called {name:?}: give each its own name")]
    DuplicateName { name: String },
    /// A name is empty, longer than [`MAX_NAME_BYTES`] or holds control characters.
    #[error("the name of node {node} is empty, longer than {MAX_NAME_BYTES} bytes, or holds a control character")]
    UnusableName { node: usize },
    /// An edge names a node number that does not exist.
    #[error("edge [{u}, {v}] names a node that does not exist: the {nodes} nodes are numbered from 0")]
    UnknownNumber { u: usize, v: usize, nodes: usize },
    /// An edge names a node id that is not among the nodes.
    #[error("an edge names {id:?}, which is not among the nodes: add the node or correct the edge")]
    UnknownNode { id: String },
    /// An edge joins a node to itself.
    #[error("node {node:?} has an edge to itself: remove it, every node hears itself anyway")]
    SelfLoop { node: String },
    /// A link has no reverse.
    #[error(
        "{from:?} reaches {to:?} but not the other way round: a topology needs every link in both directions; add the \
         reverse, or write the graph as an undirected one"
    )]
    OneWay { from: String, to: String },
    /// Some nodes cannot reach others.
    #[error("the topology falls into {} parts with no edge between them: {components}", components.0.len())]
    Disconnected { components: NamedComponents },
    /// The interference graph lacks an edge of the topology.
    #[error("the interference graph lacks the edge {u:?} - {v:?} of the topology: who is heard also disturbs, add it")]
    InterferenceMissesEdge { u: String, v: String },
    /// A line of an edge list is not understood.
    #[error(
        "line {line}: {text:?} is not an edge: write two node names, as in \"ana ben\", and behind them nothing, \
         {{attributes}}, or a number on every line"
    )]
    EdgeList { line: usize, text: String },
    /// A line of a list or table of edges is ambiguous, or does not fit the others.
    #[error("line {line}: {text:?} {reason}")]
    EdgeLine { line: usize, text: String, reason: String },
    /// The text is in another format of graphs.
    #[error("it looks like {format}, which is not read: {way_out}")]
    Foreign { format: &'static str, way_out: &'static str },
    /// An error in the contents of one line.
    #[error("line {line}: {fault}")]
    AtLine { line: usize, fault: Box<Self> },
    /// Every line of an edge list has a third column that could be a weight or a neighbour.
    #[error(
        "line {line}: {text:?} could be an edge with a weight, or a node with two neighbours: leave the weights out, or \
         write one edge on each line"
    )]
    WeightOrNeighbor { line: usize, text: String },
    /// The JSON is not a topology.
    #[error("line {line}, column {column}: {message}")]
    Json { line: usize, column: usize, message: String },
    /// The text is not GML.
    #[error("line {line}: {message}")]
    Gml { line: usize, message: String },
    /// The XML is not GraphML.
    #[error("line {line}: {message}")]
    GraphMl { line: usize, message: String },
    /// There is no generator of this name.
    #[error("there is no generator {name:?}: use one of {known}")]
    UnknownGenerator { name: String, known: String },
    /// A generator's parameter is missing, unknown, given twice or out of range.
    #[error("generator {generator:?}: {message}")]
    GeneratorParameter { generator: String, message: String },
    /// A random generator found no connected graph.
    #[error(
        "{expression}: none of {draws} draws is connected; the last falls into {} parts: {components}; \
         ask for more edges or another seed", components.0.len()
    )]
    NeverConnected { expression: String, draws: usize, components: NamedComponents },
}

impl TopologyError {
    /// The error with the line at fault; unchanged for line 0, which stands for none.
    pub(super) fn at_line(self, line: usize) -> Self {
        if line == 0 { self } else { Self::AtLine { line, fault: Box::new(self) } }
    }
}

/// The connected components of a graph, by node names. Displays the first few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedComponents(pub Vec<Vec<String>>);

impl fmt::Display for NamedComponents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_COMPONENTS: usize = 4;
        const SHOWN_NAMES: usize = 8;
        for (at, names) in self.0.iter().take(SHOWN_COMPONENTS).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{{{}", names[..names.len().min(SHOWN_NAMES)].join(", "))?;
            if names.len() > SHOWN_NAMES {
                write!(f, " and {} more", names.len() - SHOWN_NAMES)?;
            }
            f.write_str("}")?;
        }
        match self.0.len().saturating_sub(SHOWN_COMPONENTS) {
            0 => Ok(()),
            more => write!(f, " and {more} more parts"),
        }
    }
}
