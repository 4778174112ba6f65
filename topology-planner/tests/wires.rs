//! Plans on separate links, where the busiest node counts: exact averages, their price, and the choice of `auto`.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignObjective, DesignOptions, FaultTolerance, Medium, Method, Plan, Topology, design,
    design::cost,
    link_measurements::LinkMeasurements,
    load::{FOUR_BITS, NodeLoads, busiest},
};

fn on_wires(local_steps: u32) -> DesignOptions {
    DesignOptions { medium: Medium::PointToPoint, local_steps, ..DesignOptions::default() }
}

fn complete(nodes: usize) -> Topology {
    Topology::generate(&format!("complete:n={nodes}")).unwrap()
}

fn exact(topology: &Topology, options: &DesignOptions) -> Plan {
    design(topology, Method::ExactAverage, options).unwrap()
}

/// The payloads of the busiest node in a round.
fn per_round(plan: &Plan) -> f64 {
    plan.round_load(FOUR_BITS).unwrap().busiest_payloads
}

/// The least sum of `f - 1` over the factors of a product of at least `nodes`: no tree reaches them with less.
fn least_payloads(nodes: usize) -> usize {
    if nodes == 1 {
        0
    } else {
        (2..=nodes).map(|factor| factor - 1 + least_payloads(nodes.div_ceil(factor))).min().unwrap()
    }
}

#[test]
fn where_all_reach_all_no_node_of_an_exact_average_sends_or_receives_much_more_than_another() {
    for nodes in 2..=40 {
        for options in [on_wires(1), on_wires(20), on_wires(0)] {
            let plan = exact(&complete(nodes), &options);
            let loads = NodeLoads::of(nodes, plan.steps());
            let mean = loads.sent.iter().sum::<usize>() as f64 / nodes as f64;
            let most = *loads.sent.iter().chain(&loads.received).max().unwrap();
            assert!(most as f64 <= 1.3 * mean, "{nodes} nodes: {most} of {mean} payloads");
            assert!((plan.round_load(FOUR_BITS).unwrap().heaviest_share - most as f64 / mean).abs() < 1e-9);
            for round in plan.steps().chunks(plan.round_length()) {
                let mut values: Vec<f64> = (0..nodes).map(|node| (node * node) as f64).collect();
                let mean = values.iter().sum::<f64>() / nodes as f64;
                round.iter().for_each(|step| step.mix(&mut values, &mut vec![0.0; nodes]));
                let worst = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
                assert!(worst <= 1e-12 * mean * nodes as f64, "{nodes} nodes: off by {worst}");
            }
        }
    }
}

#[test]
fn peers_that_train_get_the_tree_that_takes_least_of_its_busiest_node_and_others_a_base_graph() {
    for (nodes, tree, base) in [(4, 4, 2), (5, 6, 4), (8, 6, 3), (12, 8, 4), (16, 8, 4), (27, 10, 6)] {
        let trained = exact(&complete(nodes), &on_wires(20));
        assert!(trained.parameters()["shape"].to_string().starts_with("tree "), "{nodes}: {:?}", trained.parameters());
        assert!((per_round(&trained) - tree as f64).abs() < 1e-9, "{nodes} nodes: {}", per_round(&trained));
        assert_eq!(tree, 2 * least_payloads(nodes));
        assert!((trained.round_load(FOUR_BITS).unwrap().payload_share - FOUR_BITS).abs() < 1e-12);
        let whole = DesignOptions { coded_share: 1.0, ..on_wires(20) };
        for options in [on_wires(0), whole, DesignOptions { fault_tolerance: FaultTolerance::AnyNode, ..on_wires(20) }]
        {
            let plan = exact(&complete(nodes), &options);
            assert!(plan.parameters()["shape"].to_string().starts_with("base k="), "{nodes}: {:?}", plan.parameters());
            assert!((plan.round_load(FOUR_BITS).unwrap().payload_share - 1.0).abs() < 1e-12);
            let found = per_round(&plan);
            let has_to_survive = options.fault_tolerance != FaultTolerance::None;
            assert!(has_to_survive || (found - base as f64).abs() < 1e-9, "{nodes} nodes: {found}");
        }
    }
}

#[test]
fn a_star_is_taken_only_where_the_topology_is_one_or_a_payload_takes_no_time() {
    for local_steps in [1, 4, 20] {
        for nodes in [5, 8, 12] {
            let options = on_wires(local_steps);
            let taken = design(&complete(nodes), Method::Auto, &options).unwrap();
            let load = taken.round_load(FOUR_BITS).unwrap();
            assert!(load.heaviest_share <= 1.3, "{nodes} nodes, {local_steps} local steps: {load:?}");
            let least = cost(&taken, &options).unwrap();
            for method in Method::ALL.into_iter().filter(|method| method.is_tried_by_auto()) {
                let Ok(other) = design(&complete(nodes), method, &options) else { continue };
                assert!(least <= cost(&other, &options).unwrap() + 1e-9, "{nodes} nodes: {method}");
            }
        }
    }
    let star = exact(&Topology::generate("star:n=8").unwrap(), &on_wires(20));
    assert_eq!((star.steps().len(), busiest(8, star.steps())), (2, 14));
    let steps = |payload_bytes| {
        let network = measured(&complete(8), 100.0, |_| Some(50.0), payload_bytes);
        exact(&complete(8), &DesignOptions { network: Some(network), ..on_wires(20) }).round_length()
    };
    // Where only the round trip counts, all send to all at once.
    assert_eq!((steps(10_000_000), steps(100)), (6, 1));
}

/// A network of equal links between nodes that may have upload limits.
fn measured(
    topology: &Topology,
    rtt_ms: f64,
    upload: impl Fn(usize) -> Option<f64>,
    payload_bytes: u64,
) -> mingle_planner::network::NetworkCapacity {
    let names = topology.names();
    let mut text = String::new();
    for &(u, v) in topology.edges() {
        for (from, to) in [(u, v), (v, u)] {
            let (from, to) = (&names[from], &names[to]);
            text += &format!("[[link]]\nfrom='{from}'\nto='{to}'\nrtt_ms={rtt_ms}\nmbit_s=50\n");
        }
    }
    for (node, name) in names.iter().enumerate() {
        let limit = upload(node).map_or_else(String::new, |rate| format!("upload_mbit_s={rate}\n"));
        text += &format!("[node.{name}]\ndownload_mbit_s=50\n{limit}");
    }
    LinkMeasurements::parse(&text).unwrap().network(topology, payload_bytes).unwrap()
}

#[test]
fn on_measured_links_the_fast_nodes_carry_more_and_the_price_is_seconds() {
    let topology = complete(8);
    // Nodes 6 and 7 are ten times faster than the others.
    let upload = |node: usize| Some(if node >= 6 { 50.0 } else { 5.0 });
    for seed in [0, 5] {
        let network = Some(measured(&topology, 1.0, upload, 1_000_000));
        let options = DesignOptions { network, seed, ..on_wires(20) };
        let plan = exact(&topology, &options);
        let load = plan.round_load(FOUR_BITS).unwrap();
        let loads = NodeLoads::of(8, plan.steps());
        let fast = loads.sent[6..].iter().min().unwrap();
        assert!(loads.sent[..6].iter().all(|sent| sent <= fast), "{loads:?}");
        let seconds = load.seconds.unwrap();
        let of_price = cost(&plan, &options).unwrap() * 20.0;
        assert!((seconds - of_price).abs() < 1e-9, "{seconds} {of_price}");
        // 1 MB in four bits at 5 Mbit/s takes 0.21 s: once up the tree, and once down from nodes that are not the fast ones.
        assert!(seconds < 0.7, "{seconds}");
        let blind = exact(&topology, &on_wires(20));
        let blind_seconds = options.network.as_ref().unwrap().seconds(blind.steps(), Medium::PointToPoint, FOUR_BITS)
            / (blind.steps().len() / blind.round_length()) as f64;
        assert!(seconds < 0.8 * blind_seconds, "{seconds} {blind_seconds}");
    }
}

#[test]
fn roots_that_take_turns_do_not_change_the_price_of_agreement() {
    let options = DesignOptions { objective: DesignObjective::Agreement, ..on_wires(1) };
    let plan = exact(&complete(8), &options);
    assert!(plan.steps().len() > plan.round_length());
    assert!((cost(&plan, &options).unwrap() - 6.0 * FOUR_BITS).abs() < 1e-9);
}

#[test]
fn an_upload_is_promised_in_the_codec_that_the_peers_take() {
    let topology = complete(8);
    let network = measured(&topology, 1.0, |_| None, 1_000_000);
    let with = |max_upload_bytes: u64| DesignOptions {
        network: Some(network.clone()),
        max_upload_bytes: Some(max_upload_bytes),
        ..on_wires(20)
    };
    // All nodes send 7 payloads in 4 rounds.
    let needed = (7.0 * FOUR_BITS * 1e6 / 4.0).ceil() as u64;
    assert_eq!(exact(&topology, &with(needed)).parameters()["roots"].to_string(), "4");
    assert!(design(&topology, Method::ExactAverage, &with(needed - 1)).is_err());
}

#[test]
fn on_a_mesh_with_holes_the_busiest_node_sends_hardly_more_than_on_a_whole_one() {
    // Every node lacks one of its links.
    let edges: Vec<(usize, usize)> =
        (0..12).flat_map(|u| (u + 1..12).map(move |v| (u, v))).filter(|(u, v)| u + v != 11).collect();
    let holed = Topology::new((0..12).map(|node| node.to_string()).collect(), &edges).unwrap();
    assert_eq!(per_round(&exact(&holed, &on_wires(20))) as usize, 8);
    for (expression, most) in [("grid:rows=4,cols=4", 16), ("ring:n=8", 8), ("rg:n=33,r=0.5,seed=0", 14)] {
        let topology = Topology::generate(expression).unwrap();
        let found = per_round(&exact(&topology, &on_wires(20)));
        println!("{expression}: {found}");
        assert!(found <= f64::from(most), "{expression}: {found}");
    }
}
