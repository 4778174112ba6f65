//! One bisection: whole components where they fit, the Fiedler vector for the one that does not, then refinement.

use mingle_spectra::{LanczosOptions, smallest_of_laplacian};

use super::refinement::refine;
use crate::graph::Graph;

/// The tolerance of the eigenvector, which only orders nodes.
const TOLERANCE: f64 = 1e-4;
const RESTARTS: usize = 60;

/// Marks the nodes of the first side: `here` of them, or a few more or less. The larger `parts`, the smaller the
/// deviation allowed.
pub(super) fn bisect(graph: &Graph, here: usize, parts: usize, seed: u64) -> Vec<bool> {
    let nodes = graph.node_count();
    let mut side = vec![false; nodes];
    let mut room = here;
    let mut room_there = nodes - here;
    let mut components = components(graph);
    // The largest first, ties to the one with the lowest node.
    components.sort_by_key(|component| std::cmp::Reverse(component.len()));
    for component in components {
        let size = component.len();
        let taken = if size <= room {
            size
        } else if size <= room_there {
            0
        } else {
            room
        };
        if taken == size {
            component.iter().for_each(|&node| side[node as usize] = true);
        } else if taken > 0 {
            let order = along_fiedler_vector(&graph.induced(&component), seed);
            order.iter().take(taken).for_each(|&place| side[component[place] as usize] = true);
        }
        room -= taken;
        room_there -= size - taken;
    }
    // Three in a hundred of the size of a part.
    let slack = nodes * 3 / (100 * parts);
    refine(graph, &mut side, here.saturating_sub(slack).max(1)..=(here + slack).min(nodes.saturating_sub(1)));
    side
}

/// The connected components, each ascending, the one with the lowest node first.
fn components(graph: &Graph) -> Vec<Vec<u32>> {
    let found = spectral(graph).map(|graph| graph.components());
    let Some(found) = found else { return vec![(0..graph.node_count() as u32).collect()] };
    let mut components = vec![Vec::new(); found.count()];
    (0..graph.node_count()).for_each(|node| components[found.of_node(node)].push(node as u32));
    components
}

/// The nodes of a connected graph along the Fiedler vector, ties to the lowest. If the eigenvector does not converge
/// within the restarts, they are in the order of a breadth-first search from the first node.
fn along_fiedler_vector(graph: &Graph, seed: u64) -> Vec<usize> {
    let options = LanczosOptions { tolerance: TOLERANCE, restarts: RESTARTS, seed, ..LanczosOptions::default() };
    let pairs = spectral(graph).and_then(|graph| smallest_of_laplacian(&graph, 2, &options).ok());
    let Some(pairs) = pairs else { return in_breadth(graph) };
    // D^-1/2 of the eigenvector of the normalised Laplacian: the relaxed cut of Shi and Malik (2000).
    let values: Vec<f64> = pairs
        .vector(1)
        .iter()
        .enumerate()
        .map(|(node, value)| value / (graph.degree(node).max(1) as f64).sqrt())
        .collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    order
}

fn spectral(graph: &Graph) -> Option<mingle_spectra::WeightedGraph> {
    let edges = graph.edges().map(|(one, other)| (one as u32, other as u32, 1.0));
    mingle_spectra::WeightedGraph::new(graph.node_count(), edges).ok()
}

fn in_breadth(graph: &Graph) -> Vec<usize> {
    let mut seen = vec![false; graph.node_count()];
    let mut order = Vec::with_capacity(seen.len());
    for start in 0..seen.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut next = order.len();
        order.push(start);
        while let Some(&node) = order.get(next) {
            next += 1;
            for &other in graph.neighbours(node) {
                if !std::mem::replace(&mut seen[other as usize], true) {
                    order.push(other as usize);
                }
            }
        }
    }
    order
}
