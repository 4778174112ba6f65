//! Base-(k+1) graphs: exact after a period, with few neighbours, for every number of nodes.

#![allow(clippy::unwrap_used)]

use mingle_planner::{DesignError, DesignOptions, Medium, Method, Parameter, Plan, Topology, design};

fn base(topology: &str, k: usize, medium: Medium) -> Result<Plan, DesignError> {
    let options = DesignOptions { medium, effort: 1, ..DesignOptions::default() };
    design(&Topology::generate(topology).unwrap(), format!("base:k={k}").parse().unwrap(), &options)
}

/// The largest distance of an entry of the period's product from `1 / n`.
fn off(plan: &Plan) -> f64 {
    let nodes = plan.node_count();
    let mut scratch = vec![0.0; nodes];
    let of_column = |source: usize| {
        let mut column = vec![0.0; nodes];
        column[source] = 1.0;
        plan.steps().iter().for_each(|step| step.mix(&mut column, &mut scratch));
        column.into_iter().map(|entry| (entry - 1.0 / nodes as f64).abs()).fold(0.0, f64::max)
    };
    (0..nodes).map(of_column).fold(0.0, f64::max)
}

#[test]
fn the_product_of_a_period_is_the_average_for_every_number_of_nodes_and_neighbours() {
    for nodes in 2..=40 {
        for k in 1..=4 {
            let what = format!("n = {nodes}, k = {k}");
            let plan = base(&format!("complete:n={nodes}"), k, Medium::PointToPoint).unwrap();
            assert!(off(&plan) <= 1e-12, "{what}: {:e}", off(&plan));
            assert_eq!(plan.parameters()["k"], Parameter::Whole(k.min(nodes - 1) as u64), "{what}");
            assert_eq!((plan.round_length(), plan.forecast().lambda_2), (1, Some(0.0)), "{what}");
            for step in plan.steps() {
                for (node, keep) in step.keep().into_iter().enumerate() {
                    let links = step.links_from(node);
                    assert!(links.len() <= k, "{what}: {} receivers", links.len());
                    let column = keep + links.iter().map(|link| link.weight).sum::<f64>();
                    assert!((column - 1.0).abs() <= 1e-12, "{what}: column {node} sums to {column}");
                }
            }
            assert!(plan.check_method().unwrap().verified.is_some(), "{what}");
        }
    }
}

#[test]
fn a_medium_with_slots_and_the_graph_of_powers_of_two_have_base_graphs_too() {
    let shared = base("complete:n=6", 1, Medium::Broadcast).unwrap();
    assert!(off(&shared) <= 1e-12 && shared.forecast().slots_per_period > 0);
    for nodes in [8, 16] {
        assert!(off(&base(&format!("exponential:n={nodes}"), 1, Medium::PointToPoint).unwrap()) <= 1e-12);
    }
    let refused = base("ring:n=8", 1, Medium::PointToPoint).unwrap_err();
    assert!(matches!(refused, DesignError::MissingLink { .. }), "{refused}");
    assert!(refused.to_string().contains("that does, complete:n=8, or a design"), "{refused}");
}

#[test]
fn a_plan_under_its_name_that_is_not_symmetric_or_does_not_average_is_refused() {
    let options = DesignOptions { medium: Medium::PointToPoint, effort: 1, ..DesignOptions::default() };
    for (topology, method) in
        [("complete:n=6", Method::OnePeerExponential), ("ring:n=6", Method::DPsgd), ("ring:n=6", Method::ExactAverage)]
    {
        let honest = design(&Topology::generate(topology).unwrap(), method, &options).unwrap();
        let named = |name: &str| format!("\"method\": \"{name}\"");
        let forged = honest.to_json().replace(&named(honest.method()), &named("base"));
        assert!(Plan::from_json(&forged).unwrap().check_method().is_err(), "{method}");
    }
}

#[test]
fn names_are_read_with_their_neighbours_or_refused() {
    assert_eq!("base".parse(), Ok(Method::BaseGraph(None)));
    for text in ["base:k=0", "base:k=", "base:3", "base:k=-1", "base:k=1,k=2"] {
        let refused = text.parse::<Method>().unwrap_err().to_string();
        assert!(refused.contains("write k=NEIGHBOURS"), "{text}: {refused}");
    }
    let open = design(
        &Topology::generate("complete:n=12").unwrap(),
        Method::BaseGraph(None),
        &DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() },
    );
    assert!(matches!(open.unwrap().parameters()["k"], Parameter::Whole(1..=4)));
}
