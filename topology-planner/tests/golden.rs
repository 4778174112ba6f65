//! The planner compared with independently computed cases: invariants that any correct implementation meets, exact
//! results of the deterministic steps, and every conflict of tiny graphs by literal enumeration.
//!
//! `golden/` holds the cases; they were made by an implementation that shares no code with this one.

#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf};

use mingle_planner::{
    DesignOptions, ExtraEdges, Link, Method, Plan, Topology,
    augmentation::augment,
    coloring,
    conflict_graph::ConflictGraph,
    design,
    digraph::Digraph,
    distance::Distances,
    extra_edges::FarthestEdges,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree,
    objective::{ln_iteration_factor, ln_objective_16, ln_objective_19},
    orientation::orient,
};
use serde_json::Value;

mod conflicts;

use conflicts::conflicts_of;

fn golden(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

/// All cases but the conflict lists, by name.
fn cases() -> Vec<(String, Value)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
    };
    paths.into_iter().map(named).filter(|(name, _)| name != "conflicts").collect()
}

fn topology(base: &Value) -> Topology {
    let n = base["n"].as_u64().unwrap() as usize;
    Topology::new((0..n).map(|node| node.to_string()).collect(), &pairs(&base["edges"])).unwrap()
}

fn pairs(list: &Value) -> Vec<(usize, usize)> {
    serde_json::from_value(list.clone()).unwrap()
}

fn links(list: &Value) -> Vec<Link> {
    pairs(list).into_iter().map(|(from, to)| Link::new(from, to)).collect()
}

fn slots(list: &Value) -> Vec<Vec<Link>> {
    list.as_array().unwrap().iter().map(links).collect()
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn assert_close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-7 * b.abs().max(1.0), "{what}: {a} instead of {b}");
}

#[test]
fn conflicts_are_those_of_literal_enumeration() {
    let document: Value = serde_json::from_str(&fs::read_to_string(golden("conflicts.json")).unwrap()).unwrap();
    let cases = document.as_array().cloned().unwrap_or_else(|| document["cases"].as_array().unwrap().clone());
    assert!(!cases.is_empty());
    for case in cases {
        let topology = topology(&case["base"]);
        let graph = ConflictGraph::new(&topology, links(&case["links"]));
        let mut found = Vec::new();
        for (index, &link) in graph.links().iter().enumerate() {
            let later = conflicts_of(&graph, index).into_iter().filter(|&other| other > index);
            found.extend(later.map(|other| (link, graph.links()[other])));
        }
        let expected: Vec<(Link, Link)> = case["conflicts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| {
                let pair = links(pair);
                (pair[0], pair[1])
            })
            .collect();
        assert_eq!(found, expected, "{}", case["base"]["name"]);
    }
}

#[test]
fn spanning_trees_are_within_one_of_the_least_degree() {
    for (name, case) in cases() {
        let topology = topology(&case["base"]);
        let tree = minimum_degree_spanning_tree(&topology);
        assert_eq!(tree.len() + 1, topology.node_count(), "{name}");
        assert!(Topology::new(topology.names().to_vec(), &tree).is_ok(), "{name}: the tree does not span");
        let degree = |node| tree.iter().filter(|&&(u, v)| u == node || v == node).count();
        let degree = (0..topology.node_count()).map(degree).max().unwrap();
        assert!(degree <= number(&case["mdst"]["max_allowed"]), "{name}: degree {degree}");
    }
}

#[test]
fn step_4_gives_the_reference_links_when_fed_the_reference_slots() {
    for (name, case) in cases() {
        let topology = topology(&case["base"]);
        for case in case["cases"].as_array().unwrap() {
            let reference = &case["reference"];
            let augmented = augment(&topology, slots(&reference["step3_slots"]));
            let mut links_found: Vec<Link> = augmented.iter().flatten().copied().collect();
            links_found.sort_unstable();
            assert_eq!(links_found, links(&reference["final_links"]), "{name}, K = {}", case["K"]);
            let mut expected = slots(&reference["final_slots"]);
            expected.iter_mut().for_each(|slot| slot.sort_unstable());
            assert_eq!(augmented, expected, "{name}, K = {}", case["K"]);
        }
    }
}

#[test]
fn steps_2_and_3_give_the_reference_graphs_when_fed_the_reference_trees() {
    for (name, case) in cases() {
        let topology = topology(&case["base"]);
        let tree = pairs(&case["mdst"]["fr_tree"]);
        for case in case["cases"].as_array().unwrap() {
            let reference = &case["reference"];
            let extra = number(&case["K"]);
            let mut edges = tree.clone();
            edges.extend(FarthestEdges::new(&topology, &tree).take(extra));
            edges.sort_unstable();
            assert_eq!(edges, pairs(&reference["und"]), "{name}, K = {extra}");
            let oriented = orient(topology.node_count(), &edges);
            assert_eq!(oriented, links(&reference["step3_links"]), "{name}, K = {extra}");
            let graph = Digraph::new(topology.node_count(), oriented);
            let diameter = usize::from(Distances::of(&graph).diameter());
            assert_eq!(diameter, number(&reference["step3"]["diam"]));
            let ln_19 = ln_objective_19(graph.max_out_degree(), graph.max_in_degree(), diameter);
            assert_close(ln_19, reference["ln19_step3"].as_f64().unwrap(), &name);
        }
    }
}

#[test]
fn colourings_stay_within_the_known_bounds() {
    for (name, case) in cases() {
        let topology = topology(&case["base"]);
        for case in case["cases"].as_array().unwrap() {
            let graph = ConflictGraph::new(&topology, links(&case["reference"]["step3_links"]));
            let colors = coloring::dsatur(&graph);
            for (link, &color) in colors.iter().enumerate() {
                assert!(conflicts_of(&graph, link).iter().all(|&other| colors[other] != color), "{name}");
            }
            let tau = colors.iter().max().unwrap() + 1;
            let least = number(&case["invariants"]["tau_step3_range"][0]);
            println!(
                "{name}, K = {}: {tau} slots, at least {least}, reference {}",
                case["K"], case["reference"]["dsatur_tau"]
            );
            assert!(least <= tau && tau <= least + 2, "{name}, K = {}: {tau} slots, {least} are possible", case["K"]);
        }
    }
}

#[test]
fn designs_meet_every_invariant() {
    for (name, case) in cases() {
        let topology = topology(&case["base"]);
        for case in case["cases"].as_array().unwrap() {
            let extra = number(&case["K"]);
            let invariants = &case["invariants"];
            let options = DesignOptions { extra_edges: ExtraEdges::Exactly(extra), ..DesignOptions::default() };
            let plan = design(&topology, Method::NguyenHe, &options).unwrap();
            let what = format!("{name}, K = {extra}");
            let mut edges = minimum_degree_spanning_tree(&topology);
            let extra_edges: Vec<_> = FarthestEdges::new(&topology, &edges).take(extra).collect();
            edges.extend(extra_edges);
            assert_eq!(edges.len(), number(&invariants["und_edges"]), "{what}");
            let step_3 = Digraph::new(topology.node_count(), orient(topology.node_count(), &edges));
            assert_eq!(step_3.first_cut_off(), None, "{what}");
            let conflicts = ConflictGraph::new(&topology, step_3.links().collect());
            let conflict_degree =
                (0..conflicts.links().len()).map(|link| conflicts_of(&conflicts, link).len()).max().unwrap();
            // [NH] Lemma 4.4, on our own step-3 graph: each conflict is at one of the two ends' neighbourhoods.
            let around = (0..topology.node_count()).map(|node| topology.neighbors(node).len()).max().unwrap() + 1;
            assert!(conflict_degree <= around * (step_3.max_in_degree() + step_3.max_out_degree()), "{what}");
            let tau = coloring::best(&conflicts, 1, 0).slot_count;
            let forecast = plan.forecast();
            assert_eq!(forecast.slots_per_period, tau, "{what}: step 4 costs no slot");
            let before = usize::from(Distances::of(&step_3).diameter());
            assert!(forecast.diameter <= before, "{what}");
            let factor = ln_iteration_factor(forecast.diameter, forecast.max_out_degree);
            assert!(factor <= ln_iteration_factor(before, step_3.max_out_degree()) + 1e-9, "{what}");
            let ln_16 = ln_objective_16(tau, forecast.diameter, forecast.max_out_degree);
            assert_close(forecast.ln_objective_16.unwrap(), ln_16, &what);
            assert_eq!(plan.forecast_differences().unwrap(), [], "{what}");
            assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan, "{what}");
            assert_eq!(Plan::from_postcard(&plan.to_postcard().unwrap()).unwrap(), plan, "{what}");
        }
    }
}

#[test]
fn the_spectrum_is_that_of_the_reference() {
    for (name, case) in cases() {
        let base = topology(&case["base"]);
        for (method, key) in [(Method::SgpUniform, "lam2_uniform"), (Method::DPsgd, "lam2_mh")] {
            let plan = design(&base, method, &DesignOptions::default()).unwrap();
            assert_close(
                plan.forecast().lambda_2.unwrap(),
                case["vanilla"][key].as_f64().unwrap(),
                &format!("{name}, {method}"),
            );
        }
        for case in case["cases"].as_array().unwrap() {
            let reference = &case["reference"];
            let plan = plan_of(&base, &links(&reference["final_links"]), &slots(&reference["final_slots"]));
            let forecast = plan.forecast();
            let what = format!("{name}, K = {}", case["K"]);
            assert_close(forecast.lambda_2.unwrap(), reference["lam2_uniform"].as_f64().unwrap(), &what);
            assert_close(forecast.perron_min.unwrap(), reference["perron_min"].as_f64().unwrap(), &what);
            assert_close(forecast.ln_objective_16.unwrap(), reference["ln16_final"].as_f64().unwrap(), &what);
            assert_close(forecast.ln_objective_19, reference["ln19_final"].as_f64().unwrap(), &what);
            assert_eq!(forecast.max_in_degree, number(&reference["final"]["din"]), "{what}");
        }
    }
}

/// A plan with uniform columns on the given links and slots.
fn plan_of(base: &Topology, links: &[Link], slots: &[Vec<Link>]) -> Plan {
    use mingle_planner::{
        Medium,
        mixing_matrix::MixingMatrix,
        plan::{PlanDraft, StepDraft},
    };
    let graph = Digraph::new(base.node_count(), links.iter().copied());
    let (keep, links) = MixingMatrix::uniform_columns(&graph).into_parts();
    Plan::new(PlanDraft {
        base: base.clone(),
        method: "reference".to_owned(),
        parameters: Default::default(),
        medium: Medium::Broadcast,
        steps: vec![StepDraft { keep, links, slots: slots.to_vec() }],
        local_steps: 1,
        round_length: None,
        network: None,
    })
    .unwrap()
}

#[test]
fn vanilla_slots_are_no_fewer_than_the_lower_bound() {
    for (name, case) in cases() {
        let base = topology(&case["base"]);
        let plan = design(&base, Method::SgpUniform, &DesignOptions::default()).unwrap();
        let (tau, least) = (plan.forecast().slots_per_period, number(&case["vanilla"]["tau_lb"]));
        println!("{name}: vanilla {tau} slots, at least {least}, reference dsatur {}", case["vanilla"]["dsatur"]);
        assert!(least <= tau, "{name}");
        assert!(tau <= number(&case["vanilla"]["largest_first"]).max(least), "{name}: {tau} slots");
    }
}

#[test]
fn the_sweep_never_falls_into_the_ring_trap() {
    for (name, case) in cases() {
        let base = topology(&case["base"]);
        let plan = design(&base, Method::NguyenHe, &DesignOptions::default()).unwrap();
        let forecast = plan.forecast();
        let speed = forecast.slots_per_neper.unwrap();
        println!(
            "{name}: {:?} {} slots, {} links, {speed} slots per neper",
            plan.parameters(),
            forecast.slots_per_period,
            forecast.links,
        );
        // On a topology of two edges per node or more a directed ring is always worse.
        let is_dense = base.edges().len() >= 2 * base.node_count();
        assert!(!is_dense || forecast.max_out_degree > 1, "{name}");
    }
}
