//! The choices of `auto`, compared with slots that were measured by training.
//!
//! `auto_choice/slots.csv` is the output of the example `auto_choice`: graph, split, local steps, design, slots a
//! round, slots to the target as the mean over five seeds (`-` where one took more than three times those of the best).

#![allow(clippy::unwrap_used)]

#[path = "../examples/auto_choice/graphs.rs"]
mod graphs;

use std::collections::BTreeMap;

use mingle_planner::{DesignOptions, Method, Plan, Topology, design, design::cost};
use serde_json::Value;

const MEASURED: &str = include_str!("auto_choice/slots.csv");

/// Graphs whose plans are made in seconds. The last two had no part in developing the estimate of costs.
const GRAPHS: [&str; 8] = [
    "ring:n=6",
    "ring:n=12",
    "ring:n=20",
    "grid:rows=4,cols=4",
    "star:n=8",
    "path:n=8",
    "ring:n=9",
    "tree:n=12,seed=3",
];

/// The cases where the choice is more than a tenth above the best: graph, local steps, and the ratio that is allowed.
const WORSE: [(&str, u32, f64); 1] = [("grid:rows=4,cols=4", 2, 1.14)];

/// A line of the table.
struct Line {
    graph: &'static str,
    heterogeneity: f64,
    local_steps: u32,
    method: Method,
    slots_per_round: f64,
    slots: f64,
}

fn measured() -> Vec<Line> {
    let line = |line: &'static str| {
        let fields: Vec<&str> = line.split(';').collect();
        Line {
            graph: fields[0],
            heterogeneity: if fields[1] == "sorted" { 1.0 } else { 0.02 },
            local_steps: fields[2].parse().unwrap(),
            method: fields[3].parse().unwrap(),
            slots_per_round: fields[4].parse().unwrap(),
            slots: fields[5].parse().unwrap_or(f64::INFINITY),
        }
    };
    MEASURED.lines().map(line).collect()
}

#[test]
fn what_auto_takes_trains_within_a_tenth_of_the_slots_of_the_best_design() {
    let lines = measured();
    for name in GRAPHS {
        let topology = graphs::graph(name);
        let mut plans: BTreeMap<Method, Plan> = BTreeMap::new();
        let of_graph: Vec<&Line> = lines.iter().filter(|line| line.graph == name).collect();
        assert!(!of_graph.is_empty(), "{name} has not been measured");
        let is_same_case = |a: &&Line, b: &&Line| (a.local_steps, a.heterogeneity) == (b.local_steps, b.heterogeneity);
        for case in of_graph.chunk_by(is_same_case) {
            let mut price = |line: &Line| {
                let plan = plans.entry(line.method);
                let plan = plan.or_insert_with(|| design(&topology, line.method, &DesignOptions::default()).unwrap());
                let found = slots_per_round(plan);
                let is_known = (found - line.slots_per_round).abs() < 0.006;
                assert!(is_known, "{name}: {} has {found} slots a round now, it has to be measured again", line.method);
                {
                    let options = DesignOptions { heterogeneity: line.heterogeneity, ..DesignOptions::default() };
                    cost(&with_local_steps(plan, line.local_steps), &options).unwrap()
                }
            };
            let priced = case.iter().map(|line| (price(line), line));
            let (_, taken) = priced.reduce(|a, b| if b.0 < a.0 { b } else { a }).unwrap();
            let best = case.iter().map(|line| line.slots).fold(f64::INFINITY, f64::min);
            let is_case = |&&(graph, steps, _): &&(&str, u32, f64)| (graph, steps) == (name, taken.local_steps);
            let bound = WORSE.iter().find(is_case).map_or(1.1, |&(_, _, ratio)| ratio);
            assert!(
                taken.slots <= bound * best,
                "{name}, heterogeneity {}, {} local steps: {} took {} slots, the best {best}",
                taken.heterogeneity,
                taken.local_steps,
                taken.method,
                taken.slots
            );
        }
    }
}

#[test]
fn all_graphs_of_the_documentation_have_been_measured() {
    let lines = measured();
    for name in graphs::DEVELOPED_ON.into_iter().chain(graphs::HELD_OUT).chain(graphs::MEASURED_AFTERWARDS) {
        for local_steps in [1, 2, 4, 8] {
            let case =
                |line: &&Line| line.graph == name && line.local_steps == local_steps && line.heterogeneity == 1.0;
            let of_case: Vec<&Line> = lines.iter().filter(case).collect();
            assert!(of_case.iter().any(|line| line.slots.is_finite()), "{name} with {local_steps} local steps");
            assert!(of_case.len() >= 8, "{name} with {local_steps} local steps: a design is missing");
        }
    }
}

fn slots_per_round(plan: &Plan) -> f64 {
    plan.forecast().slots_per_period as f64 * plan.round_length() as f64 / plan.steps().len() as f64
}

/// The plan with other local steps, which no named design looks at.
fn with_local_steps(plan: &Plan, local_steps: u32) -> Plan {
    let mut document: Value = serde_json::from_str(&plan.to_json()).unwrap();
    document["local_steps"] = local_steps.into();
    Plan::from_json(&document.to_string()).unwrap()
}

#[test]
fn auto_goes_from_short_rounds_to_exact_averages_as_local_steps_or_differences_grow() {
    let ring = Topology::generate("ring:n=6").unwrap();
    let taken = |local_steps: u32, heterogeneity: f64| {
        let options = DesignOptions { local_steps, heterogeneity, effort: 1, ..DesignOptions::default() };
        let plan = design(&ring, Method::Auto, &options).unwrap();
        assert_eq!(plan.parameters()["heterogeneity"].to_string(), heterogeneity.to_string());
        plan.method().to_owned()
    };
    assert_ne!(taken(1, 1.0), "exact-average");
    assert_eq!(taken(8, 1.0), "exact-average");
    assert_ne!(taken(8, 0.02), "exact-average");
    let impossible = DesignOptions { heterogeneity: 1.5, ..DesignOptions::default() };
    let refused = design(&ring, Method::Auto, &impossible).unwrap_err().to_string();
    assert!(refused.starts_with("a heterogeneity of 1.5 is none"), "{refused}");
}
