//! All links of a period in one picture, each once, sorted into classes that have a colour.
//!
//! Where every link is active once in a period, its class is the slot it is active in (or, without slots, the step): the
//! colours tell the order of events. In a sampled period links come again and again; there the class is how often.

use std::collections::BTreeMap;

use super::palette;
use crate::{
    digraph::Link,
    plan::{Medium, Plan, Step},
};

/// With more different counts than this, counts share classes.
const MOST_SHARE_CLASSES: usize = 10;

/// The links of a period.
#[derive(Debug)]
pub(super) struct Union {
    /// Ordered by transmitter, then receiver.
    pub(super) links: Vec<DrawnLink>,
    /// In the order of the legend.
    pub(super) classes: Vec<Class>,
    /// What the classes are.
    pub(super) heading: &'static str,
}

/// A link and what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DrawnLink {
    pub(super) link: Link,
    pub(super) class: usize,
    /// Whether the reverse link is in the period too.
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
        let once = each_link_once(plan.steps());
        let (heading, labels, class_of) = match plan.medium() {
            _ if !once => by_share(plan.steps()),
            Medium::Broadcast => by_slot(plan.steps()),
            Medium::PointToPoint => by_step(plan.steps()),
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
        Self { links, classes, heading }
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

/// A heading, the labels of the classes, and the class of every link.
type Classes = (&'static str, Vec<String>, BTreeMap<Link, usize>);

fn each_link_once(steps: &[Step]) -> bool {
    let mut links: Vec<Link> = steps.iter().flat_map(Step::links).map(|link| link.link()).collect();
    links.sort_unstable();
    links.windows(2).all(|pair| pair[0] != pair[1])
}

fn by_slot(steps: &[Step]) -> Classes {
    let one_slot_a_step = steps.iter().all(|step| step.slots().len() <= 1);
    let (heading, label): (_, fn(usize, usize) -> String) = match steps.len() {
        1 => ("Slot", |_, slot| slot.to_string()),
        _ if one_slot_a_step => ("Step, one slot each", |step, _| step.to_string()),
        _ => ("Step / slot", |step, slot| format!("{step} / {slot}")),
    };
    let (mut labels, mut class_of) = (Vec::new(), BTreeMap::new());
    for (number, step) in steps.iter().enumerate() {
        for (slot, links) in step.slots().iter().enumerate() {
            class_of.extend(links.iter().map(|&link| (link, labels.len())));
            labels.push(label(number, slot));
        }
    }
    (heading, labels, class_of)
}

fn by_step(steps: &[Step]) -> Classes {
    if let [step] = steps {
        return ("Links", vec!["all".to_owned()], step.links().iter().map(|link| (link.link(), 0)).collect());
    }
    let numbered = steps.iter().enumerate();
    let class_of = numbered.flat_map(|(number, step)| step.links().iter().map(move |link| (link.link(), number)));
    ("Step", (0..steps.len()).map(|number| number.to_string()).collect(), class_of.collect())
}

/// The most frequent links come first, and are the darkest.
fn by_share(steps: &[Step]) -> Classes {
    let mut uses: BTreeMap<Link, usize> = BTreeMap::new();
    for link in steps.iter().flat_map(Step::links) {
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
    ("Active in", labels, uses.into_iter().map(|(link, count)| (link, class(count))).collect())
}
