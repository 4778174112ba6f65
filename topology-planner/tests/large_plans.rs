//! Plans for many nodes: bounds on their memory and time, and refusals of what would take too long.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignOptions, Link, Medium, Method, Plan, PlanError, Topology, TopologyError, coloring,
    conflict_graph::ConflictGraph, design,
};

const NODES: usize = 100_000;

fn point_to_point() -> DesignOptions {
    DesignOptions { medium: Medium::PointToPoint, effort: 1, ..DesignOptions::default() }
}

/// A grid: as large a diameter as a geometric graph, and certainly connected.
fn grid() -> Topology {
    Topology::generate("grid:rows=317,cols=316").unwrap()
}

#[test]
fn a_hundred_thousand_nodes_average_exactly_and_their_plan_takes_memory_for_its_links_only() {
    let topology = grid();
    for options in [DesignOptions { effort: 1, ..DesignOptions::default() }, point_to_point()] {
        let plan = design(&topology, Method::ExactAverage, &options).unwrap();
        assert_eq!(plan.forecast().periods_to_1e_2, Some(1), "{:?}", options.medium);
        assert_eq!(plan.forecast().lambda_2, Some(0.0));
        assert!(plan.check_method().unwrap().verified.is_some());
        assert!(plan.steps().len() >= 316);
        let links: usize = plan.steps().iter().map(|step| step.links().len()).sum();
        let kept: usize = plan.steps().iter().map(|step| step.kept().len()).sum();
        assert_eq!(links, 2 * (topology.node_count() - 1));
        assert!(kept <= links, "a node that sends nothing keeps all, without a number for it");
    }
}

#[test]
fn a_plan_for_a_hundred_thousand_nodes_is_read_as_it_was_written() {
    let plan = design(&grid(), Method::ExactAverage, &point_to_point()).unwrap();
    let text = plan.to_json();
    assert!(text.contains("\"kept\": [") && !text.contains("\"keep\""));
    let copy = Plan::from_json(&text).unwrap();
    assert_eq!(copy.hash(), plan.hash());
    assert!(copy.forecast_differences().unwrap().is_empty());
    assert!(matches!(plan.to_postcard(), Err(PlanError::TooLarge { .. })));
}

#[test]
fn more_links_than_dsatur_takes_share_no_slot_with_what_disturbs_them() {
    let topology = grid();
    let both_ways = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
    let graph = ConflictGraph::new(&topology, both_ways);
    let links = graph.links().len();
    assert!(links > coloring::MAX_DSATUR_LINKS);
    let coloring = coloring::best(&graph, 10, 0);
    for link in 0..links {
        graph.for_each_conflict(link, |other| assert_ne!(coloring.colors[link], coloring.colors[other]));
    }
    assert!((coloring.lower_bound..=16).contains(&coloring.slot_count), "{}", coloring.slot_count);
}

#[test]
fn a_hundred_thousand_nodes_send_to_one_peer_a_step() {
    let topology = Topology::generate("exponential:n=131072").unwrap();
    let plan = design(&topology, Method::OnePeerExponential, &point_to_point()).unwrap();
    assert_eq!((plan.steps().len(), plan.forecast().diameter), (17, 17));
    assert_eq!(plan.forecast().lambda_2, Some(0.0), "a power of two averages exactly");
    assert_eq!((plan.forecast().critical_nodes, plan.forecast().critical_links), (0, 0));
}

#[test]
fn a_million_nodes_under_one_root_average_exactly() {
    let topology = Topology::generate("star:n=1048576").unwrap();
    let plan = design(&topology, Method::ExactAverage, &point_to_point()).unwrap();
    assert_eq!((plan.steps().len(), plan.forecast().diameter), (2, 2));
    assert_eq!(plan.forecast().periods_to_1e_2, Some(1));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_made() {
    let complete = Topology::generate("complete:n=1000000");
    assert!(matches!(complete, Err(TopologyError::TooManyEdges { edges: 499_999_500_000 })), "{complete:?}");
    assert!(Topology::generate("ring:n=1048577").unwrap_err().to_string().contains("1048576"));
    // Half a ring up and half a ring down: 100,000 steps.
    let ring = Topology::generate(&format!("ring:n={NODES}")).unwrap();
    for options in [DesignOptions::default(), point_to_point()] {
        let refusal = design(&ring, Method::ExactAverage, &options).unwrap_err().to_string();
        assert!(refusal.contains("100000 steps"), "{refusal}");
    }
}

#[test]
fn kept_shares_name_each_node_once_and_none_that_is_not_there() {
    let plan = design(&Topology::generate("ring:n=4").unwrap(), Method::DPsgd, &DesignOptions::default()).unwrap();
    let keep = |text: &str| {
        let old = plan.to_json();
        let begin = old.find("\"keep\"").unwrap();
        let end = old[begin..].find("\"links\"").unwrap() + begin;
        Plan::from_json(&format!("{}{text},\n{}", &old[..begin], &old[end..]))
    };
    let share = plan.steps()[0].keep()[0];
    let all: Vec<String> = (0..4).map(|node| format!("[{node}, {share}]")).collect();
    assert_eq!(keep(&format!("\"kept\": [{}]", all.join(", "))).unwrap().hash(), plan.hash());
    assert!(matches!(keep("\"kept\": [[1, 0.5], [1, 0.5]]"), Err(PlanError::KeptNode { step: 0, node: 1 })));
    assert!(matches!(keep("\"kept\": [[4, 0.5]]"), Err(PlanError::KeptNode { step: 0, node: 4 })));
    assert!(matches!(keep("\"keep\": [1, 1, 1, 1], \"kept\": []"), Err(PlanError::KeepAndKept { step: 0 })));
    assert!(matches!(keep("\"kept\": [[0, 0.5]]"), Err(PlanError::ColumnSum { step: 0, node: 0, .. })));
}

#[test]
fn a_hundred_thousand_nodes_that_send_to_one_receiver_are_given_up_on_a_broadcast_medium() {
    let star = Topology::generate(&format!("star:n={NODES}")).unwrap();
    let refusal = design(&star, Method::ExactAverage, &DesignOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("point-to-point"), "{refusal}");
}
