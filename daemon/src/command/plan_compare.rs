//! `mingle plan compare`: the costs of all designs, side by side.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_net::multicast::AirForecast;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, plan};
use mingle_planner::{
    DesignObjective, DesignOptions, Forecast, Medium, Method, Plan,
    design::{Candidate, cost},
    load::{FOUR_BITS, RoundLoad},
    reconstruction,
};
use mingle_protocol::CodecChoice;

use super::design_request;
use crate::cli::{AirArgs, PlanCompareArgs};
use crate::out;

/// Designs by every method and prints a line for each; refused ones have their reason below the table.
pub(super) fn execute(arguments: &PlanCompareArgs, json: bool) -> Result {
    let (topology, options) = design_request::read(&arguments.design)?;
    let methods = methods(&arguments.methods)?;
    let progress = progress(methods.len() as u64);
    let mut candidates = Vec::new();
    for method in methods {
        progress.set_message(method.name());
        candidates.extend(mingle_planner::design::compare(&topology, &[method], &options));
        progress.inc(1);
    }
    progress.finish_and_clear();
    let best = cheapest(&candidates, &options);
    let traffic = TrafficColumns { codecs: &arguments.codec, air: arguments.design.air };
    if json {
        out::line(document(&candidates, best, &traffic));
        return Ok(());
    }
    out::line(format!("{} nodes, {} edges", topology.node_count(), topology.edges().len()));
    out::line(table(&candidates, &traffic));
    for candidate in &candidates {
        if let Err(error) = &candidate.outcome {
            out::line(format!("{}: {error}", candidate.method));
        }
    }
    if let Some((method, cost, unit)) = best {
        let digits = if cost < 1.0 { format!("{cost:.3}") } else { format!("{cost:.1}") };
        out::line(format!("auto would take {method}: {digits} {unit}"));
    }
    Ok(())
}

fn methods(words: &[String]) -> Result<Vec<Method>> {
    if words.is_empty() {
        return Ok(Method::ALL.into_iter().filter(|method| method.is_tried_by_auto()).collect());
    }
    words.iter().map(|word| word.parse().context(ErrorKind::BadInput, format!("--methods {word}"))).collect()
}

/// The design that `auto` would choose among these, its cost, and the unit of the cost.
fn cheapest(candidates: &[Candidate], options: &DesignOptions) -> Option<(Method, f64, &'static str)> {
    let priced = candidates.iter().filter_map(|candidate| {
        let plan = candidate.outcome.as_ref().ok()?;
        let unit = match (plan.network(), plan.medium(), options.objective) {
            (Some(_), _, DesignObjective::Agreement) => "seconds until all agree to 1e-2",
            (Some(_), ..) => "seconds for a gradient step",
            (None, Medium::Broadcast, DesignObjective::Agreement) => "slots until all agree to 1e-2",
            (None, Medium::Broadcast, _) => "slots for a gradient step",
            (None, Medium::PointToPoint, DesignObjective::Agreement) => {
                "payloads of the busiest node until all agree to 1e-2"
            }
            (None, Medium::PointToPoint, _) => "payloads of the busiest node for a gradient step",
        };
        Some((candidate.method, cost(plan, options)?, unit))
    });
    // The first among equals, as auto does.
    priced.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A spinner on a terminal, nothing elsewhere.
fn progress(methods: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(methods), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} designing {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A column: its heading, and its value for a plan.
type Column = (&'static str, fn(&Plan, &Forecast) -> String);

const COLUMNS: [Column; 16] = [
    ("design", |plan, _| plan.method().to_owned()),
    ("steps", |plan, _| plan.steps().len().to_string()),
    ("slots", |plan, forecast| match plan.medium() {
        Medium::Broadcast => forecast.slots_per_period.to_string(),
        Medium::PointToPoint => unknown(),
    }),
    ("slots/round", |plan, forecast| {
        slots(forecast.slots_per_period as f64 * plan.round_length() as f64 / plan.steps().len() as f64)
    }),
    ("at least", |plan, forecast| {
        let rounds = plan.steps().len() as f64 / plan.round_length() as f64;
        forecast.slots_lower_bound.map_or_else(unknown, |bound| slots(bound as f64 / rounds))
    }),
    ("links", |_, forecast| forecast.links.to_string()),
    ("D+", |_, forecast| forecast.max_out_degree.to_string()),
    ("D-", |_, forecast| forecast.max_in_degree.to_string()),
    ("diameter", |_, forecast| forecast.diameter.to_string()),
    ("|lambda2|", |_, forecast| forecast.lambda_2.map_or_else(unknown, |value| format!("{value:.4}"))),
    ("slots/neper", |_, forecast| forecast.slots_per_neper.map_or_else(unknown, |value| format!("{value:.1}"))),
    ("to 1e-2", |_, forecast| {
        forecast.slots_to_1e_2.or(forecast.periods_to_1e_2).map_or_else(unknown, |count| count.to_string())
    }),
    ("momentum", |plan, _| plan.largest_momentum().map_or_else(|_| unknown(), |largest| format!("{largest:.2}"))),
    ("min n*pi", |_, forecast| forecast.perron_min.map_or_else(unknown, |value| format!("{value:.3}"))),
    ("payloads", |_, forecast| forecast.payloads_per_period.to_string()),
    ("curious", |plan, _| reconstruction::of_plan(plan, 1).map_or_else(unknown, |values| values.to_string())),
];

/// The columns of a point-to-point medium: payloads of the busiest node in a round, the heaviest node's share of the mean,
/// and the bytes of a payload as a share of those in f32.
const WIRE_COLUMNS: [Column; 3] = [
    ("busiest", |plan, _| of_load(plan, |load| format!("{:.2}", load.busiest_payloads))),
    ("heaviest", |plan, _| of_load(plan, |load| format!("{:.2}", load.heaviest_share))),
    ("payload", |plan, _| of_load(plan, |load| format!("{:.2}", load.payload_share))),
];

/// The columns of measured links.
const SECONDS: [Column; 2] = [
    ("s/period", |_, forecast| forecast.seconds_per_period.map_or_else(unknown, |value| format!("{value:.3}"))),
    ("s/round", |plan, _| of_load(plan, |load| load.seconds.map_or_else(unknown, |value| format!("{value:.3}")))),
];

fn of_load(plan: &Plan, cell: fn(RoundLoad) -> String) -> String {
    plan.round_load(FOUR_BITS).map_or_else(unknown, cell)
}

/// The columns requested by `--codec`, bytes of a round over all links by codec, and by `--air-rate`.
struct TrafficColumns<'a> {
    codecs: &'a [CodecChoice],
    air: AirArgs,
}

/// The columns of `--air-rate`.
const ON_AIR: [&str; 3] = ["ms/slot", "s/round", "s to 1e-2"];

impl TrafficColumns<'_> {
    fn headings(&self) -> Vec<String> {
        let bytes = self.codecs.iter().map(|codec| format!("{codec} MB"));
        let on_air = ON_AIR.iter().filter(|_| self.air.air_rate.is_some()).map(|heading| (*heading).to_owned());
        bytes.chain(on_air).collect()
    }

    /// The forecast of `plan` on the air, in the first codec.
    fn air_forecast(&self, plan: &Plan) -> Option<AirForecast> {
        let codec = self.codecs.first().copied().unwrap_or(CodecChoice::Auto);
        self.air.forecast(plan, codec).ok().flatten()
    }

    /// Bytes of parameters that all nodes send in a round of `plan`, by codec.
    fn bytes_per_round(&self, plan: &Plan) -> Vec<(CodecChoice, Option<f64>)> {
        let dimension = usize::try_from(self.air.payload_bytes / 4).unwrap_or(usize::MAX);
        let rounds = plan.steps().len() as f64 / plan.round_length() as f64;
        // Without requested codecs nothing is computed.
        let schedule = if self.codecs.is_empty() { None } else { plan::schedule(plan).ok() };
        let bytes = |codec: CodecChoice| {
            let schedule = schedule.as_ref()?;
            let codec = codec.under(schedule, dimension).codec;
            Some(schedule.encodings(codec).bytes(dimension) as f64 / rounds)
        };
        self.codecs.iter().map(|codec| (*codec, bytes(*codec))).collect()
    }

    fn cells(&self, plan: &Plan) -> Vec<String> {
        let cell =
            |(_, bytes): (CodecChoice, Option<f64>)| bytes.map_or_else(unknown, |bytes| format!("{:.2}", bytes / 1e6));
        let on_air = self.air.air_rate.map(|_| {
            let Some(air) = self.air_forecast(plan) else { return ON_AIR.map(|_| unknown()) };
            let agreed = air.seconds_to_1e_2.map_or_else(unknown, |seconds| format!("{seconds:.3}"));
            [format!("{:.1}", 1e3 * air.seconds_per_slot), format!("{:.3}", air.seconds_per_round), agreed]
        });
        self.bytes_per_round(plan).into_iter().map(cell).chain(on_air.into_iter().flatten()).collect()
    }

    fn to_json(&self, plan: &Plan) -> serde_json::Value {
        self.bytes_per_round(plan)
            .into_iter()
            .map(|(codec, bytes)| (codec.to_string(), bytes.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

fn unknown() -> String {
    "-".to_owned()
}

fn slots(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

fn table(candidates: &[Candidate], traffic: &TrafficColumns<'_>) -> String {
    let plans = candidates.iter().filter_map(|candidate| candidate.outcome.as_ref().ok());
    let plans: Vec<&Plan> = plans.collect();
    // The medium and the measurements are those of all plans.
    let is_wire = plans.iter().any(|plan| plan.medium() == Medium::PointToPoint);
    let has_seconds = plans.iter().any(|plan| plan.forecast().seconds_per_period.is_some());
    let of_wires = if is_wire { &WIRE_COLUMNS[..] } else { &[] };
    let of_seconds = if has_seconds { &SECONDS[..if is_wire { 2 } else { 1 }] } else { &[] };
    let used: Vec<&Column> = COLUMNS.iter().chain(of_wires).chain(of_seconds).collect();
    let headings = used.iter().map(|(heading, _)| (*heading).to_owned()).chain(traffic.headings()).collect();
    let row = |plan: &&Plan| -> Vec<String> {
        used.iter().map(|(_, cell)| cell(plan, plan.forecast())).chain(traffic.cells(plan)).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(plans.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let first = format!("{:<1$}", row[0], width(0));
        (1..row.len()).fold(first, |line, column| format!("{line}  {:>1$}", row[column], width(column)))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn document(
    candidates: &[Candidate],
    best: Option<(Method, f64, &'static str)>,
    traffic: &TrafficColumns<'_>,
) -> serde_json::Value {
    let entry = |candidate: &Candidate| match &candidate.outcome {
        Ok(plan) => serde_json::json!({
            "method": candidate.method.name(),
            "steps": plan.steps().len(),
            "round_length": plan.round_length(),
            "parameters": plan.parameters().iter().map(|(name, value)| (name.clone(), value.to_string().into())).collect::<serde_json::Map<_, _>>(),
            "bytes_per_round": traffic.to_json(plan),
            "air": traffic.air_forecast(plan),
            "reconstructed_by_one": reconstruction::of_plan(plan, 1),
            "forecast": serde_json::from_str::<serde_json::Value>(&plan.forecast_to_json()).unwrap_or_default(),
        }),
        Err(error) => serde_json::json!({ "method": candidate.method.name(), "refused": error.to_string() }),
    };
    serde_json::json!({
        "schema": "mingle.plan-compare/1",
        "auto": best.map(|(method, cost, unit)| serde_json::json!({ "method": method.name(), "cost": cost, "unit": unit })),
        "designs": candidates.iter().map(entry).collect::<Vec<_>>(),
    })
}
