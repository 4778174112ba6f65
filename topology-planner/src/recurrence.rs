//! Whether repeating a period of mixing steps brings all nodes to one value.
//!
//! The product `P` of a period's column-stochastic matrices moves mass like a Markov chain: from `j` to `i` with
//! probability `P_ij`. Eigenvalues of modulus 1 are counted by its recurrent classes: one for each class, and one more
//! for each further phase of a class that moves in a cycle (Seneta, "Non-negative Matrices and Markov Chains",
//! section 1.3). So repeating the period converges exactly when there is a single recurrent class and it is aperiodic.
//!
//! The product is never formed. In the graph of pairs (step, node), with an arc wherever a step moves or keeps mass,
//! every cycle is a multiple of the `B` steps long; the recurrent classes are the same, and an aperiodic class of the
//! product has period `B` here. Two searches settle both questions exactly, however small the weights.

use petgraph::{
    algo::kosaraju_scc,
    graph::{DiGraph, NodeIndex},
};

use crate::plan::Step;

/// Why repeating a period does not bring all nodes to one value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecurrenceError {
    /// Mass that has reached one node never leaves its class, and the same holds for the other.
    #[error("mass that reaches node {first} and mass that reaches node {second} never mix again")]
    SeveralClasses {
        /// A node of one class.
        first: usize,
        /// A node of another class.
        second: usize,
    },
    /// The recurrent class moves in a cycle.
    #[error(
        "mass at node {node} only comes back to it every {phases} periods: let some node keep a share"
    )]
    Periodic {
        /// A node of the class.
        node: usize,
        /// After how many periods mass can be back where it was.
        phases: usize,
    },
}

/// The nodes that hold mass in the long run at the start of a period, ascending.
///
/// # Errors
///
/// The product of the steps has more than one eigenvalue of modulus 1.
///
/// O(B n + links).
pub fn recurrent_nodes(node_count: usize, steps: &[Step]) -> Result<Vec<usize>, RecurrenceError> {
    let graph = unrolled(node_count, steps);
    let components = kosaraju_scc(&graph);
    let mut component_of = vec![0; graph.node_count()];
    for (number, component) in components.iter().enumerate() {
        component
            .iter()
            .for_each(|pair| component_of[pair.index()] = number);
    }
    let is_closed = |component: &Vec<NodeIndex<usize>>| {
        component.iter().all(|&pair| {
            graph
                .neighbors(pair)
                .all(|next| component_of[next.index()] == component_of[pair.index()])
        })
    };
    // Every pair leads on to the next step, so each closed component holds pairs of step 0, which are numbered first.
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for component in components.iter().filter(|component| is_closed(component)) {
        let mut nodes: Vec<usize> = component
            .iter()
            .map(|pair| pair.index())
            .filter(|&pair| pair < node_count)
            .collect();
        nodes.sort_unstable();
        classes.push(nodes);
    }
    classes.sort_unstable();
    if let [first, second, ..] = &classes[..] {
        return Err(RecurrenceError::SeveralClasses {
            first: first[0],
            second: second[0],
        });
    }
    let class = classes.pop().unwrap_or_default();
    let phases = class
        .first()
        .map_or(1, |&node| cycle_divisor(&graph, node) / steps.len().max(1));
    if phases > 1 {
        return Err(RecurrenceError::Periodic {
            node: class[0],
            phases,
        });
    }
    Ok(class)
}

/// Pair `(step, node)` has number `step * n + node`; arcs go to the next step, from the last one to step 0.
fn unrolled(node_count: usize, steps: &[Step]) -> DiGraph<(), (), usize> {
    let mut graph = DiGraph::with_capacity(steps.len() * node_count, steps.len() * node_count);
    for _ in 0..steps.len() * node_count {
        graph.add_node(());
    }
    for (number, step) in steps.iter().enumerate() {
        let (here, next) = (number * node_count, (number + 1) % steps.len() * node_count);
        for node in (0..node_count).filter(|&node| step.keep()[node] > 0.0) {
            graph.add_edge((here + node).into(), (next + node).into(), ());
        }
        for link in step.links() {
            graph.add_edge((here + link.from).into(), (next + link.to).into(), ());
        }
    }
    graph
}

/// The greatest common divisor of the lengths of all cycles in the closed component of a pair.
fn cycle_divisor(graph: &DiGraph<(), (), usize>, root: usize) -> usize {
    let mut level = vec![usize::MAX; graph.node_count()];
    level[root] = 0;
    let mut queue = vec![root];
    let mut divisor = 0;
    let mut at = 0;
    while let Some(&pair) = queue.get(at) {
        at += 1;
        for next in graph.neighbors(pair.into()).map(NodeIndex::index) {
            if level[next] == usize::MAX {
                level[next] = level[pair] + 1;
                queue.push(next);
            }
            divisor = greatest_common_divisor(divisor, (level[pair] + 1).abs_diff(level[next]));
        }
    }
    divisor
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
