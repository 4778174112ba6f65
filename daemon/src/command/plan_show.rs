//! `mingle plan show`: describes a plan for people, and prints its forecast for programs.

use mingle_net::multicast::AirForecast;
use mingle_peer::{Result, plan};
use mingle_planner::{
    Medium, MixingStep, Parameter, Plan, digraph::Digraph, load::FOUR_BITS, reconstruction, resilience::Resilience,
};

use crate::cli::PlanShowArgs;
use crate::out;

/// The parameter in which `auto` records why it chose a design.
const REASON: &str = "reason";

/// Most critical nodes and links that are named.
const LISTED_NAMES: usize = 4;

/// Most steps of a period that are listed.
const LISTED_STEPS: usize = 12;

/// Reads, checks and describes a plan.
pub(super) fn execute(arguments: &PlanShowArgs, json: bool) -> Result {
    let plan = plan::read(&arguments.file.plan)?;
    let air = arguments.air.forecast(&plan, arguments.codec)?;
    out::line(if json { to_json(&plan, air.as_ref()) } else { describe(&plan, air.as_ref()) });
    Ok(())
}

/// The forecast of a plan as JSON, with that on the air as `air` where there is one.
pub(super) fn to_json(plan: &Plan, air: Option<&AirForecast>) -> String {
    let forecast = plan.forecast_to_json();
    let Some(air) = air else { return forecast };
    let Ok(mut object) = serde_json::from_str::<serde_json::Value>(&forecast) else { return forecast };
    object["air"] = serde_json::json!(air);
    format!("{object:#}")
}

/// A description of the plan in a few lines, with the forecast on the air where there is one.
pub(super) fn describe(plan: &Plan, air: Option<&AirForecast>) -> String {
    let forecast = plan.forecast();
    let number = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.4}"));
    let bound = plan.nodes().filter(|(_, peer)| peer.is_some()).count();
    let nodes = plan.node_count();
    let mut lines = vec![
        format!("plan       blake3:{}", plan.hash()),
        format!("method     {}{}", plan.method(), parameters(plan)),
        format!("nodes      {nodes}, {bound} of them bound to peers; {} base edges", plan.base().edges().len()),
        format!("period     {}, {} links{}", count(plan.steps().len(), "step"), forecast.links, slots(plan)),
        format!(
            "training   {} before {}",
            count(plan.local_steps() as usize, "local gradient step"),
            match plan.round_length() {
                1 => "every step".to_owned(),
                length if length == plan.steps().len() => "every period".to_owned(),
                length => format!("every {length} steps"),
            }
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
            "mixing     |lambda2| {}{}, {} slots per neper",
            number(forecast.lambda_2),
            forecast.lambda_2_note.as_ref().map_or_else(String::new, |note| format!(" ({note})")),
            number(forecast.slots_per_neper)
        ),
        format!("consensus  {}", consensus(plan)),
        format!("momentum   {}", momentum(plan)),
        format!("weights    n * pi from {} to {}", number(forecast.perron_min), number(forecast.perron_max)),
        losses(plan),
    ];
    lines.extend(reconstructed(plan));
    if let Some(Parameter::Text(reason)) = plan.parameters().get(REASON) {
        lines.insert(2, format!("reason     {reason}"));
    }
    lines.extend(load(plan));
    lines.extend(network(plan));
    lines.extend(air.map(|air| format!("air        {}", air.words())));
    lines.extend(steps(plan));
    lines.join("\n")
}

/// The number of slots, with its lower bound.
fn slots(plan: &Plan) -> String {
    let forecast = plan.forecast();
    let slots = forecast.slots_per_period;
    match forecast.slots_lower_bound {
        None => String::new(),
        Some(bound) if bound >= slots => format!(" in {slots} slots, optimal for these links"),
        Some(bound) => format!(" in {slots} slots, at least {bound} for these links"),
    }
}

fn consensus(plan: &Plan) -> String {
    let forecast = plan.forecast();
    let why = || forecast.periods_to_1e_2_note.clone().unwrap_or_else(|| "unknown".to_owned());
    let periods = forecast.periods_to_1e_2.map_or_else(why, |periods| format!("{} to 1e-2", count(periods, "period")));
    forecast.slots_to_1e_2.map_or(periods.clone(), |slots| format!("{slots} slots to 1e-2, {periods}"))
}

/// The largest momentum across rounds.
fn momentum(plan: &Plan) -> String {
    match plan.largest_momentum() {
        Ok(largest) => format!("across rounds up to {largest}"),
        Err(unresolved) => format!("unknown ({unresolved})"),
    }
}

/// The nodes and links whose loss would disconnect the others.
fn losses(plan: &Plan) -> String {
    let forecast = plan.forecast();
    if forecast.critical_nodes + forecast.critical_links == 0 {
        return "losses     any one node or link may fail: the others still reach each other".to_owned();
    }
    let links = plan.steps().iter().flat_map(MixingStep::links).map(|link| link.link());
    let resilience = Resilience::of(&Digraph::new(plan.node_count(), links));
    let name = |node: usize| plan.base().names()[node].clone();
    let nodes = listed(resilience.critical_nodes.iter().map(|&node| name(node)));
    let links = resilience.critical_links.iter();
    let links = listed(links.map(|link| format!("{} -> {}", name(link.from), name(link.to))));
    format!(
        "losses     the others need {}{nodes} and {}{links}",
        count(forecast.critical_nodes, "node"),
        count(forecast.critical_links, "link")
    )
}

/// The values of others that curious nodes compute from averages alone; nothing for plans too large for that.
fn reconstructed(plan: &Plan) -> Option<String> {
    let one = reconstruction::of_plan(plan, 1)?;
    let others = plan.node_count() - 1;
    let both = reconstruction::of_plan(plan, 2).map(|two| format!(", two together {two} of {}", others - 1));
    let both = both.unwrap_or_default();
    Some(format!(
        "curious    one node computes up to {one} of {others} others' values from averages of fixed values{both}"
    ))
}

/// The first few names, in parentheses.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    if names.len() == 0 {
        return String::new();
    }
    let rest = if names.len() > LISTED_NAMES { ", ..." } else { "" };
    format!(" ({}{rest})", names.take(LISTED_NAMES).collect::<Vec<_>>().join(", "))
}

/// The steps of a period of more than one, one per line.
fn steps(plan: &Plan) -> Vec<String> {
    let steps = plan.steps();
    if steps.len() == 1 {
        return Vec::new();
    }
    let line = |(number, step): (usize, &MixingStep)| {
        let slots = match plan.medium() {
            Medium::Broadcast => format!(" in {}", count(step.slots().len(), "slot")),
            Medium::PointToPoint => String::new(),
        };
        format!("step {number:<5} {}{slots}", count(step.links().len(), "link"))
    };
    let mut lines: Vec<String> = steps.iter().enumerate().take(LISTED_STEPS).map(line).collect();
    if steps.len() > LISTED_STEPS {
        lines.push(format!("...        and {} more steps", steps.len() - LISTED_STEPS));
    }
    lines
}

/// The load of the busiest node on separate links.
fn load(plan: &Plan) -> Option<String> {
    let load = plan.round_load(FOUR_BITS)?;
    let seconds = load.seconds.map_or_else(String::new, |seconds| format!(", {}", short_time(seconds)));
    Some(format!(
        "load       {:.2} payloads of {:.2} of the model's bytes one after the other in a round{seconds}; the busiest node \
         carries {:.2} times the mean of a period",
        load.busiest_payloads, load.payload_share, load.heaviest_share
    ))
}

/// A time in seconds, or in milliseconds where it is short.
fn short_time(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.3} ms", 1e3 * seconds) } else { format!("{seconds:.3} s") }
}

/// The forecast from link measurements, if the plan has them.
fn network(plan: &Plan) -> Option<String> {
    let forecast = plan.forecast();
    let seconds = forecast.seconds_per_period?;
    let bytes = forecast.bytes_per_node_per_period?;
    let slowest = plan.network()?.slowest_link(plan.steps(), plan.medium())?;
    let name = |node: usize| &plan.base().names()[node];
    Some(format!(
        "network    {} and up to {bytes} bytes per node in a period; slowest link {} -> {} with {}",
        short_time(seconds),
        name(slowest.from),
        name(slowest.to),
        short_time(slowest.seconds)
    ))
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn parameters(plan: &Plan) -> String {
    let short = plan.parameters().iter().filter(|(name, _)| *name != REASON);
    let words: Vec<String> = short.map(|(name, value)| format!("{name} {value}")).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}
