//! Reading of topologies from text of any format.

use super::{Topology, TopologyError, TopologyReading, edge_list, foreign, gml, graphml, json};

impl Topology {
    /// Reads a topology from text of any of these formats:
    ///
    /// - a plan file (`"format": "mingle-plan/1"`): its nodes and its base graph;
    /// - JSON `{"nodes": [...], "edges": [[u, v], ...]}`, where nodes are numbers, strings, or objects with an `id` and
    ///   perhaps a `label` or `name` and coordinates, `positions` gives plane coordinates by node, and `interference`
    ///   the pairs of nodes that disturb each other where these are not the edges. An edge may be an object with
    ///   `source` and `target`, and the edges be called `links`, as in node-link data of networkx and D3. Adjacency
    ///   data of networkx and graphs of Cytoscape are read too;
    /// - GraphML and GML, as networkx, igraph and the Topology Zoo write them;
    /// - an edge list: `u v` per line, `#` starts a comment, `u -> v` is a link in one direction. The names may be
    ///   followed by the attributes of networkx (`{'weight': 2.5}`) or, on every line, a number. Quotes hold a name with
    ///   blanks together. Where all lines have a tab, a semicolon, a bar or a comma, that separates the cells, and a
    ///   first line with names such as `source` and `target` says which columns hold the ends.
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
            Some(_) => {
                foreign::check(text)?;
                edge_list::read(text)
            }
        }
    }
}
