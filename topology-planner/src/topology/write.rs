//! Writing of topologies as text. All forms but DOT are read back by [`Topology::parse`] as the same graph with the
//! same names.

use std::fmt::Write as _;

use super::Topology;
use crate::dot_text::quoted;
use mingle_plot::document::escaped;

impl Topology {
    /// JSON with `nodes`, `edges` and, where known, `interference` and `positions`; one item a line.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let topology = Topology::generate("rg:n=9,r=0.6,seed=2")?;
    /// assert_eq!(Topology::parse(&topology.to_json())?, topology);
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let string = |text: &String| serde_json::Value::from(text.as_str()).to_string();
        let nodes =
            self.names().iter().enumerate().map(|(id, name)| format!("{{\"id\": {id}, \"label\": {}}}", string(name)));
        let mut text = format!("{{\n  \"nodes\": [\n    {}\n  ],\n", joined(nodes));
        let edges = self.edges().iter().map(|(u, v)| format!("[{u}, {v}]"));
        let _ = write!(text, "  \"edges\": [\n    {}\n  ]", joined(edges));
        if let Some(pairs) = self.interference_edges() {
            let pairs = pairs.iter().map(|(u, v)| format!("[{u}, {v}]"));
            let _ = write!(text, ",\n  \"interference\": [\n    {}\n  ]", joined(pairs));
        }
        if let Some(places) = self.positions() {
            let places = places.iter().map(|[x, y]| format!("[{}, {}]", json_number(*x), json_number(*y)));
            let _ = write!(text, ",\n  \"positions\": [\n    {}\n  ]", joined(places));
        }
        text.push_str("\n}\n");
        text
    }

    /// An edge list: two names a line. A name must not hold a blank, a separator or `#`, be an arrow, or begin like a
    /// quote, a comment, JSON or XML: a reader could not distinguish it from the list's own signs.
    ///
    /// # Errors
    ///
    /// `UnwritableName` with the first name that cannot be written.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// assert_eq!(Topology::generate("ring:n=3")?.to_edge_list().as_deref(), Ok("node-0 node-1\nnode-0 node-2\nnode-1 node-2\n"));
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    pub fn to_edge_list(&self) -> Result<String, UnwritableName> {
        let unusable = |name: &&String| {
            name.contains([' ', '\t', ',', ';', '|', '#']) || name.as_str() == "->" || looks_marked(name)
        };
        if let Some(name) = self.names().iter().find(unusable) {
            return Err(UnwritableName { name: name.clone() });
        }
        let mut text = String::new();
        for &(u, v) in self.edges() {
            let _ = writeln!(text, "{} {}", self.names()[u], self.names()[v]);
        }
        Ok(text)
    }

    /// GraphML: an undirected graph whose node ids are the names, with `x` and `y` where known.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// let topology = Topology::generate("grid:rows=2,cols=3")?;
    /// assert_eq!(Topology::parse(&topology.to_graphml())?, topology);
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    #[must_use]
    pub fn to_graphml(&self) -> String {
        let mut text = String::from(concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
            "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
            "  <key id=\"x\" for=\"node\" attr.name=\"x\" attr.type=\"double\"/>\n",
            "  <key id=\"y\" for=\"node\" attr.name=\"y\" attr.type=\"double\"/>\n",
            "  <graph edgedefault=\"undirected\">\n",
        ));
        for (node, name) in self.names().iter().enumerate() {
            let id = escaped(name);
            let _ = match self.positions() {
                None => writeln!(text, "    <node id=\"{id}\"/>"),
                Some(places) => {
                    let [x, y] = places[node];
                    writeln!(text, "    <node id=\"{id}\"><data key=\"x\">{x}</data><data key=\"y\">{y}</data></node>")
                }
            };
        }
        for &(u, v) in self.edges() {
            let source = escaped(&self.names()[u]);
            let target = escaped(&self.names()[v]);
            let _ = writeln!(text, "    <edge source=\"{source}\" target=\"{target}\"/>");
        }
        text.push_str("  </graph>\n</graphml>\n");
        text
    }

    /// DOT: an undirected graph, with `pos` where known, for `neato -n`.
    ///
    /// ```
    /// use mingle_planner::Topology;
    /// assert!(Topology::generate("star:n=4")?.to_dot().contains("0 -- 3;"));
    /// # Ok::<(), mingle_planner::TopologyError>(())
    /// ```
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = String::from("graph topology {\n  node [shape=circle];\n");
        for (node, name) in self.names().iter().enumerate() {
            let place = self.positions().map(|places| places[node]);
            let place = place.map_or_else(String::new, |[x, y]| format!(", pos=\"{x},{y}\""));
            let _ = writeln!(text, "  {node} [label={}{place}];", quoted(name));
        }
        for (u, v) in self.edges() {
            let _ = writeln!(text, "  {u} -- {v};");
        }
        text.push_str("}\n");
        text
    }
}

/// A name that an edge list cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an edge list cannot hold the name {name:?}: blanks, separators, quotes and # have a meaning of their own there; use JSON or GraphML"
)]
pub struct UnwritableName {
    /// The name.
    pub name: String,
}

/// Returns `true` if this name would be taken for the beginning of a quote, of a comment, or of JSON or XML.
fn looks_marked(name: &str) -> bool {
    name.starts_with(['{', '[', '<', '\u{feff}', '"', '\'', '(', '%', '*', '>']) || name.starts_with("//")
}

/// A number as JSON has it: whole numbers with a fraction, so that they stay real numbers.
fn json_number(x: f64) -> String {
    serde_json::Value::from(x).to_string()
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",\n    ")
}
