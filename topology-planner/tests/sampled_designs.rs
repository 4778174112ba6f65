//! MATCHA, BASS and exponential graphs: the claims of their papers, checked on the finished plans.

#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf};

use mingle_planner::{
    DesignError, DesignOptions, Link, Method, MixingStep, Parameter, Plan, Topology, conflict_graph::conflict, design,
    digraph::Digraph, plan::Medium,
};
use proptest::prelude::*;

const SAMPLED: [Method; 3] = [Method::Matcha, Method::BassHeuristic, Method::BassOptimised];

fn generate(expression: &str) -> Topology {
    Topology::generate(expression).unwrap()
}

/// A fifth of the default effort.
fn quick() -> DesignOptions {
    DesignOptions { effort: 2, ..DesignOptions::default() }
}

fn quick_plan(topology: &Topology, method: Method) -> Plan {
    design(topology, method, &quick()).unwrap()
}

fn real(plan: &Plan, name: &str) -> f64 {
    match plan.parameters()[name] {
        Parameter::Real(real) => real,
        ref other => panic!("{name} is {other:?}"),
    }
}

fn whole(plan: &Plan, name: &str) -> usize {
    match plan.parameters()[name] {
        Parameter::Whole(whole) => whole as usize,
        ref other => panic!("{name} is {other:?}"),
    }
}

fn mean_slots(plan: &Plan) -> f64 {
    plan.forecast().slots_per_period as f64 / plan.steps().len() as f64
}

/// The edges of a step, each of which must be used both ways with one weight.
fn edges(step: &MixingStep) -> Vec<(usize, usize)> {
    let links = step.links();
    assert!(links.iter().all(|link| {
        let back = step.position(link.link().reversed()).map(|at| links[at].weight);
        back == Some(link.weight)
    }));
    links.iter().filter(|link| link.from < link.to).map(|link| (link.from, link.to)).collect()
}

/// The norm of the mean of `W W` over the steps less the matrix of averaging, by power iteration on the steps.
fn contraction(plan: &Plan) -> f64 {
    let nodes = plan.node_count();
    let mut direction: Vec<f64> = (0..nodes).map(|node| (node * node % 17) as f64 + node as f64 / 10.0).collect();
    let mut norm = 0.0;
    for _ in 0..3_000 {
        let mean = direction.iter().sum::<f64>() / nodes as f64;
        direction.iter_mut().for_each(|x| *x -= mean);
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|x| *x /= length);
        let mut sum = vec![0.0; nodes];
        let mut scratch = vec![0.0; nodes];
        for step in plan.steps() {
            let mut mixed = direction.clone();
            step.mix(&mut mixed, &mut scratch);
            step.mix(&mut mixed, &mut scratch);
            sum.iter_mut().zip(&mixed).for_each(|(sum, x)| *sum += x / plan.steps().len() as f64);
        }
        norm = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction = sum;
    }
    norm
}

/// Checks that steps are symmetric and doubly stochastic, that their slots partition the links without a conflict by
/// the written rule, and that the period joins all nodes.
fn check_steps(plan: &Plan, what: &str) {
    let nodes = plan.node_count();
    let mut union = Digraph::new(nodes, []);
    for (number, step) in plan.steps().iter().enumerate() {
        let mut rows = step.keep().to_vec();
        let mut columns = step.keep().to_vec();
        for link in step.links() {
            rows[link.to] += link.weight;
            columns[link.from] += link.weight;
            union.insert(link.link());
        }
        // Exactly: the weights of sampled designs are multiples of a power of two.
        assert!(rows.iter().chain(&columns).all(|&sum| sum == 1.0), "{what}, step {number}: {rows:?}, {columns:?}");
        assert!(step.keep().iter().all(|&share| (0.0..=1.0).contains(&share)), "{what}, step {number}");
        let _ = edges(step);
        let mut in_slots = step.slots().concat();
        in_slots.sort_unstable();
        if plan.medium() == Medium::Broadcast {
            assert_eq!(in_slots, step.links().iter().map(|link| link.link()).collect::<Vec<Link>>(), "{what}");
        }
        for slot in step.slots() {
            for (at, &a) in slot.iter().enumerate() {
                let clash = slot[..at].iter().find(|&&b| conflict(plan.base(), a, b));
                assert_eq!(clash, None, "{what}, step {number}: {a}");
            }
        }
    }
    assert_eq!(union.first_cut_off(), None, "{what}");
    assert_eq!((plan.round_length(), whole(plan, "sampled_steps")), (1, plan.steps().len()), "{what}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn sampled_steps_are_legal_on_any_graph(
        n in 2_usize..=14, p in 0.15_f64..0.9, seed in any::<u64>(), wider in prop::collection::vec((0_usize..14, 0_usize..14), 0..4)
    ) {
        let Ok(topology) = Topology::generate(&format!("erdos-renyi:n={n},p={p:.2},seed={seed}")) else { return Ok(()) };
        let mut disturbing = topology.edges().to_vec();
        disturbing.extend(wider.into_iter().filter(|&(u, v)| u != v && u < n && v < n));
        let topology = topology.with_interference(&disturbing).unwrap();
        for method in SAMPLED {
            let plan = design(&topology, method, &DesignOptions { seed, ..quick() }).unwrap();
            check_steps(&plan, &format!("{method} on {n} nodes, p = {p:.2}, seed {seed}"));
        }
    }

    #[test]
    fn budgets_and_degree_limits_are_kept_together_or_refused_with_a_larger_number(
        n in 3_usize..=12, p in 0.3_f64..0.9, seed in 0_u64..1000, budget in 0_usize..8, limit in 1_usize..5
    ) {
        let Ok(topology) = Topology::generate(&format!("erdos-renyi:n={n},p={p:.2},seed={seed}")) else { return Ok(()) };
        for method in SAMPLED {
            let options = DesignOptions { budget_slots: Some(budget), max_out_degree: Some(limit), seed, ..quick() };
            match design(&topology, method, &options) {
                Ok(plan) => {
                    check_steps(&plan, method.name());
                    prop_assert!(mean_slots(&plan) <= budget as f64, "{method}: {} slots", mean_slots(&plan));
                    prop_assert!(plan.forecast().max_out_degree <= limit, "{method}");
                }
                Err(DesignError::BudgetSlots { needed, .. }) => {
                    prop_assert!(needed > budget, "{method}");
                    let enough = DesignOptions { budget_slots: Some(needed), ..options };
                    prop_assert!(design(&topology, method, &enough).is_ok(), "{method}: {needed} is not enough");
                }
                Err(DesignError::DegreeLimit { needed, .. }) => {
                    prop_assert!(needed > limit, "{method}");
                    let enough = DesignOptions { max_out_degree: Some(needed), budget_slots: None, ..options };
                    prop_assert!(design(&topology, method, &enough).is_ok(), "{method}: {needed} is not enough");
                }
                Err(error) => panic!("{method}: {error}"),
            }
        }
    }
}

#[test]
fn optimised_bass_gives_no_more_than_it_has_where_few_subsets_broadcast_at_a_time() {
    // Within this budget the steps of the heuristic are matchings, but those that the optimised design draws in
    // addition are not.
    let topology = generate("erdos-renyi:n=6,p=0.45,seed=267");
    let options = DesignOptions { budget_slots: Some(1), max_out_degree: Some(3), seed: 267, ..quick() };
    check_steps(&design(&topology, Method::BassOptimised, &options).unwrap(), "budget 1");
}

#[test]
fn optimised_bass_contracts_better_than_the_heuristic_at_no_more_slots() {
    for expression in
        ["rg:n=24,r=0.45,seed=3", "grid:rows=4,cols=5", "windmill:cliques=3,size=6", "star:n=6", "ring:n=9"]
    {
        let topology = generate(expression);
        for budget_slots in [None, Some(3)] {
            let [heuristic, optimised] = [Method::BassHeuristic, Method::BassOptimised]
                .map(|method| design(&topology, method, &DesignOptions { budget_slots, ..quick() }).unwrap());
            let (before, after) = (contraction(&heuristic), contraction(&optimised));
            assert!(after <= before + 1e-6, "{expression}, {budget_slots:?}: {after}, heuristic {before}");
            let budget = whole(&optimised, "budget") as f64;
            assert!(mean_slots(&optimised).max(mean_slots(&heuristic)) <= budget, "{expression}, {budget_slots:?}");
            for (plan, found) in [(&heuristic, before), (&optimised, after)] {
                let promised = real(plan, "contraction");
                assert!((promised - found).abs() < 1e-3, "{expression} by {}: {found}, not {promised}", plan.method());
            }
        }
    }
}

#[test]
fn an_edge_of_bass_mixes_exactly_when_both_its_ends_broadcast() {
    let topology = generate("rg:n=20,r=0.45,seed=1");
    let plan = quick_plan(&topology, Method::BassHeuristic);
    for step in plan.steps() {
        let mut broadcasts = [false; 20];
        step.slots().iter().flatten().for_each(|link| broadcasts[link.from] = true);
        let both: Vec<_> = topology.edges().iter().copied().filter(|&(u, v)| broadcasts[u] && broadcasts[v]).collect();
        assert_eq!(edges(step), both);
        // A node broadcasts once.
        let mut transmitters: Vec<(usize, usize)> = step
            .slots()
            .iter()
            .enumerate()
            .flat_map(|(slot, links)| links.iter().map(move |l| (l.from, slot)))
            .collect();
        transmitters.sort_unstable();
        transmitters.dedup();
        assert!(transmitters.windows(2).all(|pair| pair[0].0 != pair[1].0), "{transmitters:?}");
    }
}

#[test]
fn steps_of_matcha_have_one_weight_and_its_probabilities_are_near_the_best() {
    for expression in ["rg:n=24,r=0.4,seed=3", "grid:rows=4,cols=5", "windmill:cliques=3,size=6"] {
        let plan = design(&generate(expression), Method::Matcha, &DesignOptions::default()).unwrap();
        let weight = real(&plan, "weight");
        assert!(plan.steps().iter().flat_map(MixingStep::links).all(|link| link.weight == weight), "{expression}");
        let (connectivity, bound) = (real(&plan, "connectivity"), real(&plan, "connectivity_bound"));
        assert!(connectivity <= bound + 1e-6 && connectivity >= 0.99 * bound, "{expression}: {connectivity}, {bound}");
        assert!(real(&plan, "probability_max") <= 1.0 && real(&plan, "probability_min") >= 0.0);
        let degree = (0..plan.node_count()).map(|node| plan.base().neighbors(node).len()).max().unwrap();
        assert!((degree..=degree + 1).contains(&whole(&plan, "matchings")), "{expression}");
        // Half of the matchings, hence about half of the edges.
        let active: usize = plan.steps().iter().map(|step| edges(step).len()).sum();
        let share = active as f64 / (plan.steps().len() * plan.base().edges().len()) as f64;
        assert!((share - 0.5).abs() < 0.15, "{expression}: {share}");
    }
}

#[test]
fn two_nodes_meet_half_of_the_time_by_matcha_and_always_by_bass() {
    let pair = generate("complete:n=2");
    let half_keep = |plan: &Plan| plan.steps().iter().filter(|step| step.keep() == [0.5, 0.5]).count();
    let matcha = quick_plan(&pair, Method::Matcha);
    assert_eq!((matcha.steps().len(), half_keep(&matcha), matcha.forecast().slots_per_period), (64, 32, 64));
    for method in [Method::BassHeuristic, Method::BassOptimised] {
        assert_eq!(half_keep(&quick_plan(&pair, method)), 64, "{method}");
    }
}

#[test]
fn a_seed_draws_the_same_period_every_time_and_another_seed_another() {
    let topology = generate("rg:n=16,r=0.5,seed=2");
    for method in SAMPLED {
        let plan = |seed| design(&topology, method, &DesignOptions { seed, ..quick() }).unwrap();
        assert_eq!(plan(7).to_postcard().unwrap(), plan(7).to_postcard().unwrap(), "{method}");
        assert_ne!(plan(7).steps(), plan(8).steps(), "{method}");
    }
}

#[test]
fn a_small_budget_is_met_by_steps_in_which_nobody_sends() {
    let topology = generate("grid:rows=3,cols=4");
    for method in SAMPLED {
        let plan = design(&topology, method, &DesignOptions { budget_slots: Some(1), ..quick() }).unwrap();
        check_steps(&plan, method.name());
        assert!(mean_slots(&plan) <= 1.0 && plan.steps().iter().any(|step| step.links().is_empty()), "{method}");
    }
}

#[test]
fn what_sampled_designs_cannot_do_is_refused_with_what_they_can() {
    let topology = generate("star:n=6");
    let refused = |method, options: DesignOptions| design(&topology, method, &options).unwrap_err().to_string();
    for method in SAMPLED {
        let message = refused(method, DesignOptions { max_out_degree: Some(4), ..quick() });
        assert!(message.contains("more than 4 receivers: it needs 5"), "{message}");
        let message = refused(method, DesignOptions { budget_slots: Some(0), ..quick() });
        assert!(message.contains("within 0 slots: the least it found takes 1"), "{message}");
    }
    let wired = DesignOptions { medium: Medium::PointToPoint, ..quick() };
    let message = refused(Method::BassHeuristic, wired.clone());
    assert_eq!(message, "method bass-heuristic schedules broadcasts: it has no plan for a point-to-point medium");
    let message = refused(Method::Matcha, DesignOptions { budget_slots: Some(9), ..wired.clone() });
    assert!(message.contains("point-to-point medium has no slots"), "{message}");
    assert!(design(&topology, Method::Matcha, &wired).unwrap().steps().iter().all(|step| step.slots().is_empty()));
    let large = generate("grid:rows=30,cols=40");
    let message = design(&large, Method::Matcha, &quick()).unwrap_err().to_string();
    assert!(message.starts_with("1200 nodes are too many for matcha, which takes 1024"), "{message}");
}

/// The product of a period, as columns.
fn product(plan: &Plan) -> Vec<Vec<f64>> {
    let nodes = plan.node_count();
    let mut scratch = vec![0.0; nodes];
    let column = |source: usize| {
        let mut column: Vec<f64> = (0..nodes).map(|node| f64::from(u8::from(node == source))).collect();
        plan.steps().iter().for_each(|step| step.mix(&mut column, &mut scratch));
        column
    };
    (0..nodes).map(column).collect()
}

#[test]
fn one_peer_exponential_averages_exactly_at_powers_of_two_and_only_there() {
    for nodes in 2..=33_usize {
        let plan = quick_plan(&generate(&format!("exponential:n={nodes}")), Method::OnePeerExponential);
        let off = product(&plan).concat().into_iter().map(|x| (x - 1.0 / nodes as f64).abs()).fold(0.0, f64::max);
        assert_eq!(off < 1e-15, nodes.is_power_of_two(), "{nodes} nodes: {off}");
        assert_eq!(plan.steps().len(), nodes.next_power_of_two().trailing_zeros() as usize, "{nodes} nodes");
        if nodes.is_power_of_two() {
            let forecast = plan.forecast();
            assert_eq!((forecast.lambda_2, forecast.slots_to_1e_2), (Some(0.0), Some(forecast.slots_per_period)));
        }
    }
}

#[test]
fn exponential_graphs_send_to_the_powers_of_two_whatever_the_seed() {
    for seed in [0, 1, 99] {
        let options = DesignOptions { seed, medium: Medium::PointToPoint, ..quick() };
        let topology = generate("exponential:n=11");
        let all = design(&topology, Method::Exponential, &options).unwrap();
        let step = &all.steps()[0];
        let expected = (0..11).flat_map(|node| [1, 2, 4, 8].map(|offset| Link::new(node, (node + offset) % 11)));
        let mut expected: Vec<Link> = expected.collect();
        expected.sort_unstable();
        assert_eq!(step.links().iter().map(|link| link.link()).collect::<Vec<_>>(), expected, "seed {seed}");
        assert!(step.links().iter().all(|link| link.weight == 0.2) && step.keep().iter().all(|&share| share == 0.2));
        let one = design(&topology, Method::OnePeerExponential, &options).unwrap();
        for (step, offset) in one.steps().iter().zip([1, 2, 4, 8]) {
            assert!(step.links().iter().all(|link| link.to == (link.from + offset) % 11 && link.weight == 0.5));
            assert_eq!(step.links().len(), 11);
        }
    }
}

#[test]
fn exponential_graphs_say_which_link_is_missing_and_what_has_it() {
    let ring = generate("ring:n=6");
    for method in [Method::Exponential, Method::OnePeerExponential] {
        for seed in [0, 5] {
            let message = design(&ring, method, &DesignOptions { seed, ..quick() }).unwrap_err().to_string();
            let expected =
                format!("method {method} needs a link from node-0 to node-2, which the topology does not have: ");
            assert!(message.starts_with(&expected) && message.contains("exponential:n=6 or complete:n=6"), "{message}");
        }
        let complete = generate("complete:n=6");
        assert!(design(&complete, method, &quick()).is_ok());
        let narrow = DesignOptions { max_out_degree: Some(2), ..quick() };
        let message = design(&complete, method, &narrow).unwrap_err().to_string();
        assert!(message.contains("more than 2 receivers: it needs 3"), "{message}");
        // On one channel shared by all, every node needs a slot of its own.
        let cheap = DesignOptions { budget_slots: Some(5), ..quick() };
        let message = design(&complete, method, &cheap).unwrap_err().to_string();
        assert!(message.contains("within 5 slots: the least it found takes 6"), "{message}");
    }
}

/// A graph of the golden cases on which the designs are compared.
fn golden(name: &str) -> Topology {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let nodes = document["base"]["n"].as_u64().unwrap() as usize;
    let edges: Vec<(usize, usize)> = serde_json::from_value(document["base"]["edges"].clone()).unwrap();
    Topology::new((0..nodes).map(|node| node.to_string()).collect(), &edges).unwrap()
}

#[test]
fn at_the_slots_of_the_paper_optimised_bass_agrees_sooner_than_vanilla_gossip() {
    for (name, budget) in [("rg33_r0.5_nx0.json", 18), ("roofnet_33_187.json", 14), ("windmill_3_21.json", 23)] {
        let topology = golden(name);
        let vanilla = design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
        for method in SAMPLED {
            let options = DesignOptions { budget_slots: Some(budget), ..DesignOptions::default() };
            let plan = design(&topology, method, &options).unwrap();
            check_steps(&plan, &format!("{method} on {name}"));
            let (slots, gossip) = (plan.forecast().slots_to_1e_2.unwrap(), vanilla.forecast().slots_to_1e_2.unwrap());
            println!("{name} {method}: {:.1} slots per step, {slots} to 1e-2, d-psgd {gossip}", mean_slots(&plan));
            assert!(mean_slots(&plan) <= budget as f64 && plan.to_postcard().is_ok(), "{name}, {method}");
            assert!(method != Method::BassOptimised || slots < gossip, "{name}: {slots}, d-psgd {gossip}");
        }
    }
}
