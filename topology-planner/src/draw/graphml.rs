//! GraphML, for NetworkX, Gephi, igraph and yEd.

use std::fmt::Write as _;

use mingle_plot::document::escaped;

use super::{NodePlacement, dot::slots_of};
use crate::plan::Plan;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"#;

const KEYS: [(&str, &str, &str); 8] = [
    ("node", "label", "string"),
    ("node", "peer", "string"),
    ("node", "keep", "double"),
    ("node", "x", "double"),
    ("node", "y", "double"),
    ("edge", "step", "int"),
    ("edge", "slot", "int"),
    ("edge", "weight", "double"),
];

/// Writes a plan as a directed graph in GraphML: one edge for each link of each step, with its step, slot and weight;
/// nodes have their name, what they keep (in a period of one step), their peer and, where given, their place.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design, draw};
/// let plan = design(&Topology::generate("ring:n=3")?, Method::SgpUniform, &DesignOptions::default())?;
/// let graphml = draw::graphml(&plan, &draw::NodePlacement::Circle);
/// assert_eq!(graphml.matches("<edge ").count(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn graphml(plan: &Plan, layout: &NodePlacement<'_>) -> String {
    let mut text = HEAD.to_owned();
    for (domain, name, kind) in KEYS {
        let _ = writeln!(text, "  <key id=\"{name}\" for=\"{domain}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>");
    }
    text.push_str("  <graph edgedefault=\"directed\">\n");
    for (node, (name, peer)) in plan.nodes().enumerate() {
        let _ = write!(text, "    <node id=\"n{node}\"><data key=\"label\">{}</data>", escaped(name));
        if let Some(peer) = peer {
            let _ = write!(text, "<data key=\"peer\">{}</data>", escaped(peer));
        }
        if let [step] = plan.steps() {
            let _ = write!(text, "<data key=\"keep\">{}</data>", step.keep_of(node));
        }
        if let NodePlacement::Positions(places) = layout
            && let Some([x, y]) = places.get(node)
        {
            let _ = write!(text, "<data key=\"x\">{x}</data><data key=\"y\">{y}</data>");
        }
        text.push_str("</node>\n");
    }
    for (number, step) in plan.steps().iter().enumerate() {
        for (link, slot) in step.links().iter().zip(slots_of(step)) {
            let _ = write!(
                text,
                "    <edge source=\"n{}\" target=\"n{}\"><data key=\"step\">{number}</data>",
                link.from, link.to
            );
            if let Some(slot) = slot {
                let _ = write!(text, "<data key=\"slot\">{slot}</data>");
            }
            let _ = writeln!(text, "<data key=\"weight\">{}</data></edge>", link.weight);
        }
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}
