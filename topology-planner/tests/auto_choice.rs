//! What `auto` takes, beside slots that were measured by training.
//!
//! The slots are means over seeds 0 and 1 of `mingle evaluate examples/evaluation/local-steps.toml`: softmax regression on the
//! digits until the target accuracy.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use mingle_planner::{DesignOptions, Method, Objective, Plan, Topology, design, design::cost};
use serde_json::Value;

/// A topology, the heterogeneity of the data, local steps, and the slots that designs took.
type Case = (&'static str, f64, u32, &'static [(Method, f64)]);

const SORTED: f64 = 1.0;
const EVEN: f64 = 0.02;

use Method::{BassOptimised, DPsgd, ExactAverage, NguyenHe, Tuned};

const MEASURED: &[Case] = &[
    (
        "ring:n=6",
        SORTED,
        1,
        &[(ExactAverage, 1260.0), (Tuned, 684.0), (BassOptimised, 502.0), (NguyenHe, 618.0), (DPsgd, 618.0)],
    ),
    (
        "ring:n=6",
        SORTED,
        2,
        &[(ExactAverage, 660.0), (Tuned, 456.0), (BassOptimised, 318.0), (NguyenHe, 372.0), (DPsgd, 372.0)],
    ),
    (
        "ring:n=6",
        SORTED,
        8,
        &[(ExactAverage, 192.0), (Tuned, 312.0), (BassOptimised, 197.0), (NguyenHe, 210.0), (DPsgd, 210.0)],
    ),
    (
        "ring:n=12",
        SORTED,
        1,
        &[(ExactAverage, 2544.0), (Tuned, 810.0), (BassOptimised, 731.0), (NguyenHe, 948.0), (DPsgd, 948.0)],
    ),
    (
        "ring:n=12",
        SORTED,
        2,
        &[(ExactAverage, 1344.0), (Tuned, 618.0), (BassOptimised, 578.0), (NguyenHe, 738.0), (DPsgd, 738.0)],
    ),
    ("ring:n=12", SORTED, 8, &[(ExactAverage, 432.0), (Tuned, 438.0)]),
    ("ring:n=20", SORTED, 1, &[(ExactAverage, 4000.0), (Tuned, 1468.0), (NguyenHe, 1076.0), (DPsgd, 2112.0)]),
    ("ring:n=20", SORTED, 2, &[(ExactAverage, 2160.0), (Tuned, 1232.0), (NguyenHe, 792.0), (DPsgd, 1912.0)]),
    ("ring:n=20", SORTED, 8, &[(ExactAverage, 740.0), (Tuned, 1216.0), (NguyenHe, 776.0)]),
    ("ring:n=20", EVEN, 1, &[(ExactAverage, 8280.0), (Tuned, 1788.0), (NguyenHe, 1716.0), (DPsgd, 1748.0)]),
    ("ring:n=20", EVEN, 2, &[(ExactAverage, 4280.0), (Tuned, 928.0), (NguyenHe, 880.0), (DPsgd, 920.0)]),
    ("ring:n=20", EVEN, 8, &[(ExactAverage, 1120.0), (Tuned, 268.0), (NguyenHe, 256.0), (DPsgd, 276.0)]),
];

#[test]
fn what_auto_takes_trains_within_a_tenth_of_the_slots_of_the_best_design() {
    let mut plans: BTreeMap<(&str, Method), Plan> = BTreeMap::new();
    for &(expression, heterogeneity, local_steps, measured) in MEASURED {
        let topology = Topology::generate(expression).unwrap();
        let mut price = |method: Method| {
            let plan = plans.entry((expression, method));
            let plan = plan.or_insert_with(|| design(&topology, method, &DesignOptions::default()).unwrap());
            cost(&with_local_steps(plan, local_steps), Objective::Training, heterogeneity).unwrap()
        };
        let priced = measured.iter().map(|&(method, slots)| (price(method), method, slots));
        let (_, taken, slots) = priced.reduce(|a, b| if b.0 < a.0 { b } else { a }).unwrap();
        let best = measured.iter().map(|&(_, slots)| slots).fold(f64::INFINITY, f64::min);
        assert!(
            slots <= 1.1 * best,
            "{expression}, heterogeneity {heterogeneity}, {local_steps} local steps: {taken} took {slots} slots, the best {best}"
        );
    }
}

/// The plan with other local steps: no named design looks at these.
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
    assert_ne!(taken(1, SORTED), "exact-average");
    assert_eq!(taken(8, SORTED), "exact-average");
    assert_ne!(taken(8, EVEN), "exact-average");
    let impossible = DesignOptions { heterogeneity: 1.5, ..DesignOptions::default() };
    let refused = design(&ring, Method::Auto, &impossible).unwrap_err().to_string();
    assert!(refused.starts_with("a heterogeneity of 1.5 is none"), "{refused}");
}
