//! Plans, from the wire and from files.

use mingle_planner::{Plan, PlanError};
use mingle_protocol::{NodeId, Schedule, Step};

/// Checks wire bytes: a plan that is read from them is written as the same bytes, and is sound.
///
/// # Panics
/// If that does not hold.
pub fn check_postcard(bytes: &[u8]) {
    match Plan::from_postcard(bytes) {
        Ok(plan) => {
            assert_eq!(plan.to_postcard().as_deref(), Ok(bytes));
            check_sound(&plan);
        }
        Err(error) => check_message(&error),
    }
}

/// Checks a plan file: a plan that is read from it is sound.
///
/// # Panics
/// If that does not hold.
pub fn check_json(text: &str) {
    match Plan::from_json(text) {
        Ok(plan) => check_sound(&plan),
        Err(error) => check_message(&error),
    }
}

/// Checks that a plan survives both of its encodings with its hash, that its forecast can be computed, and that a node
/// can follow it.
fn check_sound(plan: &Plan) {
    let text = plan.to_json();
    let from_text = Plan::from_json(&text).expect("what a plan writes is a plan");
    assert_eq!((&from_text, from_text.hash(), from_text.to_json()), (plan, plan.hash(), text));
    if let Ok(bytes) = plan.to_postcard() {
        let from_wire = Plan::from_postcard(&bytes).expect("what a plan sends is a plan");
        assert_eq!((&from_wire, from_wire.hash()), (plan, plan.hash()));
    }
    let differences = plan.forecast_differences().expect("a plan has a forecast");
    assert!(differences.iter().all(|difference| !difference.to_string().is_empty()));
    if let Ok(weights) = plan.perron_weights() {
        let sum: f64 = weights.iter().sum();
        assert!((sum - weights.len() as f64).abs() < 1e-6, "the Perron weights add up to {sum}: {weights:?}");
    }
    let schedule = Schedule::new(plan.node_count(), &steps_of(plan), plan.local_steps())
        .and_then(|schedule| schedule.with_round_length(plan.round_length()));
    assert!(schedule.is_ok(), "no node can follow the plan: {schedule:?}");
}

/// The steps of a plan in the form of the protocol.
fn steps_of(plan: &Plan) -> Vec<Step> {
    let node = |number: usize| NodeId(u32::try_from(number).expect("plans have fewer nodes"));
    let step = |step: &mingle_planner::MixingStep| Step {
        keep: step.keep(),
        links: step.links().iter().map(|link| (node(link.from), node(link.to), link.weight)).collect(),
    };
    plan.steps().iter().map(step).collect()
}

fn check_message(error: &PlanError) {
    assert!(!error.to_string().is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_plan() {
        for (name, bytes) in seeds::plan_postcard() {
            assert!(Plan::from_postcard(&bytes).is_ok(), "{name}");
            check_postcard(&bytes);
        }
        for (name, text) in seeds::plan_json() {
            assert!(Plan::from_json(&text).is_ok(), "{name}");
            check_json(&text);
        }
    }
}
