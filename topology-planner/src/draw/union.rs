//! All links of a period in one picture, each once, sorted into classes that have a colour.
//!
//! Where most links are active once in a period, the class of a link is the slot in which it is first active (or,
//! without slots, the step), so that the colours show the order of events. In a sampled period links are active
//! repeatedly; there the class is the share of steps in which they are.

use std::collections::{BTreeMap, BTreeSet};

use super::palette;
use crate::{
    digraph::Link,
    plan::{Medium, MixingStep, Plan},
};

/// The most classes of shares: with more different counts, counts share classes.
const MOST_SHARE_CLASSES: usize = 10;

/// A period counts as sampled when more than one in this many of its links are repeated.
const ONE_REPEATED_IN: usize = 4;

/// The links of a period.
#[derive(Debug)]
pub(super) struct Union {
    /// Ordered by transmitter, then receiver.
    pub(super) links: Vec<DrawnLink>,
    /// In the order of the legend.
    pub(super) classes: Vec<Class>,
    /// The heading of the classes in the legend.
    pub(super) heading: &'static str,
    /// The class of the first slot of each step, where classes show the order of events.
    first_class: Option<Vec<usize>>,
}

/// A link and its appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DrawnLink {
    pub(super) link: Link,
    pub(super) class: usize,
    /// `true` if the reverse link is in the period too.
    pub(super) two_way: bool,
}

/// Links of one colour.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) label: String,
    pub(super) colour: String,
    pub(super) links: usize,
}

impl Union {
    pub(super) fn of(plan: &Plan) -> Self {
        let steps = plan.steps();
        let uses: usize = steps.iter().map(|step| step.links().len()).sum();
        let different = steps.iter().flat_map(MixingStep::links).map(|link| link.link()).collect::<BTreeSet<_>>().len();
        let Classes { heading, labels, class_of, first_class } = match plan.medium() {
            _ if uses - different > different / ONE_REPEATED_IN => by_share(steps),
            Medium::Broadcast => by_slot(steps, uses > different),
            Medium::PointToPoint => by_step(steps, uses > different),
        };
        let count = labels.len();
        let coloured = labels.into_iter().enumerate();
        let mut classes: Vec<Class> =
            coloured.map(|(at, label)| Class { label, colour: palette::colour(at, count), links: 0 }).collect();
        let links: Vec<DrawnLink> = class_of
            .iter()
            .map(|(&link, &class)| DrawnLink { link, class, two_way: class_of.contains_key(&link.reversed()) })
            .collect();
        links.iter().for_each(|drawn| classes[drawn.class].links += 1);
        Self { links, classes, heading, first_class }
    }

    /// The colour of a slot (0 where there are none) of a step, where colours show the order of events.
    pub(super) fn colour(&self, step: usize, slot: usize) -> Option<&str> {
        let first = self.first_class.as_ref()?.get(step)?;
        self.classes.get(first + slot).map(|class| class.colour.as_str())
    }

    /// The pairs of nodes with a link between them, in either direction.
    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        let ordered = self.links.iter().filter(|drawn| !drawn.two_way || drawn.link.from < drawn.link.to);
        ordered.map(|drawn| (drawn.link.from, drawn.link.to)).collect()
    }

    /// The number of receivers of each node over the period.
    pub(super) fn out_degrees(&self, nodes: usize) -> Vec<usize> {
        let mut degrees = vec![0; nodes];
        self.links.iter().for_each(|drawn| degrees[drawn.link.from] += 1);
        degrees
    }
}

/// The classes of links, by one of the criteria below.
struct Classes {
    heading: &'static str,
    labels: Vec<String>,
    class_of: BTreeMap<Link, usize>,
    first_class: Option<Vec<usize>>,
}

fn by_slot(steps: &[MixingStep], repeated: bool) -> Classes {
    let one_slot_a_step = steps.iter().all(|step| step.slots().len() <= 1);
    let label: fn(usize, usize) -> String = match steps.len() {
        1 => |_, slot| slot.to_string(),
        _ if one_slot_a_step => |step, _| step.to_string(),
        _ => |step, slot| format!("{step} / {slot}"),
    };
    let heading = match (steps.len(), one_slot_a_step, repeated) {
        (1, ..) => "Slot",
        (_, true, false) => "Step",
        (_, true, true) => "First step",
        (_, false, false) => "Step / slot",
        (_, false, true) => "First step / slot",
    };
    let mut labels = Vec::new();
    let mut class_of = BTreeMap::new();
    let mut first_class = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        first_class.push(labels.len());
        for (slot, links) in step.slots().iter().enumerate() {
            for &link in links {
                class_of.entry(link).or_insert(labels.len());
            }
            labels.push(label(number, slot));
        }
    }
    Classes { heading, labels, class_of, first_class: Some(first_class) }
}

fn by_step(steps: &[MixingStep], repeated: bool) -> Classes {
    let mut class_of = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        for link in step.links() {
            class_of.entry(link.link()).or_insert(number);
        }
    }
    let heading = if repeated { "First step" } else { "Step" };
    let labels = (0..steps.len()).map(|number| number.to_string()).collect();
    Classes { heading, labels, class_of, first_class: Some((0..steps.len()).collect()) }
}

/// Classes by the share of steps. The most frequent links come first, and are the darkest.
fn by_share(steps: &[MixingStep]) -> Classes {
    let mut uses: BTreeMap<Link, usize> = BTreeMap::new();
    for link in steps.iter().flat_map(MixingStep::links) {
        *uses.entry(link.link()).or_default() += 1;
    }
    let mut counts: Vec<usize> = uses.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    let per_class = counts.len().div_ceil(MOST_SHARE_CLASSES).max(1);
    let percent = |count: usize| (count * 100 + steps.len() / 2) / steps.len();
    let label = |group: &[usize]| {
        let (low, high) = (percent(group[group.len() - 1]), percent(group[0]));
        if low == high { format!("{high} %") } else { format!("{low}–{high} %") }
    };
    let labels = counts.chunks(per_class).map(label).collect();
    // `counts` descends.
    let class = |count: usize| counts.partition_point(|&other| other > count) / per_class;
    let class_of = uses.into_iter().map(|(link, count)| (link, class(count))).collect();
    Classes { heading: "Share of steps", labels, class_of, first_class: None }
}
