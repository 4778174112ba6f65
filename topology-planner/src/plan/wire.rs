//! The plan on the wire: postcard, in one canonical encoding.
//!
//! Every vector is preceded by its length, and an element takes at least a byte, so memory is bounded by the bytes
//! received, which are bounded by [`MAX_WIRE_BYTES`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FORMAT, MAX_WIRE_BYTES, Medium, Parameter, Plan, PlanDraft, PlanError, json};
use crate::{digraph::Link, forecast::Forecast, network::NetworkCapacity, step};

#[derive(Serialize, Deserialize)]
struct WirePlan<S> {
    format: String,
    method: String,
    parameters: BTreeMap<String, Parameter>,
    nodes: Vec<(String, Option<String>)>,
    edges: Vec<(u32, u32)>,
    interference: Option<Vec<(u32, u32)>>,
    medium: Medium,
    network: Option<NetworkCapacity>,
    steps: Vec<S>,
    local_steps: u32,
    round_length: u32,
    forecast: Forecast,
}

#[derive(Serialize, Deserialize)]
struct WireStep {
    keep: Vec<f64>,
    links: Vec<(u32, u32, f64)>,
    /// Positions in `links`.
    slots: Vec<Vec<u32>>,
}

/// A step of a plan that has too many nodes and steps to list all shares. Such a plan is only written, for its hash,
/// and never read: with all shares it would not fit into [`MAX_WIRE_BYTES`].
#[derive(Serialize)]
struct LargeWireStep {
    kept: Vec<(u32, f64)>,
    links: Vec<(u32, u32, f64)>,
    slots: Vec<Vec<u32>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Plan, PlanError> {
    if bytes.len() > MAX_WIRE_BYTES {
        return Err(PlanError::TooLarge { bytes: bytes.len() });
    }
    let wire: WirePlan<WireStep> =
        postcard::from_bytes(bytes).map_err(|error| PlanError::Wire { message: error.to_string() })?;
    if wire.format != FORMAT {
        return Err(PlanError::Format { found: wire.format.chars().take(80).collect() });
    }
    let (names, peers): (Vec<_>, Vec<_>) = wire.nodes.into_iter().unzip();
    let interference = wire.interference.as_deref().map(widened);
    let steps = wire.steps.into_iter().enumerate();
    let steps = steps.map(|(number, step)| step.into_step(number)).collect::<Result<_, _>>()?;
    let draft = PlanDraft {
        base: json::read_base(names, &widened(&wire.edges), interference.as_deref())?,
        method: wire.method,
        parameters: wire.parameters,
        medium: wire.medium,
        network: wire.network,
        steps: Vec::new(),
        local_steps: wire.local_steps,
        round_length: Some(wire.round_length as usize),
    };
    let plan = json::bind_all(Plan::checked(draft, steps, Some(wire.forecast))?, peers)?;
    // Two encodings of one plan would have two hashes.
    if write(&plan) == bytes { Ok(plan) } else { Err(PlanError::NotCanonical) }
}

pub(super) fn write(plan: &Plan) -> Vec<u8> {
    if plan.lists_all_shares() { write_with(plan, WireStep::of) } else { write_with(plan, LargeWireStep::of) }
}

fn write_with<S: Serialize>(plan: &Plan, step: impl Fn(&step::MixingStep) -> S) -> Vec<u8> {
    let wire = WirePlan {
        format: FORMAT.to_owned(),
        method: plan.method.clone(),
        parameters: plan.parameters.clone(),
        nodes: plan.nodes().map(|(name, peer)| (name.to_owned(), peer.map(str::to_owned))).collect(),
        edges: narrowed(plan.base.edges()),
        interference: plan.base.interference_edges().map(narrowed),
        medium: plan.medium,
        network: plan.network.clone(),
        steps: plan.steps.iter().map(step).collect(),
        local_steps: plan.local_steps,
        // At most the number of steps, which is bounded by MAX_STEPS.
        round_length: plan.round_length as u32,
        forecast: plan.forecast.clone(),
    };
    // Serialising plain data into a growing vector cannot fail.
    postcard::to_allocvec(&wire).unwrap_or_default()
}

impl WireStep {
    fn of(step: &step::MixingStep) -> Self {
        Self { keep: step.keep(), links: links_of(step), slots: slots_of(step) }
    }

    fn into_step(self, number: usize) -> Result<step::MixingStep, PlanError> {
        let links: Vec<_> = self
            .links
            .into_iter()
            .map(|(from, to, weight)| step::WeightedLink { from: from as usize, to: to as usize, weight })
            .collect();
        let link_at = |&at: &u32| {
            let out_of_range = || PlanError::Wire {
                message: format!("step {number}: a slot names link number {at} of {}", links.len()),
            };
            links.get(at as usize).map(|link| link.link()).ok_or_else(out_of_range)
        };
        let slots = self.slots.iter().map(|slot| slot.iter().map(link_at).collect()).collect::<Result<_, _>>()?;
        Ok(step::MixingStep::sorted(step::StepDraft { keep: self.keep, links, slots }))
    }
}

impl LargeWireStep {
    fn of(step: &step::MixingStep) -> Self {
        let kept = step.kept().iter().map(|&(node, share)| (node as u32, share)).collect();
        Self { kept, links: links_of(step), slots: slots_of(step) }
    }
}

fn links_of(step: &step::MixingStep) -> Vec<(u32, u32, f64)> {
    step.links().iter().map(|link| (link.from as u32, link.to as u32, link.weight)).collect()
}

fn slots_of(step: &step::MixingStep) -> Vec<Vec<u32>> {
    let positions =
        |slot: &Vec<Link>| slot.iter().filter_map(|&link| step.position(link)).map(|at| at as u32).collect();
    step.slots().iter().map(positions).collect()
}

/// Node numbers are below 2^20.
fn narrowed(edges: &[(usize, usize)]) -> Vec<(u32, u32)> {
    edges.iter().map(|&(u, v)| (u as u32, v as u32)).collect()
}

fn widened(edges: &[(u32, u32)]) -> Vec<(usize, usize)> {
    edges.iter().map(|&(u, v)| (u as usize, v as usize)).collect()
}
