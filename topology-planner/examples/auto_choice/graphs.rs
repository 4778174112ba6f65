//! Graphs on which the choices of `auto` are compared with measurements by training.

use mingle_planner::Topology;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The graphs on which the score was developed.
pub(crate) const DEVELOPED_ON: [&str; 13] = [
    "ring:n=6",
    "ring:n=12",
    "ring:n=20",
    "ring:n=32",
    "grid:rows=4,cols=4",
    "grid:rows=6,cols=6",
    "star:n=8",
    "path:n=8",
    "path:n=16",
    "tree:n=16,seed=1",
    "rg:n=16,r=0.4,seed=1",
    "windmill:cliques=3,size=5",
    "roofnet",
];

/// Graphs to which the factor was not fitted.
pub(crate) const HELD_OUT: [&str; 9] = [
    "ring:n=9",
    "ring:n=26",
    "grid:rows=3,cols=8",
    "star:n=14",
    "path:n=24",
    "tree:n=12,seed=3",
    "tree:n=24,seed=2",
    "rg:n=24,r=0.3,seed=7",
    "erdos-renyi:n=20,p=0.2,seed=4",
];

/// Graphs that were measured after the factor was fixed.
pub(crate) const MEASURED_AFTERWARDS: [&str; 8] = [
    "rg:n=12,r=0.5,seed=3",
    "ring:n=15",
    "path:n=12",
    "tree:n=18,seed=5",
    "grid:rows=2,cols=7",
    "erdos-renyi:n=14,p=0.3,seed=9",
    "star:n=11",
    "rg:n=20,r=0.35,seed=11",
];

const ROOFNET: &str = include_str!("../../../examples/evaluation/topologies/roofnet-33.txt");

/// A graph by its name: the planner's generators, and paths, random trees and Roofnet.
///
/// # Panics
///
/// If there is no such graph.
pub(crate) fn graph(name: &str) -> Topology {
    let topology = match name.split_once(':') {
        None if name == "roofnet" => Topology::parse(ROOFNET),
        Some(("path", parameters)) => {
            let n = number(parameters, "n");
            tree(n, |node| node - 1)
        }
        Some(("tree", parameters)) => {
            let mut rng = ChaCha8Rng::seed_from_u64(number(parameters, "seed") as u64);
            tree(number(parameters, "n"), |node| (rng.next_u64() % node as u64) as usize)
        }
        _ => Topology::generate(name),
    };
    topology.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The tree in which `parent` returns, for each node, its neighbour nearer to node 0.
fn tree(nodes: usize, mut parent: impl FnMut(usize) -> usize) -> Result<Topology, mingle_planner::TopologyError> {
    let edges: Vec<(usize, usize)> = (1..nodes).map(|node| (parent(node), node)).collect();
    Topology::new((0..nodes).map(|node| format!("node-{node}")).collect(), &edges)
}

fn number(parameters: &str, name: &str) -> usize {
    let of_name = |part: &str| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
    parameters.split(',').find_map(of_name).unwrap_or_else(|| panic!("{parameters:?} says no {name}"))
}
