//! `mingle plan show`: a plan for a person, its forecast for a program.

use mingle_planner::Plan;

use crate::cli::PlanFileArgs;
use crate::failure::Outcome;
use crate::{out, plan};

/// Reads, checks and describes a plan.
pub(super) fn execute(arguments: &PlanFileArgs, json: bool) -> Outcome {
    let plan = plan::read(&arguments.plan)?;
    if json {
        out::line(plan.forecast().to_json());
    } else {
        out::line(describe(&plan));
    }
    Ok(())
}

/// The plan in a few lines.
pub(super) fn describe(plan: &Plan) -> String {
    let forecast = plan.forecast();
    let number = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.4}"));
    let bound = plan.nodes().filter(|(_, peer)| peer.is_some()).count();
    let nodes = plan.node_count();
    let lines = [
        format!("plan       blake3:{}", plan.hash()),
        format!("method     {}{}", plan.method(), parameters(plan)),
        format!("nodes      {nodes}, {bound} of them bound to peers; {} base edges", plan.base().edges().len()),
        format!(
            "period     {}, {} links in {} slots, {} local gradient steps",
            if plan.steps().len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps().len()) },
            forecast.links,
            forecast.slots_per_period,
            plan.local_steps()
        ),
        format!(
            "graph      out-degree up to {}, in-degree up to {}, diameter {}",
            forecast.max_out_degree, forecast.max_in_degree, forecast.diameter
        ),
        format!(
            "bound      ln of (16) {}, ln of (19) {:.2}",
            forecast.ln_objective_16.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.2}")),
            forecast.ln_objective_19
        ),
        format!(
            "mixing     |lambda2| {}, {} slots per neper",
            number(forecast.lambda_2),
            number(forecast.slots_per_neper)
        ),
        format!(
            "consensus  {} slots to 1e-2",
            forecast.slots_to_1e_2.map_or_else(|| "unknown".to_owned(), |slots| slots.to_string())
        ),
        format!("weights    n * pi from {} to {}", number(forecast.perron_min), number(forecast.perron_max)),
    ];
    lines.join("\n")
}

fn parameters(plan: &Plan) -> String {
    let words: Vec<String> = plan.parameters().iter().map(|(name, value)| format!("{name} {value}")).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}
