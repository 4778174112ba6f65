//! A topology as text, in the forms that [`Topology::parse`] reads, and DOT.

use std::fmt::Write as _;

use super::Topology;
use crate::draw::{escaped, quoted};

impl Topology {
    /// JSON `{"nodes", "edges"}`, with `interference` and `positions` where known.
    #[must_use]
    pub fn to_json(&self) -> String {
        let nodes: Vec<serde_json::Value> =
            self.names().iter().enumerate().map(|(id, name)| serde_json::json!({ "id": id, "name": name })).collect();
        let mut document = serde_json::json!({ "nodes": nodes, "edges": self.edges() });
        if let Some(edges) = self.interference_edges() {
            document["interference"] = serde_json::json!(edges);
        }
        if let Some(positions) = self.positions() {
            document["positions"] = serde_json::json!(positions);
        }
        format!("{document}\n")
    }

    /// One edge a line, by the names of its ends. None if a name cannot stand in such a file: it has a space, a `#` or an
    /// arrow in it, or begins like another format.
    #[must_use]
    pub fn to_edge_list(&self) -> Option<String> {
        let is_word = |name: &String| {
            !name.contains(|c: char| c.is_whitespace() || matches!(c, '#' | '{' | '[' | '<' | '>' | ',' | ';'))
        };
        if !self.names().iter().all(is_word) {
            return None;
        }
        let line = |&(u, v): &(usize, usize)| format!("{} {}\n", self.names()[u], self.names()[v]);
        Some(self.edges().iter().map(line).collect())
    }

    /// GraphML with the names as labels.
    #[must_use]
    pub fn to_graphml(&self) -> String {
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
             <graph edgedefault=\"undirected\">\n",
        );
        for name in self.names() {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "    <node id=\"{}\"/>", escaped(name));
        }
        for &(u, v) in self.edges() {
            let (u, v) = (escaped(&self.names()[u]), escaped(&self.names()[v]));
            let _ = writeln!(out, "    <edge source=\"{u}\" target=\"{v}\"/>");
        }
        out + "  </graph>\n</graphml>\n"
    }

    /// Graphviz DOT.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut out = String::from("graph topology {\n");
        for (name, place) in
            self.names().iter().enumerate().map(|(node, name)| (name, self.positions().map(|p| p[node])))
        {
            let position = place.map_or_else(String::new, |[x, y]| format!(" [pos=\"{x},{y}!\"]"));
            let _ = writeln!(out, "  {}{position};", quoted(name));
        }
        for &(u, v) in self.edges() {
            let _ = writeln!(out, "  {} -- {};", quoted(&self.names()[u]), quoted(&self.names()[v]));
        }
        out + "}\n"
    }
}
