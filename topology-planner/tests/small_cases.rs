//! Known results on graphs small enough to check by hand, and the figures of the paper.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignOptions, ExtraEdges, Link, Method, Parameter, Plan, Topology, augmentation::augment, coloring,
    conflict_graph::ConflictGraph, design, extra_edges::FarthestEdges,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree, orientation::orient,
};

mod conflicts;

use conflicts::conflicts_of;

fn generate(expression: &str) -> Topology {
    Topology::generate(expression).unwrap()
}

fn links(pairs: &[(usize, usize)]) -> Vec<Link> {
    pairs.iter().map(|&(from, to)| Link::new(from, to)).collect()
}

fn both_ways(topology: &Topology) -> Vec<Link> {
    let mut links: Vec<Link> = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
    links.sort_unstable();
    links
}

fn exactly(extra_edges: usize) -> DesignOptions {
    DesignOptions { extra_edges: ExtraEdges::Exactly(extra_edges), ..DesignOptions::default() }
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
}

#[test]
fn the_conflicts_of_a_path_of_four_are_these_eleven() {
    let path = generate("grid:rows=1,cols=4");
    let graph = ConflictGraph::new(&path, both_ways(&path));
    let mut found = Vec::new();
    for index in 0..graph.links().len() {
        let Link { from, to } = graph.links()[index];
        for other in conflicts_of(&graph, index).into_iter().filter(|&other| other > index) {
            let Link { from: k, to: l } = graph.links()[other];
            found.push([from, to, k, l]);
        }
    }
    let expected = [
        [0, 1, 1, 0],
        [0, 1, 1, 2],
        [0, 1, 2, 1],
        [0, 1, 2, 3],
        [1, 0, 2, 1],
        [1, 0, 3, 2],
        [1, 2, 2, 1],
        [1, 2, 2, 3],
        [1, 2, 3, 2],
        [2, 1, 3, 2],
        [2, 3, 3, 2],
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_complete_graph_gives_each_node_a_slot_of_its_own() {
    let complete = generate("complete:n=5");
    let graph = ConflictGraph::new(&complete, both_ways(&complete));
    let slots = coloring::slots(graph.links(), &coloring::dsatur(&graph));
    for slot in &slots {
        assert!(slot.iter().all(|link| link.from == slot[0].from) && slot.len() == 4);
    }
    assert_eq!(slots.len(), 5);
}

#[test]
fn dsatur_colours_the_full_five_by_five_grid_with_the_optimal_five_slots() {
    let plan = design(&generate("grid:rows=5,cols=5"), Method::SgpUniform, &DesignOptions::default()).unwrap();
    assert_eq!(plan.forecast().slots_per_period, 5);
}

#[test]
fn a_star_has_only_one_spanning_tree() {
    assert_eq!(minimum_degree_spanning_tree(&generate("star:n=5")), [(0, 1), (0, 2), (0, 3), (0, 4)]);
}

#[test]
fn a_windmill_needs_a_hub_with_an_edge_into_each_blade() {
    let windmill = generate("windmill:cliques=3,size=21");
    let tree = minimum_degree_spanning_tree(&windmill);
    let degree = |node| tree.iter().filter(|&&(u, v)| u == node || v == node).count();
    assert_eq!((0..61).map(degree).max(), Some(3));
}

#[test]
fn extra_edges_join_the_farthest_nodes_of_the_growing_graph() {
    let complete = generate("complete:n=5");
    let path = [(0, 1), (1, 2), (2, 3), (3, 4)];
    let added: Vec<_> = FarthestEdges::new(&complete, &path).collect();
    // 0-4 closes the path; then all pairs across the ring are two apart, then none is.
    assert_eq!(added, [(0, 4), (0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]);
}

#[test]
fn two_triangles_on_a_bridge_are_two_rings_joined_both_ways() {
    let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)];
    let expected = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 2), (3, 4), (4, 5), (5, 3)];
    assert_eq!(orient(6, &edges), links(&expected));
}

#[test]
fn augmentation_fills_a_triangle_whose_slots_have_room() {
    // One slot per sender: the return links cost nothing and bring the diameter from 2 to 1.
    let complete = generate("complete:n=4");
    let path = [vec![(0, 1)], vec![(1, 0), (1, 2)], vec![(2, 1), (2, 3)], vec![(3, 2)]];
    let augmented = augment(&complete, path.iter().map(|slot| links(slot)).collect());
    let full: Vec<Vec<Link>> =
        (0..4).map(|from| (0..4).filter(|&to| to != from).map(|to| Link::new(from, to)).collect()).collect();
    assert_eq!(augmented, full);
}

#[test]
fn the_large_windmill_takes_23_slots_and_1203_links_as_in_the_paper() {
    let windmill = generate("windmill:cliques=3,size=21");
    for extra_edges in 0..=3 {
        let plan = design(&windmill, Method::NguyenHe, &exactly(extra_edges)).unwrap();
        let forecast = plan.forecast();
        assert_eq!((forecast.slots_per_period, forecast.links, forecast.diameter), (23, 1203, 3));
        let into_hub = plan.steps()[0].links().iter().filter(|link| link.to == 0).count();
        assert_eq!(into_hub, 3, "one cluster head per clique reports to the hub");
    }
}

#[test]
fn the_small_windmill_takes_7_slots_and_52_links_as_in_the_paper() {
    let plan = design(&generate("windmill:cliques=2,size=6"), Method::NguyenHe, &exactly(2)).unwrap();
    assert_eq!((plan.forecast().slots_per_period, plan.forecast().links), (7, 52));
}

#[test]
fn the_forecast_of_a_path_of_five_is_known_in_closed_form() {
    let plan = design(&generate("grid:rows=1,cols=5"), Method::NguyenHe, &DesignOptions::default()).unwrap();
    let forecast = plan.forecast();
    assert_eq!((forecast.slots_per_period, forecast.links, forecast.diameter), (3, 8, 4));
    assert_eq!((forecast.max_out_degree, forecast.max_in_degree), (2, 2));
    assert_close(forecast.lambda_2.unwrap(), 5.0 / 6.0);
    assert_close(forecast.slots_per_neper.unwrap(), 3.0 / 1.2_f64.ln());
    // Masses are in the ratio of degree + 1: 2, 3, 3, 3, 2.
    assert_close(forecast.perron_min.unwrap(), 10.0 / 13.0);
    assert_close(forecast.perron_max.unwrap(), 15.0 / 13.0);
    assert_close(forecast.ln_objective_16.unwrap(), (3.0 * 16.0 * 3.0_f64.powi(16)).ln());
    assert_close(forecast.ln_objective_19, (4.0 * 16.0 * 3.0_f64.powi(16)).ln());
    assert_eq!(forecast.payloads_per_period, 5, "one broadcast per node");
}

#[test]
fn metropolis_hastings_weights_are_symmetric_and_leave_all_masses_at_one() {
    let plan = design(&generate("windmill:cliques=2,size=4"), Method::DPsgd, &DesignOptions::default()).unwrap();
    let step = &plan.steps()[0];
    for link in step.links() {
        let reverse = step.position(link.link().reversed()).unwrap();
        assert_eq!(step.links()[reverse].weight, link.weight);
    }
    assert_eq!((plan.forecast().perron_min, plan.forecast().perron_max), (Some(1.0), Some(1.0)));
}

#[test]
fn a_directed_ring_is_not_taken_where_a_design_of_more_links_mixes_faster() {
    let complete = generate("complete:n=6");
    let plan = design(&complete, Method::NguyenHe, &DesignOptions::default()).unwrap();
    assert_eq!(plan.forecast().slots_per_neper, Some(0.0), "every node hears every other");
}

#[test]
fn a_directed_ring_is_taken_where_the_topology_is_a_ring_and_it_mixes_faster() {
    let plan = design(&generate("ring:n=8"), Method::NguyenHe, &DesignOptions::default()).unwrap();
    assert_eq!(plan.parameters()["extra_edges"], Parameter::Whole(1));
    let path = design(&generate("ring:n=8"), Method::NguyenHe, &exactly(0)).unwrap();
    assert!(plan.forecast().slots_per_neper < path.forecast().slots_per_neper);
}

#[test]
fn two_nodes_exchange_halves_in_two_slots_by_every_design_of_one_step() {
    for method in [Method::NguyenHe, Method::Tuned, Method::DPsgd, Method::SgpUniform, Method::Exponential] {
        let plan = design(&generate("complete:n=2"), method, &DesignOptions::default()).unwrap();
        let step = &plan.steps()[0];
        assert_eq!(step.keep(), [0.5, 0.5]);
        assert_eq!(step.slots(), [links(&[(0, 1)]), links(&[(1, 0)])]);
        assert_eq!(plan.forecast().slots_to_1e_2, Some(2));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_another_plan() {
    let topology = generate("rg:n=33,r=0.5,seed=0");
    let plan = |seed| {
        let options = DesignOptions { seed, ..DesignOptions::default() };
        design(&topology, Method::NguyenHe, &options).unwrap()
    };
    assert_eq!(plan(7).to_postcard().unwrap(), plan(7).to_postcard().unwrap());
    assert_ne!(plan(7).steps(), plan(8).steps());
}

#[test]
fn plan_hashes_do_not_change_from_build_to_build() {
    let pins = [
        ("rg:n=33,r=0.5,seed=0", Method::NguyenHe, "8b5950b8ee350c38da3448fb371606e68458c9ba1dc38ccd02c8ebaaabefbc2c"),
        (
            "windmill:cliques=2,size=6",
            Method::NguyenHe,
            "71bbac9201e2c1e556ac73311308fb323ec97e267cf293f386ad173464d51300",
        ),
        ("grid:rows=4,cols=4", Method::DPsgd, "2bc5e3e389cd4f7e48f94648bb58030148b82d90274592cb284ee44535b894cc"),
        (
            "erdos-renyi:n=20,p=0.3,seed=1",
            Method::SgpUniform,
            "27eb9093b196f6a11c0eba56e88a0422b58da3c5ab18a12b07047cea8be52e9a",
        ),
    ];
    let digest = |(expression, method, _)| {
        let plan = design(&generate(expression), method, &DesignOptions::default()).unwrap();
        plan.hash().to_string()
    };
    assert_eq!(pins.map(digest), pins.map(|(.., pin)| pin.to_owned()));
}

#[test]
fn more_extra_edges_than_the_topology_has_are_refused_with_their_number() {
    let ring = generate("ring:n=5");
    let message = design(&ring, Method::NguyenHe, &exactly(2)).unwrap_err().to_string();
    assert_eq!(message, "2 extra edges are too many: a spanning tree leaves 1 of this topology");
    let message = design(&ring, Method::DPsgd, &exactly(1)).unwrap_err().to_string();
    assert!(message.starts_with("method d-psgd does not take a number of extra edges"), "{message}");
}

#[test]
fn methods_and_extra_edges_are_read_from_the_names_they_print() {
    for method in Method::ALL {
        assert_eq!(method.to_string().parse::<Method>(), Ok(method));
    }
    for extra in [ExtraEdges::Auto, ExtraEdges::Exactly(6)] {
        assert_eq!(extra.to_string().parse::<ExtraEdges>(), Ok(extra));
    }
    assert!("nguyen".parse::<Method>().unwrap_err().to_string().contains("nguyen-he"));
    assert!("-1".parse::<ExtraEdges>().is_err());
}

#[test]
fn an_interference_graph_wider_than_the_topology_costs_slots() {
    let path = generate("grid:rows=1,cols=4");
    let all = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let crowded = path.clone().with_interference(&all).unwrap();
    let slots = |topology| {
        let plan = design(topology, Method::SgpUniform, &DesignOptions::default()).unwrap();
        assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
        plan.forecast().slots_per_period
    };
    assert_eq!((slots(&path), slots(&crowded)), (3, 4));
}
