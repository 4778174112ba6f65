//! Labels and positions that a text gives to its nodes.

use std::collections::BTreeMap;

use super::{Topology, check_names};

/// The value that networkx and the Topology Zoo write for a missing label.
const NO_LABEL: &str = "None";

/// Attributes of a node that are kept.
#[derive(Debug, Default)]
pub(super) struct NodeDetails {
    name: Option<String>,
    label: Option<String>,
    x: Option<f64>,
    y: Option<f64>,
}

impl NodeDetails {
    /// Takes an attribute by its name: a name, a label or a coordinate.
    pub(super) fn take(&mut self, attribute: &str, value: &str) {
        let value = value.trim();
        let text = || Some(value.to_owned()).filter(|text| !text.is_empty() && text != NO_LABEL);
        let number = || value.parse().ok().filter(|number: &f64| number.is_finite());
        match attribute.to_ascii_lowercase().as_str() {
            "name" => self.name = text(),
            "label" => self.label = text(),
            "x" | "longitude" | "lon" => self.x = number(),
            "y" | "latitude" | "lat" => self.y = number(),
            _ => {}
        }
    }

    fn label(&self) -> Option<&str> {
        self.name.as_deref().or(self.label.as_deref())
    }

    fn place(&self) -> Option<[f64; 2]> {
        Some([self.x?, self.y?])
    }
}

/// The names of the nodes: labels that only one node has, ids of the others. If these are not usable and different
/// names, the ids of all.
pub(super) fn names(ids: &[String], details: &[NodeDetails]) -> Vec<String> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for label in details.iter().filter_map(NodeDetails::label) {
        *uses.entry(label).or_default() += 1;
    }
    let own_label = |node: &NodeDetails| node.label().filter(|label| uses.get(label) == Some(&1)).map(str::to_owned);
    let names: Vec<String> =
        ids.iter().zip(details).map(|(id, node)| own_label(node).unwrap_or_else(|| id.clone())).collect();
    if check_names(&names).is_ok() { names } else { ids.to_vec() }
}

/// The topology with the places of its nodes, and the number of places in the text. With those of half of the nodes or
/// more, the others get the mean of their neighbours' places, or of all; with fewer, no node has one.
pub(super) fn place(topology: Topology, details: &[NodeDetails]) -> (Topology, usize) {
    let places: Vec<Option<[f64; 2]>> = details.iter().map(NodeDetails::place).collect();
    let known: Vec<[f64; 2]> = places.iter().flatten().copied().collect();
    if known.is_empty() || known.len() * 2 < topology.node_count() {
        return (topology, known.len());
    }
    let middle = mean(&known);
    let estimate = |node: usize| {
        let near: Vec<[f64; 2]> = topology.neighbors(node).iter().filter_map(|&next| places[next]).collect();
        if near.is_empty() { middle } else { mean(&near) }
    };
    let all = places.iter().enumerate().map(|(node, place)| place.unwrap_or_else(|| estimate(node))).collect();
    (topology.with_positions(all), known.len())
}

fn mean(places: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|axis| places.iter().map(|place| place[axis] / places.len() as f64).sum())
}
