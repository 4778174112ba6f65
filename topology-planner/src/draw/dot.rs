//! DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::{NodePlacement, union::Union};
use crate::dot_text::quoted;
use crate::plan::Plan;

/// Writes a plan as a directed graph in DOT: one edge for each link of each step, with its step, slot and weight, in
/// the colours of the SVG. Given places become `pos`, for `neato -n`.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design, draw};
/// let plan = design(&Topology::generate("ring:n=3")?, Method::SgpUniform, &DesignOptions::default())?;
/// let dot = draw::dot(&plan, &draw::NodePlacement::Circle);
/// assert!(dot.starts_with("digraph") && dot.matches(" -> ").count() == 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn dot(plan: &Plan, layout: &NodePlacement<'_>) -> String {
    let union = Union::of(plan);
    let mut text = format!("digraph {} {{\n", quoted(plan.method()));
    text.push_str("  node [shape=circle];\n");
    for (node, name) in plan.base().names().iter().enumerate() {
        let _ = write!(text, "  {node} [label={}", quoted(name));
        if let NodePlacement::Positions(places) = layout
            && let Some([x, y]) = places.get(node)
        {
            let _ = write!(text, ", pos=\"{x},{y}\"");
        }
        text.push_str("];\n");
    }
    for (number, step) in plan.steps().iter().enumerate() {
        let slots = slots_of(step);
        for (link, slot) in step.links().iter().zip(slots) {
            let slot = slot.map_or_else(String::new, |slot| format!(", slot={slot}"));
            let drawn = union.links.binary_search_by_key(&link.link(), |drawn| drawn.link).ok();
            let colour = drawn.map_or("#000000", |at| &union.classes[union.links[at].class].colour);
            let _ = writeln!(
                text,
                "  {} -> {} [step={number}{slot}, weight={}, color={}];",
                link.from,
                link.to,
                link.weight,
                quoted(colour)
            );
        }
    }
    text.push_str("}\n");
    text
}

/// The slot of each link of a step; none without slots.
pub(super) fn slots_of(step: &crate::plan::MixingStep) -> Vec<Option<usize>> {
    let mut slots = vec![None; step.links().len()];
    for (slot, links) in step.slots().iter().enumerate() {
        links.iter().filter_map(|&link| step.position(link)).for_each(|position| slots[position] = Some(slot));
    }
    slots
}
