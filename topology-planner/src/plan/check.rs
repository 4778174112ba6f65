//! All the checks that make a draft a plan.

use super::{
    MAX_LINKS, MAX_PARAMETERS, MAX_STEPS, MAX_TEXT_BYTES, Medium, MixingStep, Parameter, PlanDraft, PlanError,
    WeightedLink,
};
use crate::{
    digraph::{Digraph, Link},
    recurrence::recurrent_nodes,
    topology::Topology,
};

/// The largest distance of the sum of a column from 1.
const COLUMN_TOLERANCE: f64 = 1e-9;

/// Checks a draft, cheapest things first; `steps` are its steps. O(n + links log links).
pub(super) fn check(draft: &PlanDraft, steps: &[MixingStep]) -> Result<(), PlanError> {
    check_description(draft)?;
    if steps.is_empty() {
        return Err(PlanError::NoSteps);
    }
    if steps.len() > MAX_STEPS {
        return Err(PlanError::TooManySteps { steps: steps.len() });
    }
    draft.network.as_ref().map_or(Ok(()), |network| network.check(&draft.base))?;
    check_round_length(draft.round_length, steps.len())?;
    let links = steps.iter().map(|step| step.links().len()).sum();
    if links > MAX_LINKS {
        return Err(PlanError::TooManyLinks { links });
    }
    let node_count = draft.base.node_count();
    let mut sums = vec![1.0; node_count];
    for (number, step) in steps.iter().enumerate() {
        check_weights(number, step, &draft.base)?;
        check_columns(number, step, &mut sums)?;
        match draft.medium {
            Medium::Broadcast => check_slots(number, step, &draft.base)?,
            Medium::PointToPoint if step.slots().is_empty() => {}
            Medium::PointToPoint => return Err(PlanError::UnwantedSlots { step: number }),
        }
    }
    let union = Digraph::new(node_count, steps.iter().flat_map(MixingStep::links).map(|link| link.link()));
    if let Some(node) = union.first_cut_off() {
        return Err(PlanError::NotStronglyConnected { node });
    }
    // Where every node always keeps something, mass can wait at any node: it gets from any node to any other, in any
    // number of periods from some number on.
    let keeps_all_alive = steps.iter().flat_map(MixingStep::kept).all(|&(_, keep)| keep > 0.0);
    if !keeps_all_alive {
        recurrent_nodes(node_count, steps)?;
    }
    Ok(())
}

fn check_round_length(round_length: Option<usize>, steps: usize) -> Result<(), PlanError> {
    match round_length {
        Some(round_length) if round_length == 0 || !steps.is_multiple_of(round_length) => {
            Err(PlanError::RoundLength { round_length, steps })
        }
        _ => Ok(()),
    }
}

/// Checks a peer id.
pub(super) fn check_peer(node: usize, peer: &str) -> Result<(), PlanError> {
    if is_usable(peer) { Ok(()) } else { Err(PlanError::UnusablePeer { node }) }
}

fn check_description(draft: &PlanDraft) -> Result<(), PlanError> {
    let unusable = |what: String| Err(PlanError::Description { what });
    if !is_usable(&draft.method) {
        return unusable("the name of the method".to_owned());
    }
    if draft.parameters.len() > MAX_PARAMETERS {
        return unusable(format!("a list of {} parameters", draft.parameters.len()));
    }
    for (name, value) in &draft.parameters {
        let is_value_usable = match value {
            Parameter::Flag(_) | Parameter::Whole(_) => true,
            Parameter::Real(real) => real.is_finite(),
            Parameter::Text(text) => is_usable(text),
        };
        if !is_usable(name) || !is_value_usable {
            return unusable(format!("parameter {:?}", name.chars().take(80).collect::<String>()));
        }
    }
    Ok(())
}

fn is_usable(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT_BYTES && !text.chars().any(char::is_control)
}

/// The least share, save a keep of exactly 0: the ledger counts in units of 2^-40, which is about as much, and far
/// smaller shares would make the stationary weights overflow.
const LEAST_WEIGHT: f64 = 1e-12;

fn check_weights(number: usize, step: &MixingStep, base: &Topology) -> Result<(), PlanError> {
    let nodes = base.node_count();
    if step.node_count() != nodes {
        return Err(PlanError::KeepLength { step: number, found: step.node_count(), nodes });
    }
    // Written so that NaN fails.
    let is_usable = |keep: &f64| *keep == 0.0 || (LEAST_WEIGHT..=1.0).contains(keep);
    if let Some(&(node, keep)) = step.kept().iter().find(|(_, keep)| !is_usable(keep)) {
        return Err(PlanError::KeepOutOfRange { step: number, node, keep });
    }
    for link in step.links() {
        let weight = link.weight;
        let link = link.link();
        if link.from.max(link.to) >= nodes {
            return Err(PlanError::LinkOutOfRange { step: number, link, nodes });
        }
        if !base.has_edge(link.from, link.to) {
            return Err(PlanError::NotABaseLink { step: number, link });
        }
        if !(LEAST_WEIGHT..=1.0).contains(&weight) {
            return Err(PlanError::WeightOutOfRange { step: number, link, weight });
        }
    }
    Ok(())
}

/// Checks that columns sum to 1. `sums` has a 1 for every node, before and after.
fn check_columns(number: usize, step: &MixingStep, sums: &mut [f64]) -> Result<(), PlanError> {
    if let Some(pair) = step.links().windows(2).find(|pair| pair[0].link() == pair[1].link()) {
        return Err(PlanError::DuplicateLink { step: number, link: pair[0].link() });
    }
    let given = |column: &[WeightedLink]| column.iter().map(|link| link.weight).sum::<f64>();
    step.kept().iter().for_each(|&(node, keep)| sums[node] = keep);
    step.columns().for_each(|column| sums[column[0].from] += given(column));
    let touched = || step.kept().iter().map(|&(node, _)| node).chain(step.columns().map(|column| column[0].from));
    let is_off = |node: &usize| (sums[*node] - 1.0).abs() > COLUMN_TOLERANCE;
    if let Some(node) = touched().filter(is_off).min() {
        return Err(PlanError::ColumnSum { step: number, node, sum: sums[node] });
    }
    touched().for_each(|node| sums[node] = 1.0);
    Ok(())
}

/// Checks that slots partition the links, and no two links of a slot conflict.
fn check_slots(number: usize, step: &MixingStep, base: &Topology) -> Result<(), PlanError> {
    let mut slot_of = vec![None; step.links().len()];
    for (slot, links) in step.slots().iter().enumerate() {
        if links.is_empty() {
            return Err(PlanError::EmptySlot { step: number, slot });
        }
        for &link in links {
            let Some(position) = step.position(link) else {
                return Err(PlanError::UnknownSlotLink { step: number, slot, link });
            };
            if let Some(first) = slot_of[position].replace(slot) {
                return Err(PlanError::LinkInTwoSlots { step: number, link, first, second: slot });
            }
        }
        if let Some((first, second)) = first_conflict(links, base) {
            return Err(PlanError::Conflict { step: number, slot, first, second });
        }
    }
    match slot_of.iter().position(Option::is_none) {
        Some(position) => Err(PlanError::LinkWithoutSlot { step: number, link: step.links()[position].link() }),
        None => Ok(()),
    }
}

/// Two conflicting links among the links of a slot, which are in ascending order.
///
/// Link `(i, j)` is received when `i` is the only transmitter of the slot that reaches `j`. So for each link the
/// shorter list is searched: the slot's transmitters, or the nodes that reach `j`.
fn first_conflict(links: &[Link], base: &Topology) -> Option<(Link, Link)> {
    let mut transmitters: Vec<usize> = links.iter().map(|link| link.from).collect();
    transmitters.dedup();
    let link_from = |node: usize| links[links.partition_point(|link| link.from < node)];
    for &link in links {
        let hears = base.interferers(link.to);
        let disturber = if transmitters.len() < hears.len() {
            transmitters.iter().copied().find(|&node| node != link.from && base.interferes(link.to, node))
        } else {
            let heard = hears.iter().chain([&link.to]).copied();
            heard.filter(|&node| node != link.from).find(|node| transmitters.binary_search(node).is_ok())
        };
        if let Some(node) = disturber {
            return Some((link, link_from(node)));
        }
    }
    None
}
