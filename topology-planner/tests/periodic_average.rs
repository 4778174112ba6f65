//! Plans of some rounds of gossip and a round of an exact average.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignError, DesignOptions, FaultTolerance, Medium, Method, MixingStep, Parameter, Plan, Topology, design,
    design::{PeriodicAverage, cost},
};

fn periodic(text: &str) -> Method {
    text.parse().unwrap()
}

fn on_wires(local_steps: u32) -> DesignOptions {
    DesignOptions { medium: Medium::PointToPoint, local_steps, ..DesignOptions::default() }
}

/// The largest difference that these steps leave of the values 0, 1, 2, ... of the nodes.
fn left_by(nodes: usize, steps: &[MixingStep]) -> f64 {
    let mut values: Vec<f64> = (0..nodes).map(|node| node as f64).collect();
    let mut scratch = vec![0.0; nodes];
    steps.iter().for_each(|step| step.mix(&mut values, &mut scratch));
    let mean = (nodes - 1) as f64 / 2.0;
    values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
}

fn rounds(plan: &Plan) -> Vec<&[MixingStep]> {
    plan.steps().chunks(plan.round_length()).collect()
}

#[test]
fn the_last_round_alone_averages_exactly_and_those_before_are_the_gossip() {
    for (topology, inner, medium) in [
        ("complete:n=8", "one-peer-exponential", Medium::PointToPoint),
        ("rg:n=12,r=0.5,seed=3", "nguyen-he", Medium::Broadcast),
        ("grid:rows=3,cols=3", "d-psgd", Medium::Broadcast),
    ] {
        let base = Topology::generate(topology).unwrap();
        let options = DesignOptions { medium, effort: 1, ..DesignOptions::default() };
        let plan = design(&base, periodic(&format!("periodic-average:inner={inner},k=3")), &options).unwrap();
        let gossip = design(&base, periodic(inner), &options).unwrap();
        let rounds = rounds(&plan);
        // Exact averages take turns at their roots.
        let turns = if medium == Medium::PointToPoint { 4 } else { 1 };
        assert_eq!(rounds.len(), 4 * turns, "{topology}");
        let mut gossip_steps = gossip.steps().iter().cycle();
        for (number, round) in rounds.iter().enumerate() {
            if number % 4 == 3 {
                assert!(left_by(base.node_count(), round) < 1e-9, "{topology}, round {number}");
                continue;
            }
            assert_eq!(Some(&round[0]), gossip_steps.next(), "{topology}, round {number}");
            assert!(round[1..].iter().all(|step| step.links().is_empty()), "{topology}, round {number}");
        }
        assert_eq!(plan.parameters()["gossip_rounds"], Parameter::Whole(3));
        assert_eq!(plan.parameters()["inner"], Parameter::Text(inner.to_owned()));
        assert_eq!(plan.forecast().lambda_2, Some(0.0), "{topology}");
        assert!(plan.check_method().unwrap().verified.is_some());
        assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap().hash(), plan.hash());
    }
}

#[test]
fn an_exact_average_after_three_one_peer_steps_bears_the_most_momentum() {
    let base = Topology::generate("complete:n=8").unwrap();
    let options = on_wires(1);
    let plan = design(&base, periodic("periodic-average:inner=one-peer-exponential,k=3"), &options).unwrap();
    assert_eq!(plan.largest_momentum(), Ok(0.99));
    let gossip = design(&base, Method::OnePeerExponential, &options).unwrap();
    assert_eq!(gossip.largest_momentum(), Ok(0.61));
}

#[test]
fn choices_that_are_left_open_are_made_for_the_least_cost() {
    let base = Topology::generate("complete:n=8").unwrap();
    for local_steps in [1, 20] {
        let options = on_wires(local_steps);
        let price = |plan: &Plan| cost(plan, &options).unwrap();
        let open = design(&base, Method::PeriodicAverage(PeriodicAverage::default()), &options).unwrap();
        for inner in ["one-peer-exponential", "nguyen-he"] {
            for k in [1, 3, 7] {
                let text = format!("periodic-average:inner={inner},k={k}");
                let chosen = design(&base, periodic(&text), &options).unwrap();
                assert!(price(&open) <= price(&chosen) + 1e-9, "{local_steps} local steps, {text}");
            }
        }
    }
}

#[test]
fn a_round_over_the_budget_of_slots_is_refused_even_if_others_are_short() {
    let base = Topology::generate("grid:rows=3,cols=3").unwrap();
    let plan = design(&base, periodic("periodic-average:k=7"), &DesignOptions::default()).unwrap();
    let longest =
        rounds(&plan).iter().map(|round| round.iter().map(|step| step.slots().len()).sum::<usize>()).max().unwrap();
    let within = |slots: usize| {
        let options = DesignOptions { budget_slots: Some(slots), ..DesignOptions::default() };
        design(&base, periodic("periodic-average:k=7"), &options)
    };
    assert!(within(longest).is_ok());
    assert!(matches!(within(longest - 1), Err(DesignError::BudgetSlots { .. })));
}

#[test]
fn auto_takes_it_where_its_forecast_wins() {
    let ring = Topology::generate("ring:n=12").unwrap();
    let options = DesignOptions { local_steps: 4, effort: 1, ..DesignOptions::default() };
    let price = |plan: &Plan| cost(plan, &options).unwrap();
    let taken = design(&ring, Method::Auto, &options).unwrap();
    assert_eq!(taken.method(), "periodic-average");
    let others = Method::ALL
        .into_iter()
        .filter(|method| method.is_tried_by_auto() && !matches!(method, Method::PeriodicAverage(_)));
    let prices: Vec<f64> =
        others.filter_map(|method| design(&ring, method, &options).ok()).map(|plan| price(&plan)).collect();
    assert!(prices.len() >= 5 && prices.iter().all(|other| price(&taken) < *other), "{prices:?}");
}

#[test]
fn where_any_node_may_be_lost_no_plan_gathers_the_weight_of_all_at_one() {
    let base = Topology::generate("complete:n=8").unwrap();
    let options = DesignOptions { fault_tolerance: FaultTolerance::AnyNode, ..on_wires(20) };
    for method in ["periodic-average:inner=nguyen-he,k=1", "exact-average", "auto"] {
        let taken = design(&base, periodic(method), &options).unwrap();
        let mut weights = vec![1.0; 8];
        let mut scratch = vec![0.0; 8];
        for step in rounds(&taken).into_iter().flatten() {
            step.mix(&mut weights, &mut scratch);
            assert!(weights.iter().all(|weight| *weight <= 4.0), "{method}: {weights:?}");
        }
    }
    // On a graph that lacks the links of base graphs there are only trees.
    let ring = Topology::generate("ring:n=5").unwrap();
    let resilient = "periodic-average:inner=d-psgd,k=1";
    for method in [resilient, "exact-average"] {
        let refused = design(&ring, periodic(method), &options).unwrap_err();
        assert!(matches!(refused, DesignError::Fragile { .. }), "{method}: {refused}");
    }
    let refused = design(&ring, periodic(resilient), &options).unwrap_err().to_string();
    assert!(refused.contains("which holds most of the weight of all at times"), "{refused}");
}
