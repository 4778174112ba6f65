//! Every design on many graphs, checked whole: its plan against the written definitions, its limits against the
//! forecast.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignError, DesignObjective, DesignOptions, FaultTolerance, Link, Method, Plan, Topology,
    betweenness::betweenness,
    coloring,
    column_weights::ColumnWeights,
    conflict_graph::{ConflictGraph, conflict},
    design,
    design::{compare, cost},
    digraph::Digraph,
    edge_coloring::matchings,
    plan::Medium,
    resilience::Resilience,
};
use proptest::prelude::*;

mod conflicts;

use conflicts::conflicts_of;

const GRAPHS: [&str; 9] = [
    "complete:n=2",
    "ring:n=3",
    "grid:rows=1,cols=5",
    "star:n=6",
    "ring:n=9",
    "grid:rows=4,cols=4",
    "windmill:cliques=3,size=5",
    "rg:n=24,r=0.4,seed=3",
    "erdos-renyi:n=18,p=0.25,seed=5",
];

fn generate(expression: &str) -> Topology {
    Topology::generate(expression).unwrap()
}

/// A tenth of the default effort: these tests are about validity.
fn quick() -> DesignOptions {
    DesignOptions { effort: 1, ..DesignOptions::default() }
}

/// Designs that are made of links that not every graph has.
fn has_links_of_its_own(method: Method) -> bool {
    matches!(method, Method::Exponential | Method::OnePeerExponential | Method::BaseGraph(_))
}

/// A plan by a method; `None` where a link of the design is missing in the graph.
fn plan_of(topology: &Topology, method: Method, options: &DesignOptions) -> Option<Plan> {
    match design(topology, method, options) {
        Ok(plan) => Some(plan),
        Err(DesignError::MissingLink { from, to, .. }) if has_links_of_its_own(method) => {
            let number = |name: &str| topology.names().iter().position(|known| known == name).unwrap();
            assert!(!topology.has_edge(number(&from), number(&to)));
            None
        }
        Err(error) => panic!("{method}: {error}"),
    }
}

/// Checks column sums, links of the base, slots by the literal definition of a conflict, and that the period mixes.
fn check_by_definition(plan: &Plan, what: &str) {
    let nodes = plan.node_count();
    for step in plan.steps() {
        let mut columns = step.keep().to_vec();
        for link in step.links() {
            assert!(plan.base().has_edge(link.from, link.to), "{what}: {} -> {}", link.from, link.to);
            columns[link.from] += link.weight;
        }
        assert!(columns.iter().all(|sum| (sum - 1.0).abs() < 1e-9), "{what}: {columns:?}");
        let mut in_slots: Vec<Link> = step.slots().iter().flatten().copied().collect();
        in_slots.sort_unstable();
        if plan.medium() == Medium::Broadcast {
            assert_eq!(in_slots, step.links().iter().map(|link| link.link()).collect::<Vec<_>>(), "{what}");
        }
        for slot in step.slots() {
            for (at, &a) in slot.iter().enumerate() {
                assert!(slot[..at].iter().all(|&b| !conflict(plan.base(), a, b)), "{what}: {a} in {slot:?}");
            }
        }
    }
    let mut x: Vec<f64> = (0..nodes).map(|node| (node * node % 7) as f64).collect();
    let mut w = vec![1.0; nodes];
    let average = x.iter().sum::<f64>() / nodes as f64;
    let mut scratch = vec![0.0; nodes];
    for _ in 0..4 * plan.forecast().periods_to_1e_2.unwrap() {
        for step in plan.steps() {
            step.mix(&mut x, &mut scratch);
            step.mix(&mut w, &mut scratch);
        }
    }
    assert!((w.iter().sum::<f64>() - nodes as f64).abs() < 1e-9, "{what}");
    let worst = x.iter().zip(&w).map(|(x, w)| (x / w - average).abs()).fold(0.0, f64::max);
    assert!(worst < 0.1, "{what}: {worst}");
}

#[test]
fn every_design_keeps_to_the_rules_on_every_medium() {
    for expression in GRAPHS.into_iter().chain(["exponential:n=11", "exponential:n=16"]) {
        let topology = generate(expression);
        for method in Method::ALL {
            for medium in [Medium::Broadcast, Medium::PointToPoint] {
                let is_bass = matches!(method, Method::BassHeuristic | Method::BassOptimised);
                if is_bass && medium == Medium::PointToPoint {
                    let refused = design(&topology, method, &DesignOptions { medium, ..quick() });
                    assert!(matches!(refused, Err(DesignError::BroadcastOnly { .. })), "{method}");
                } else if let Some(plan) = plan_of(&topology, method, &DesignOptions { medium, ..quick() }) {
                    check_by_definition(&plan, &format!("{expression} by {method} on {medium:?}"));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_design_survives_the_file_and_the_wire(n in 2_usize..=10, p in 0.2_f64..1.0, seed in any::<u64>(), steps in any::<u32>()) {
        let Ok(topology) = Topology::generate(&format!("erdos-renyi:n={n},p={p:.2},seed={seed}")) else { return Ok(()) };
        for method in Method::ALL.into_iter().filter(|&method| method != Method::Auto) {
            let options = DesignOptions { seed, local_steps: steps, ..quick() };
            let Some(plan) = plan_of(&topology, method, &options) else { continue };
            check_by_definition(&plan, method.name());
            let from_file = Plan::from_json(&plan.to_json()).unwrap();
            prop_assert_eq!(&from_file, &plan);
            prop_assert_eq!(from_file.hash(), plan.hash());
            prop_assert_eq!(&Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), &plan);
            prop_assert_eq!(plan.forecast_differences().unwrap(), []);
            prop_assert_eq!(Topology::parse(&plan.to_json()).unwrap(), topology.clone());
        }
    }
}

#[test]
fn exact_averaging_gives_the_average_after_one_period_and_no_sooner() {
    for expression in GRAPHS {
        let plan = design(&generate(expression), Method::ExactAverage, &quick()).unwrap();
        let nodes = plan.node_count();
        let mut scratch = vec![0.0; nodes];
        for source in 0..nodes {
            let mut column: Vec<f64> = (0..nodes).map(|node| f64::from(u8::from(node == source))).collect();
            plan.steps().iter().for_each(|step| step.mix(&mut column, &mut scratch));
            assert!(column.iter().all(|x| (x * nodes as f64 - 1.0).abs() < 1e-12), "{expression}: {column:?}");
        }
        let forecast = plan.forecast();
        assert_eq!(forecast.lambda_2, Some(0.0), "{expression}");
        assert_eq!(forecast.slots_to_1e_2, Some(forecast.slots_per_period), "{expression}");
        assert_eq!((forecast.perron_min, forecast.perron_max), (Some(1.0), Some(1.0)), "{expression}");
    }
}

#[test]
fn exact_averaging_is_as_short_as_can_be_where_that_is_known() {
    // One node is received at a time, and the last is received by all: n slots.
    for (expression, slots) in [("complete:n=2", 2), ("complete:n=6", 6), ("star:n=6", 6), ("grid:rows=1,cols=5", 5)] {
        let plan = design(&generate(expression), Method::ExactAverage, &quick()).unwrap();
        assert_eq!(plan.forecast().slots_per_period, slots, "{expression}");
    }
    let windmill = design(&generate("windmill:cliques=3,size=21"), Method::ExactAverage, &quick()).unwrap();
    assert_eq!(windmill.forecast().slots_per_period, 23);
}

#[test]
fn tuning_is_faster_than_algorithm_1_and_starves_nobody() {
    for expression in
        ["star:n=6", "grid:rows=4,cols=4", "windmill:cliques=3,size=5", "rg:n=24,r=0.4,seed=3", "ring:n=9"]
    {
        let topology = generate(expression);
        let speed = |method| design(&topology, method, &quick()).unwrap().forecast().slots_per_neper.unwrap();
        let tuned = design(&topology, Method::Tuned, &quick()).unwrap();
        assert!(tuned.forecast().slots_per_neper.unwrap() < 0.75 * speed(Method::NguyenHe), "{expression}");
        assert!(tuned.forecast().perron_min.unwrap() >= 0.3, "{expression}");
    }
}

#[test]
fn the_weights_of_a_star_reach_what_can_be_computed_by_hand() {
    // All leaves alike: the hub keeps a, a leaf keeps b. The spectrum is 1, b, b and a + b - 1, best balanced at
    // a = 1 - 2 b. A leaf's weight l has l (1 - b) = (4 - 3 l) 2 b / 3; at the floor l = 0.3 that gives b = 0.12676.
    let graph = Digraph::new(4, (1..4).flat_map(|leaf| [Link::new(0, leaf), Link::new(leaf, 0)]));
    let mut weights = ColumnWeights::uniform(&graph, 0.3);
    weights.improve(2_000);
    let keep = weights.best().keep().to_vec();
    let largest = keep[1..].iter().copied().fold(0.0, f64::max).max((keep[0] + keep[1] - 1.0).abs());
    assert!((largest - 0.12676).abs() < 2e-3, "{keep:?}");
}

#[test]
fn the_same_seed_gives_the_same_bits_for_every_design() {
    let topology = generate("rg:n=16,r=0.5,seed=2");
    for method in Method::ALL {
        let options = DesignOptions { seed: 7, ..quick() };
        let [first, second] = [(); 2].map(|()| plan_of(&topology, method, &options).map(|plan| plan.hash()));
        assert_eq!(first, second, "{method}");
    }
}

#[test]
fn budgets_and_degree_limits_are_kept_or_refused_with_what_is_possible() {
    let topology = generate("rg:n=24,r=0.4,seed=3");
    for method in Method::ALL.into_iter().filter(|&method| !has_links_of_its_own(method)) {
        for slots in [3, 9, 12] {
            let options = DesignOptions { budget_slots: Some(slots), ..quick() };
            match design(&topology, method, &options) {
                Ok(plan) => {
                    let per_round = plan.forecast().slots_per_period as f64 * plan.round_length() as f64;
                    assert!(per_round / plan.steps().len() as f64 <= slots as f64 + 1e-9, "{method}");
                }
                Err(DesignError::BudgetSlots { needed, .. }) => assert!(needed > slots, "{method}"),
                Err(DesignError::SampleDisconnected { .. } | DesignError::NoDesign { .. }) => {}
                Err(error) => panic!("{method}: {error}"),
            }
        }
        for limit in [1, 4] {
            let options = DesignOptions { max_out_degree: Some(limit), ..quick() };
            match design(&topology, method, &options) {
                Ok(plan) => assert!(plan.forecast().max_out_degree <= limit, "{method}"),
                Err(DesignError::DegreeLimit { needed, .. }) => assert!(needed > limit, "{method}"),
                Err(DesignError::NoDesign { .. }) => {}
                Err(error) => panic!("{method}: {error}"),
            }
        }
    }
    let tight = DesignOptions { max_out_degree: Some(4), ..quick() };
    assert!(design(&topology, Method::Tuned, &tight).unwrap().forecast().max_out_degree <= 4);
    let few = DesignOptions { budget_slots: Some(9), ..quick() };
    assert!(design(&topology, Method::Tuned, &few).unwrap().forecast().slots_per_period <= 9);
}

#[test]
fn one_peer_exponential_averages_exactly_at_powers_of_two_and_only_there() {
    let plan = |n| design(&generate(&format!("exponential:n={n}")), Method::OnePeerExponential, &quick()).unwrap();
    let (exact, other) = (plan(16), plan(17));
    assert_eq!(
        (exact.steps().len(), exact.forecast().lambda_2, exact.forecast().periods_to_1e_2),
        (4, Some(0.0), Some(1))
    );
    assert!(other.forecast().lambda_2.unwrap() > 0.0);
    assert_eq!((exact.round_length(), other.steps().len()), (1, 5));
}

#[test]
fn sampled_steps_are_symmetric_and_doubly_stochastic() {
    for method in [Method::Matcha, Method::BassHeuristic, Method::BassOptimised] {
        let plan = design(&generate("rg:n=20,r=0.45,seed=1"), method, &quick()).unwrap();
        assert_eq!((plan.steps().len(), plan.round_length()), (64, 1), "{method}");
        for step in plan.steps() {
            for link in step.links() {
                let back = step.position(link.link().reversed()).map(|at| step.links()[at].weight);
                assert_eq!(back, Some(link.weight), "{method}");
            }
        }
    }
}

#[test]
fn matchings_cover_every_edge_once_in_one_colour_more_than_the_degree_at_most() {
    for expression in GRAPHS.into_iter().chain(["complete:n=7", "complete:n=8", "rg:n=60,r=0.3", "grid:rows=5,cols=7"])
    {
        let topology = generate(expression);
        let matchings = matchings(&topology);
        let degree = (0..topology.node_count()).map(|node| topology.neighbors(node).len()).max().unwrap();
        assert!(matchings.len() <= degree + 1, "{expression}");
        let mut edges: Vec<_> = matchings.iter().flatten().copied().collect();
        edges.sort_unstable();
        assert_eq!(edges, topology.edges(), "{expression}");
        for matching in &matchings {
            let mut ends: Vec<usize> = matching.iter().flat_map(|&(u, v)| [u, v]).collect();
            ends.sort_unstable();
            assert!(ends.windows(2).all(|pair| pair[0] != pair[1]), "{expression}: {matching:?}");
        }
    }
}

#[test]
fn betweenness_counts_the_paths_through_a_node() {
    // All 5 * 4 ordered pairs of leaves go through the hub.
    assert_eq!(betweenness(&generate("star:n=6")), [20.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(betweenness(&generate("ring:n=4")).iter().all(|value| (value - 1.0).abs() < 1e-12));
}

#[test]
fn auto_takes_the_cheapest_and_says_why() {
    let topology = generate("rg:n=24,r=0.4,seed=3");
    for objective in [DesignObjective::Training, DesignObjective::Agreement] {
        let options = DesignOptions { objective, ..quick() };
        let chosen = design(&topology, Method::Auto, &options).unwrap();
        let methods: Vec<Method> = Method::ALL.into_iter().filter(|&method| method != Method::Auto).collect();
        let candidates = compare(&topology, &methods, &options);
        let costs = candidates.iter().filter_map(|candidate| cost(candidate.outcome.as_ref().ok()?, &options));
        assert_eq!(cost(&chosen, &options), costs.reduce(f64::min));
        assert!(chosen.parameters().contains_key("reason"));
        let again = design(&topology, chosen.method().parse().unwrap(), &options).unwrap();
        assert_eq!(again.steps(), chosen.steps());
    }
}

#[test]
fn a_plan_that_has_to_survive_a_loss_does() {
    let ring = generate("ring:n=8");
    let options = DesignOptions { fault_tolerance: FaultTolerance::AnyNode, ..quick() };
    let plan = design(&ring, Method::Auto, &options).unwrap();
    let links = plan.steps().iter().flat_map(|step| step.links()).map(|link| link.link());
    assert_eq!(Resilience::of(&Digraph::new(8, links)).critical_nodes, [] as [usize; 0]);
    let refused = design(&ring, Method::ExactAverage, &options).unwrap_err().to_string();
    assert!(refused.starts_with("the plan of exact-average hangs on node"), "{refused}");
    let star = design(&generate("star:n=5"), Method::Auto, &options).unwrap_err().to_string();
    assert!(star.starts_with("no design fits"), "{star}");
}

#[test]
fn a_bound_on_slots_never_exceeds_what_a_search_finds() {
    for expression in GRAPHS.into_iter().chain(["grid:rows=5,cols=5", "rg:n=33,r=0.5,seed=1"]) {
        let topology = generate(expression);
        let links: Vec<Link> = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
        let conflicts = ConflictGraph::new(&topology, links);
        let searched = coloring::best(&conflicts, 10, 0);
        assert!(searched.lower_bound <= searched.slot_count, "{expression}");
        let greedy = [coloring::dsatur(&conflicts), coloring::largest_first(&conflicts)];
        for colors in greedy.iter().chain([&searched.colors]) {
            assert!(colors.iter().max().unwrap() + 1 >= searched.slot_count, "{expression}");
            for link in 0..colors.len() {
                let clashes = conflicts_of(&conflicts, link).into_iter().filter(|&other| colors[other] == colors[link]);
                assert_eq!(clashes.count(), 0, "{expression}");
            }
        }
        let bound = coloring::lower_bound(&conflicts, &greedy[0], 8_000);
        assert!(bound <= searched.slot_count, "{expression}: {bound}");
    }
    // Known chromatic numbers.
    let grid = generate("grid:rows=5,cols=5");
    let links: Vec<Link> = grid.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
    let best = coloring::best(&ConflictGraph::new(&grid, links), 10, 0);
    assert_eq!((best.slot_count, best.is_optimal()), (5, true));
}

#[test]
fn auto_says_what_was_too_slow_to_try_and_names_every_refusal() {
    let large = generate("rg:n=401,r=0.12,seed=1");
    let plan = design(&large, Method::Auto, &quick()).unwrap();
    assert_eq!(plan.method(), "exact-average");
    let text = |name: &str| plan.parameters()[name].to_string();
    assert_eq!(text("too_slow_to_try"), "nguyen-he tuned periodic-average bass-heuristic bass-optimised matcha");
    assert!(text("reason").contains(" slots for a gradient step, next best "), "{}", text("reason"));
    let impossible = DesignOptions { budget_slots: Some(1), ..quick() };
    let refused = design(&large, Method::Auto, &impossible).unwrap_err().to_string();
    for method in Method::ALL.into_iter().filter(|method| method.is_tried_by_auto()) {
        assert!(refused.contains(&format!("{method}: ")), "{method} is missing in {refused}");
    }
}

#[test]
fn without_step_4_a_round_has_the_same_slots_fewer_links_and_mixes_more_slowly() {
    for generator in ["rg:n=33,r=0.5,seed=2", "rg:n=20,r=0.6,seed=5"] {
        let topology = generate(generator);
        let whole = design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap();
        let options = DesignOptions { augments: false, ..DesignOptions::default() };
        let ablated = design(&topology, Method::NguyenHe, &options).unwrap();
        let (with, without) = (whole.forecast(), ablated.forecast());
        assert_eq!(without.slots_per_period, with.slots_per_period, "{generator}");
        assert!(without.links < with.links && without.diameter >= with.diameter, "{generator}");
        assert!(without.lambda_2 > with.lambda_2, "{generator}");
        let refused = design(&topology, Method::DPsgd, &options).unwrap_err();
        assert_eq!(refused.to_string(), "method d-psgd has no step 4 to leave out: it is one of nguyen-he only");
    }
}
