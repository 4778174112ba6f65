//! The base topology: the pairs of nodes that can receive from each other.
//!
//! \[NH\] section 2: an undirected, simple, connected graph `G = (V, E)`; self-loops are implied. A [`Topology`] that
//! exists has these properties. It is read from text by [`Topology::parse`], made by [`Topology::generate`], or built
//! from edges by [`Topology::new`].

mod builder;
mod edge_list;
mod foreign;
mod generator;
mod gml;
mod graphml;
mod json;
mod node_details;
mod problem;
mod read;
mod reading;
mod summary;
mod write;

pub use self::{
    problem::{NamedComponents, TopologyError},
    reading::{EdgeAttributes, TopologyFormat, TopologyReading},
    summary::TopologySummary,
    write::UnwritableName,
};

/// The most nodes a topology may have.
pub const MAX_NODES: usize = 1 << 20;

/// The most edges a topology may have: an exponential graph on [`MAX_NODES`] nodes has 20 million.
pub const MAX_EDGES: usize = 1 << 25;

/// The most bytes the name of a node may have.
pub const MAX_NAME_BYTES: usize = 256;

/// A base topology, whose edges join nodes that can receive from each other: simple, connected and undirected, with
/// named nodes.
///
/// Nodes are numbered from 0 in the order of their names; edges are pairs `(u, v)` with `u < v`, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    names: Vec<String>,
    hearing: Adjacency,
    interference: Option<Adjacency>,
    positions: Option<Vec<[f64; 2]>>,
}

/// An undirected graph, as edges and as neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Adjacency {
    edges: Vec<(usize, usize)>,
    neighbors: Vec<Vec<usize>>,
}

impl Topology {
    /// Builds a topology from the names of its nodes and its edges. An edge given twice, in either direction, counts
    /// once.
    ///
    /// # Errors
    ///
    /// Fewer than two nodes, too many nodes or edges, a name that is empty, too long or used twice, an edge that names
    /// no node, a self-loop, or a graph that is not connected.
    ///
    /// ```
    /// use mingle_planner::{Topology, TopologyError};
    /// let names = ["a", "b", "c"].map(String::from).to_vec();
    /// let path = Topology::new(names.clone(), &[(0, 1), (2, 1)])?;
    /// assert_eq!(path.edges(), [(0, 1), (1, 2)]);
    /// assert!(matches!(Topology::new(names, &[(0, 1)]), Err(TopologyError::Disconnected { .. })));
    /// # Ok::<(), TopologyError>(())
    /// ```
    pub fn new(names: Vec<String>, edges: &[(usize, usize)]) -> Result<Self, TopologyError> {
        check_names(&names)?;
        let hearing = Adjacency::new(&names, edges)?;
        let components = hearing.components();
        if components.len() > 1 {
            let named = |nodes: &Vec<usize>| nodes.iter().map(|&node| names[node].clone()).collect();
            return Err(TopologyError::Disconnected {
                components: NamedComponents(components.iter().map(named).collect()),
            });
        }
        Ok(Self { names, hearing, interference: None, positions: None })
    }

    /// The topology of a text: that of [`Topology::read`], without the other contents of the text.
    ///
    /// # Errors
    ///
    /// Those of [`Topology::read`].
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let topology = Topology::parse("# three huts\nana ben\nben cho\n")?;
    /// assert_eq!(topology.names(), ["ana", "ben", "cho"]);
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        Self::read(text).map(|reading| reading.topology)
    }

    /// Makes a topology from a generator expression: `rg:n=33,r=0.5,seed=0` (random geometric: points in the unit
    /// square, joined when at most `r` apart), `erdos-renyi:n=20,p=0.3,seed=1`, `windmill:cliques=3,size=21` (cliques
    /// that share node 0), `ring:n=8`, `grid:rows=4,cols=4`, `star:n=6`, `complete:n=6`, `exponential:n=8` (node `i`
    /// joined to `i + 2^k`).
    ///
    /// The random ones are drawn again, up to 100 times from the same stream, until the graph is connected. `seed` may
    /// be left out and is then 0.
    ///
    /// # Errors
    ///
    /// An unknown generator or parameter, a value out of range, or 100 draws without a connected graph (with the
    /// components of the last one).
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let windmill = Topology::generate("windmill:cliques=3,size=21")?;
    /// assert_eq!((windmill.node_count(), windmill.edges().len()), (61, 630));
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    pub fn generate(expression: &str) -> Result<Self, TopologyError> {
        generator::generate(expression)
    }

    /// Returns `true` if the text is written like a generator expression, `name:key=value,...`, rather than like a file
    /// name.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// assert!(Topology::looks_like_generator("ring:n=8"));
    /// assert!(!Topology::looks_like_generator("ward7.json"));
    /// ```
    #[must_use]
    pub fn looks_like_generator(text: &str) -> bool {
        generator::looks_like_generator(text)
    }

    /// The same topology with an interference graph of its own: `edges` are the pairs of nodes of which one disturbs
    /// the other's reception. It must contain every edge of the topology, since a node that can be received also
    /// disturbs.
    ///
    /// # Errors
    ///
    /// An edge out of range, a self-loop, or an edge of the topology that is missing.
    pub fn with_interference(mut self, edges: &[(usize, usize)]) -> Result<Self, TopologyError> {
        let interference = Adjacency::new(&self.names, edges)?;
        let missing = self.edges().iter().find(|&&(u, v)| interference.neighbors[u].binary_search(&v).is_err());
        if let Some(&(u, v)) = missing {
            return Err(TopologyError::InterferenceMissesEdge { u: self.names[u].clone(), v: self.names[v].clone() });
        }
        self.interference = Some(interference);
        Ok(self)
    }

    /// The same topology with a place in the plane for each node, for drawing; ignored unless there is one finite place
    /// per node.
    #[must_use]
    pub fn with_positions(mut self, positions: Vec<[f64; 2]>) -> Self {
        let fits = positions.len() == self.node_count() && positions.iter().flatten().all(|x| x.is_finite());
        self.positions = fits.then_some(positions);
        self
    }

    /// The number of nodes `n`, at least 2.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.names.len()
    }

    /// The names of the nodes, in the order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The edges `(u, v)`, `u < v`, in ascending order.
    #[must_use]
    pub fn edges(&self) -> &[(usize, usize)] {
        &self.hearing.edges
    }

    /// The neighbours of `node`, with which it exchanges in both directions; ascending, without the node itself.
    #[must_use]
    pub fn neighbors(&self, node: usize) -> &[usize] {
        &self.hearing.neighbors[node]
    }

    /// Returns `true` if the two nodes are neighbours.
    #[must_use]
    pub fn has_edge(&self, u: usize, v: usize) -> bool {
        self.hearing.neighbors.get(u).is_some_and(|row| row.binary_search(&v).is_ok())
    }

    /// The edges of the interference graph; `None` if it is the topology itself.
    #[must_use]
    pub fn interference_edges(&self) -> Option<&[(usize, usize)]> {
        self.interference.as_ref().map(|graph| graph.edges.as_slice())
    }

    /// The nodes whose transmissions reach `node`, wanted or not: its neighbours in the interference graph, ascending.
    #[must_use]
    pub fn interferers(&self, node: usize) -> &[usize] {
        &self.interference.as_ref().unwrap_or(&self.hearing).neighbors[node]
    }

    /// Returns `true` if a transmission of one node reaches the other, wanted or not. A node always reaches itself.
    #[must_use]
    pub fn interferes(&self, u: usize, v: usize) -> bool {
        u == v || self.interferers(u).binary_search(&v).is_ok()
    }

    /// The place of each node in the plane, where known.
    #[must_use]
    pub fn positions(&self) -> Option<&[[f64; 2]]> {
        self.positions.as_deref()
    }

    /// The same topology without these nodes and their edges; the others keep their names, order and positions.
    ///
    /// # Errors
    ///
    /// Fewer than two nodes are left, or they are not connected.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let square = Topology::generate("ring:n=4")?;
    /// assert_eq!(square.without(&[1])?.edges(), [(0, 2), (1, 2)]);
    /// assert!(square.without(&[0, 2]).is_err());
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    pub fn without(&self, left_out: &[usize]) -> Result<Self, TopologyError> {
        let order: Vec<usize> = (0..self.node_count()).filter(|node| !left_out.contains(node)).collect();
        let rest = self.renumbered(&order)?;
        let Some(positions) = self.positions() else {
            return Ok(rest);
        };
        Ok(rest.with_positions(order.iter().map(|&node| positions[node]).collect()))
    }

    /// The same topology with the nodes renumbered: node `i` of the result is node `order[i]` of this one. Nodes that
    /// `order` leaves out are removed with their edges.
    pub(crate) fn renumbered(&self, order: &[usize]) -> Result<Self, TopologyError> {
        let mut number = vec![None; self.node_count()];
        for (new, &old) in order.iter().enumerate() {
            number[old] = Some(new);
        }
        let renumber = |edges: &[(usize, usize)]| -> Vec<(usize, usize)> {
            edges.iter().filter_map(|&(u, v)| Some((number[u]?, number[v]?))).collect()
        };
        let names = order.iter().map(|&old| self.names[old].clone()).collect();
        let topology = Self::new(names, &renumber(self.edges()))?;
        match self.interference_edges() {
            None => Ok(topology),
            Some(edges) => topology.with_interference(&renumber(edges)),
        }
    }

    /// The same topology without the positions, which a plan file does not contain.
    pub(crate) fn without_positions(mut self) -> Self {
        self.positions = None;
        self
    }
}

impl Adjacency {
    fn new(names: &[String], edges: &[(usize, usize)]) -> Result<Self, TopologyError> {
        let mut ordered = Vec::with_capacity(edges.len());
        for &(u, v) in edges {
            if u.max(v) >= names.len() {
                return Err(TopologyError::UnknownNumber { u, v, nodes: names.len() });
            }
            if u == v {
                return Err(TopologyError::SelfLoop { node: names[u].clone() });
            }
            ordered.push((u.min(v), u.max(v)));
        }
        ordered.sort_unstable();
        ordered.dedup();
        if ordered.len() > MAX_EDGES {
            return Err(TopologyError::TooManyEdges { edges: ordered.len() });
        }
        let mut neighbors = vec![Vec::new(); names.len()];
        for &(u, v) in &ordered {
            neighbors[u].push(v);
            neighbors[v].push(u);
        }
        for row in &mut neighbors {
            row.sort_unstable();
        }
        Ok(Self { edges: ordered, neighbors })
    }

    /// The connected components, each ascending, in the order of their lowest nodes.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.neighbors.len()];
        let mut components = Vec::new();
        for root in 0..self.neighbors.len() {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut component = vec![root];
            let mut at = 0;
            while let Some(&node) = component.get(at) {
                at += 1;
                for &next in &self.neighbors[node] {
                    if !seen[next] {
                        seen[next] = true;
                        component.push(next);
                    }
                }
            }
            component.sort_unstable();
            components.push(component);
        }
        components
    }
}

fn check_names(names: &[String]) -> Result<(), TopologyError> {
    if names.is_empty() {
        return Err(TopologyError::Empty);
    }
    if names.len() == 1 {
        return Err(TopologyError::SingleNode { node: names[0].clone() });
    }
    if names.len() > MAX_NODES {
        return Err(TopologyError::TooManyNodes { nodes: names.len() });
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TopologyError::DuplicateName { name: pair[0].to_owned() });
    }
    let unusable =
        |name: &&String| name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control);
    match names.iter().position(|name| unusable(&name)) {
        Some(node) => Err(TopologyError::UnusableName { node }),
        None => Ok(()),
    }
}
