//! Slots of a plan whose links do not share transmissions.

use mingle_planner::{Link, Plan, Topology, conflict_graph::conflict};

/// The slots of a round in which each link has a transmission of its own, step by step: DSATUR on the conflicts of the
/// planner, and of the links of one sender. More than the least number, perhaps.
#[must_use]
pub fn unicast_slots(plan: &Plan) -> f64 {
    let slots = |step: &mingle_planner::MixingStep| {
        let links: Vec<Link> = step.links().iter().map(|link| link.link()).collect();
        colors(plan.base(), &links).into_iter().max().map_or(0, |last| last + 1)
    };
    let period: usize = plan.steps().iter().map(slots).sum();
    period as f64 * plan.round_length() as f64 / plan.steps().len() as f64
}

/// A proper colouring: the link with the most colours around it is coloured next; then that with the most conflicts,
/// then the first.
fn colors(base: &Topology, links: &[Link]) -> Vec<usize> {
    let conflicts = |a: usize| -> Vec<usize> {
        let is_conflict = |&b: &usize| b != a && (links[a].from == links[b].from || conflict(base, links[a], links[b]));
        (0..links.len()).filter(is_conflict).collect()
    };
    let conflicts: Vec<Vec<usize>> = (0..links.len()).map(conflicts).collect();
    let mut colors = vec![usize::MAX; links.len()];
    let mut around: Vec<std::collections::BTreeSet<usize>> = vec![Default::default(); links.len()];
    let urgency = |link: usize, around: &[std::collections::BTreeSet<usize>]| {
        (around[link].len(), conflicts[link].len(), std::cmp::Reverse(link))
    };
    for _ in 0..links.len() {
        let open = (0..links.len()).filter(|&link| colors[link] == usize::MAX);
        let Some(next) = open.max_by_key(|&link| urgency(link, &around)) else {
            break;
        };
        let color = (0..).find(|color| !around[next].contains(color)).unwrap_or_default();
        colors[next] = color;
        for &other in &conflicts[next] {
            around[other].insert(color);
        }
    }
    colors
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use mingle_planner::{DesignOptions, Method, design};

    use super::*;

    #[test]
    fn no_two_links_of_a_color_conflict() {
        let base = Topology::generate("rg:n=12,r=0.5,seed=3").unwrap();
        let plan = design(&base, Method::DPsgd, &DesignOptions::default()).unwrap();
        let links: Vec<Link> = plan.steps()[0].links().iter().map(|link| link.link()).collect();
        let colors = colors(&base, &links);
        for (a, first) in links.iter().enumerate() {
            for (b, second) in links.iter().enumerate().skip(a + 1) {
                let is_conflict = first.from == second.from || conflict(&base, *first, *second);
                assert!(!is_conflict || colors[a] != colors[b], "{first:?} and {second:?} share slot {}", colors[a]);
            }
        }
    }

    #[test]
    fn a_star_takes_a_slot_for_each_link() {
        let base = Topology::generate("star:n=6").unwrap();
        let plan = design(&base, Method::DPsgd, &DesignOptions::default()).unwrap();
        assert_eq!(plan.forecast().slots_per_period, 6);
        assert_eq!(unicast_slots(&plan), 10.0);
    }
}
