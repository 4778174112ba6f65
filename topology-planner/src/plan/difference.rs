//! Differences between two plans, by the names of their nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{MixingStep, Parameter, Plan};
use crate::topology::Topology;

/// The differences between two plans; empty for equal ones.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlanDifference {
    /// Method, parameters, medium, local steps, round length, number of steps, order of the nodes.
    pub settings: Vec<Change>,
    /// Nodes of one plan only.
    pub nodes: Sets<String>,
    /// Edges of one base graph only.
    pub base: Sets<[String; 2]>,
    /// Edges of one interference graph only; the base graph where there is none of its own.
    pub interference: Sets<[String; 2]>,
    /// Nodes that are bound to another peer.
    pub peers: Vec<Change>,
    /// Payload size, links and limits of nodes of the network.
    pub network: Vec<Change>,
    /// The steps that differ, in order.
    pub steps: Vec<StepDifference>,
    /// Fields of the forecast.
    pub forecast: Vec<Change>,
}

/// A value that differs; none where a plan has no such value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The name of the value.
    pub field: String,
    /// The value in the first plan.
    pub before: Option<String>,
    /// The value in the second plan.
    pub after: Option<String>,
}

/// Elements that are in only one of two sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sets<T> {
    /// In the second plan only.
    pub added: Vec<T>,
    /// In the first plan only.
    pub removed: Vec<T>,
}

/// The differences in a step; a step that one plan lacks counts as empty there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDifference {
    /// The number of the step.
    pub step: usize,
    /// Links in one of the plans only.
    pub links: Sets<NamedLink>,
    /// Links in both, with another weight.
    pub reweighted: Vec<Reweighted>,
    /// Nodes that keep another share.
    pub keep: Vec<Rekept>,
    /// Links in both, in another slot.
    pub moved: Vec<NamedLink>,
    /// The slots of the step in the first and in the second plan.
    pub slots: [usize; 2],
}

/// A link with the names of its ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NamedLink {
    /// The transmitter.
    pub from: String,
    /// The receiver.
    pub to: String,
}

/// A link whose weight differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reweighted {
    /// The link.
    pub link: NamedLink,
    /// The weight in the first plan.
    pub before: f64,
    /// The weight in the second plan.
    pub after: f64,
}

/// A node that keeps another share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rekept {
    /// The node.
    pub node: String,
    /// The share it keeps in the first plan.
    pub before: f64,
    /// The share it keeps in the second plan.
    pub after: f64,
}

impl<T> Default for Sets<T> {
    fn default() -> Self {
        Self { added: Vec::new(), removed: Vec::new() }
    }
}

impl<T: Ord + Clone> Sets<T> {
    fn between(before: &BTreeSet<T>, after: &BTreeSet<T>) -> Self {
        Self {
            added: after.difference(before).cloned().collect(),
            removed: before.difference(after).cloned().collect(),
        }
    }
}

impl<T> Sets<T> {
    /// Returns `true` if the sets are equal.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl PlanDifference {
    /// Returns `true` if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Plan {
    /// The differences from this plan to another. Nodes are matched by name, steps by number, and real numbers differ
    /// if any bit does. Empty exactly when the two plans have one hash. O((n + links) log) time.
    ///
    /// ```
    /// use mingle_planner::{DesignOptions, Method, Topology, design};
    /// let topology = Topology::generate("ring:n=5")?;
    /// let [a, b] = [Method::DPsgd, Method::SgpUniform].map(|method| design(&topology, method, &DesignOptions::default()));
    /// let (a, b) = (a?, b?);
    /// assert!(a.difference(&a).is_empty());
    /// assert_eq!(a.difference(&b).settings[0].after.as_deref(), Some("sgp-uniform"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn difference(&self, other: &Self) -> PlanDifference {
        let [before, after] = [self, other];
        let names = |plan: &Self| plan.base.names().iter().cloned().collect::<BTreeSet<String>>();
        let steps = 0..before.steps.len().max(after.steps.len());
        let mut settings = changes(&before.settings(), &after.settings());
        settings.extend(order_change(before.base.names(), after.base.names()));
        PlanDifference {
            settings,
            nodes: Sets::between(&names(before), &names(after)),
            base: Sets::between(
                &named_edges(&before.base, before.base.edges()),
                &named_edges(&after.base, after.base.edges()),
            ),
            interference: Sets::between(&before.named_interference(), &after.named_interference()),
            peers: changes(&before.named_peers(), &after.named_peers()),
            network: changes(&before.network_fields(), &after.network_fields()),
            steps: steps.filter_map(|step| step_difference(step, before, after)).collect(),
            forecast: changes(&before.forecast_fields(), &after.forecast_fields()),
        }
    }

    fn settings(&self) -> Vec<(String, String)> {
        let medium = match self.medium {
            super::Medium::Broadcast => "broadcast",
            super::Medium::PointToPoint => "point-to-point",
        };
        let mut fields = vec![
            ("method".to_owned(), self.method.clone()),
            ("medium".to_owned(), medium.to_owned()),
            ("local_steps".to_owned(), self.local_steps.to_string()),
            ("steps".to_owned(), self.steps.len().to_string()),
            ("round_length".to_owned(), self.round_length.to_string()),
        ];
        fields.extend(self.parameters.iter().map(|(name, value)| (format!("parameters.{name}"), unambiguous(value))));
        fields
    }

    fn named_peers(&self) -> Vec<(String, String)> {
        let bound = self.nodes().filter_map(|(name, peer)| Some((name.to_owned(), peer?.to_owned())));
        bound.collect()
    }

    fn network_fields(&self) -> Vec<(String, String)> {
        let Some(network) = &self.network else {
            return Vec::new();
        };
        let name = |node: u32| &self.base.names()[node as usize];
        let mut fields = vec![("payload_bytes".to_owned(), network.payload_bytes.to_string())];
        fields.extend(network.links.iter().map(|link| {
            let field = format!("{} -> {}", name(link.from), name(link.to));
            (field, format!("{} ms, {} Mbit/s, loss {}", link.rtt_ms, link.mbit_s, link.loss))
        }));
        for (what, limits) in [("upload", &network.upload_mbit_s), ("download", &network.download_mbit_s)] {
            let named = self.base.names().iter().zip(limits);
            let limited =
                named.filter_map(|(name, limit)| Some((format!("{what} of {name}"), format!("{} Mbit/s", (*limit)?))));
            fields.extend(limited);
        }
        fields
    }

    fn named_interference(&self) -> BTreeSet<[String; 2]> {
        named_edges(&self.base, self.base.interference_edges().unwrap_or(self.base.edges()))
    }

    fn forecast_fields(&self) -> Vec<(String, String)> {
        self.forecast.fields().iter().map(|(name, value)| ((*name).to_owned(), value.json())).collect()
    }
}

/// Fields that differ, in the order of the first list, then those of the second only.
fn changes(before: &[(String, String)], after: &[(String, String)]) -> Vec<Change> {
    let later: BTreeMap<&str, &str> = after.iter().map(|(field, value)| (field.as_str(), value.as_str())).collect();
    let known: BTreeSet<&str> = before.iter().map(|(field, _)| field.as_str()).collect();
    let mut found = Vec::new();
    for (field, value) in before {
        let now = later.get(field.as_str()).copied();
        if now != Some(value) {
            found.push(Change { field: field.clone(), before: Some(value.clone()), after: now.map(str::to_owned) });
        }
    }
    for (field, value) in after.iter().filter(|(field, _)| !known.contains(field.as_str())) {
        found.push(Change { field: field.clone(), before: None, after: Some(value.clone()) });
    }
    found
}

/// The first number that belongs to another node, in plans of the same nodes.
fn order_change(before: &[String], after: &[String]) -> Option<Change> {
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
    let place = before.iter().zip(after).position(|(a, b)| a != b).filter(|_| sorted(before) == sorted(after))?;
    let is = |names: &[String]| Some(names[place].clone());
    Some(Change { field: format!("node {place}"), before: is(before), after: is(after) })
}

/// The text of a parameter, such that values of different kinds are written differently.
fn unambiguous(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Real(number) => format!("{number:?}"),
        Parameter::Text(text) if text.parse::<f64>().is_ok() || text.parse::<bool>().is_ok() => format!("{text:?}"),
        other => other.to_string(),
    }
}

fn named_edges(topology: &Topology, edges: &[(usize, usize)]) -> BTreeSet<[String; 2]> {
    let names = topology.names();
    let named = edges.iter().map(|&(u, v)| {
        let u = &names[u];
        let v = &names[v];
        [u.min(v).clone(), u.max(v).clone()]
    });
    named.collect()
}

/// A step by names: the weight and the slot of each link, and the share that each node keeps.
#[derive(Default)]
struct NamedStep {
    links: BTreeMap<NamedLink, (f64, Option<usize>)>,
    keep: BTreeMap<String, f64>,
    slots: usize,
}

impl NamedStep {
    fn of(plan: &Plan, step: &MixingStep) -> Self {
        let names = plan.base.names();
        let link = |from: usize, to: usize| NamedLink { from: names[from].clone(), to: names[to].clone() };
        let mut links: BTreeMap<NamedLink, (f64, Option<usize>)> =
            step.links().iter().map(|weighted| (link(weighted.from, weighted.to), (weighted.weight, None))).collect();
        for (slot, members) in step.slots().iter().enumerate() {
            for member in members {
                if let Some(entry) = links.get_mut(&link(member.from, member.to)) {
                    entry.1 = Some(slot);
                }
            }
        }
        Self { links, keep: names.iter().cloned().zip(step.keep()).collect(), slots: step.slots().len() }
    }
}

fn step_difference(number: usize, before: &Plan, after: &Plan) -> Option<StepDifference> {
    let named = |plan: &Plan| plan.steps.get(number).map(|step| NamedStep::of(plan, step)).unwrap_or_default();
    let old = named(before);
    let new = named(after);
    let set = |step: &NamedStep| step.links.keys().cloned().collect::<BTreeSet<_>>();
    let mut difference = StepDifference {
        step: number,
        links: Sets::between(&set(&old), &set(&new)),
        reweighted: Vec::new(),
        keep: Vec::new(),
        moved: Vec::new(),
        slots: [old.slots, new.slots],
    };
    for (link, (weight, slot)) in &old.links {
        let Some((weight_now, slot_now)) = new.links.get(link) else { continue };
        if weight.to_bits() != weight_now.to_bits() {
            difference.reweighted.push(Reweighted { link: link.clone(), before: *weight, after: *weight_now });
        }
        if slot != slot_now {
            difference.moved.push(link.clone());
        }
    }
    for (node, share) in &old.keep {
        if let Some(now) = new.keep.get(node).filter(|now| now.to_bits() != share.to_bits()) {
            difference.keep.push(Rekept { node: node.clone(), before: *share, after: *now });
        }
    }
    let same = difference.links.is_empty()
        && difference.reweighted.is_empty()
        && difference.keep.is_empty()
        && difference.moved.is_empty()
        && old.slots == new.slots
        // A step without links is still a step.
        && (number < before.steps.len()) == (number < after.steps.len());
    (!same).then_some(difference)
}
