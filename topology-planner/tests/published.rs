//! Published topologies, in a folder beside the repository that not every machine has.

#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use mingle_planner::Topology;
use serde_json::Value;

#[test]
#[ignore = "needs ../shared/data"]
fn published_topologies_are_read_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/topologies");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let reading = Topology::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let topology = &reading.topology;
        assert_eq!(topology.node_count(), document["num_nodes"].as_u64().unwrap() as usize, "{}", path.display());
        assert_eq!(topology.edges().len(), document["num_edges"].as_u64().unwrap() as usize, "{}", path.display());
        let placed = document["positions"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(reading.placed, placed, "{}", path.display());
        // Where half of the nodes or more have places, the others are put between their neighbours.
        let is_placed = placed * 2 >= topology.node_count();
        assert_eq!(topology.positions().is_some(), is_placed, "{}", path.display());
    }
}
