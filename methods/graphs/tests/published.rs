//! Published graphs: their homophily, the quality of their partitions, and the results of the printed algorithm.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use mingle_graphs::{CollaborationMode, NodeData, NodeOptions, Overlap, Sharing, deal_out, homophily, read_graph};

mod federation;

use federation::Federation;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graphs")
}

#[test]
#[ignore = "needs ../shared/data"]
fn homophily_of_cora_and_citeseer_is_the_published_one() {
    for (name, nodes, edges, expected) in
        [("cora", 2708, 5278, [0.8100, 0.8252, 0.7711]), ("citeseer", 3327, 4552, [0.7377, 0.7203, 0.6731])]
    {
        let data = read_graph(&folder().join("planetoid").join(name)).unwrap();
        assert_eq!((data.node_count(), data.graph().edge_count()), (nodes, edges), "{name}");
        let measured = homophily(data.graph(), data.labels()).unwrap();
        for (value, expected) in [measured.edge, measured.node, measured.adjusted].into_iter().zip(expected) {
            assert!((value - expected).abs() < 1e-4, "{name}: {measured:?}");
        }
    }
}

#[test]
#[ignore = "needs ../shared/data"]
fn heterophilous_graphs_are_read_from_npz() {
    let data = read_graph(&folder().join("heterophilous/minesweeper.npz")).unwrap();
    assert_eq!(
        (data.node_count(), data.graph().edge_count(), data.feature_count(), data.classes()),
        (10_000, 39_402, 7, 2)
    );
    let data = read_graph(&folder().join("heterophilous/chameleon_filtered.npz")).unwrap();
    assert_eq!(
        (data.node_count(), data.graph().edge_count(), data.feature_count(), data.classes()),
        (890, 8_854, 2_325, 5)
    );
}

#[test]
#[ignore = "needs ../shared/data"]
fn ten_parts_of_cora_keep_nearly_as_many_edges_as_metis_and_the_printed_algorithm_weighs_them_all_alike() {
    let data = read_graph(&folder().join("planetoid/cora")).unwrap();
    let parts = deal_out(data.graph(), 10, Overlap::Disjoint, 1).unwrap();
    let clients: Vec<NodeData> = parts.iter().map(|nodes| data.induced(nodes)).collect();
    let kept: usize = clients.iter().map(|part| part.graph().edge_count()).sum();
    let share = kept as f64 / data.graph().edge_count() as f64;
    assert!(share > 0.85, "{share}");
    let largest = parts.iter().map(Vec::len).max().unwrap();
    let smallest = parts.iter().map(Vec::len).min().unwrap();
    assert!(largest as f64 <= 1.15 * smallest as f64, "{smallest} to {largest}");
    let mut options = NodeOptions { orders: 4, ..NodeOptions::default() };
    options.collaboration.most_weights = 10;
    let device = mingle_models::DeviceName::Cpu.open().unwrap();
    let sharing = Sharing::Collaboration(CollaborationMode::Paper);
    let federation = Federation::new(&options, &clients, sharing, (1, 1), &device);
    for weight in federation.graph().all().iter().chain(federation.graph().orders().iter().flatten()).flatten() {
        assert!((weight - 0.1).abs() < 1e-6, "{weight}");
    }
}
