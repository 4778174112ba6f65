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
    #[error("mass at node {node} only comes back to it every {phases} periods: let some node keep a share")]
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
        component.iter().for_each(|pair| component_of[pair.index()] = number);
    }
    let is_closed = |component: &Vec<NodeIndex<usize>>| {
        component
            .iter()
            .all(|&pair| graph.neighbors(pair).all(|next| component_of[next.index()] == component_of[pair.index()]))
    };
    // Every pair leads on to the next step, so each closed component holds pairs of step 0, which are numbered first.
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for component in components.iter().filter(|component| is_closed(component)) {
        let mut nodes: Vec<usize> =
            component.iter().map(|pair| pair.index()).filter(|&pair| pair < node_count).collect();
        nodes.sort_unstable();
        classes.push(nodes);
    }
    classes.sort_unstable();
    if let [first, second, ..] = &classes[..] {
        return Err(RecurrenceError::SeveralClasses { first: first[0], second: second[0] });
    }
    let class = classes.pop().unwrap_or_default();
    let phases = class.first().map_or(1, |&node| cycle_divisor(&graph, node) / steps.len().max(1));
    if phases > 1 {
        return Err(RecurrenceError::Periodic { node: class[0], phases });
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{StepDraft, WeightedLink};

    /// A step on `n` nodes in which mass moves exactly along the given `(from, to)` pairs; columns need not sum to 1.
    fn pattern(n: usize, moves: &[(usize, usize)]) -> Step {
        let mut draft = StepDraft { keep: vec![0.0; n], ..StepDraft::default() };
        for &(from, to) in moves {
            if from == to {
                draft.keep[from] = 0.5;
            } else {
                draft.links.push(WeightedLink { from, to, weight: 0.5 });
            }
        }
        Step::sorted(draft)
    }

    /// Steps in which every node passes its mass on to at least one node, perhaps itself.
    fn periods() -> impl Strategy<Value = (usize, Vec<Step>)> {
        (2_usize..6, 1_usize..4).prop_flat_map(|(n, steps)| {
            let columns = prop::collection::vec(prop::collection::btree_set(0..n, 1..=2), n);
            prop::collection::vec(columns, steps).prop_map(move |steps| {
                let step = |columns: Vec<std::collections::BTreeSet<usize>>| {
                    let columns = columns.into_iter().enumerate();
                    let moves: Vec<_> =
                        columns.flat_map(|(from, to)| to.into_iter().map(move |to| (from, to))).collect();
                    pattern(n, &moves)
                };
                (n, steps.into_iter().map(step).collect())
            })
        })
    }

    /// Which nodes can hold mass that was at `source`, after many periods: row sets of a high Boolean power.
    fn reached_after(n: usize, steps: &[Step], periods: usize, source: usize) -> Vec<bool> {
        let mut here = vec![false; n];
        here[source] = true;
        for step in (0..periods).flat_map(|_| steps) {
            let mut next = vec![false; n];
            (0..n).filter(|&node| here[node] && step.keep()[node] > 0.0).for_each(|node| next[node] = true);
            step.links().iter().filter(|link| here[link.from]).for_each(|link| next[link.to] = true);
            here = next;
        }
        here
    }

    proptest! {
        /// A chain has a single aperiodic recurrent class exactly when, after some number of steps and ever after, some
        /// node is reached from everywhere; `n^2` periods are enough (Wielandt), and those nodes are the class.
        #[test]
        fn a_single_aperiodic_class_is_found_exactly_when_a_node_is_reached_from_everywhere((n, steps) in periods()) {
            let reached: Vec<Vec<bool>> = (0..n).map(|source| reached_after(n, &steps, 4 * n * n, source)).collect();
            let class: Vec<usize> = (0..n).filter(|&node| reached.iter().all(|row| row[node])).collect();
            match recurrent_nodes(n, &steps) {
                Ok(found) => prop_assert_eq!(found, class),
                Err(_) => prop_assert_eq!(class, Vec::<usize>::new()),
            }
        }
    }

    #[test]
    fn two_halves_that_never_meet_are_several_classes() {
        let apart = pattern(4, &[(0, 1), (1, 0), (0, 0), (2, 3), (3, 2), (2, 2)]);
        let error = RecurrenceError::SeveralClasses { first: 0, second: 2 };
        assert_eq!(recurrent_nodes(4, &[apart]), Err(error));
    }

    #[test]
    fn a_node_that_loses_all_its_mass_is_not_recurrent() {
        let drain = pattern(3, &[(0, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(recurrent_nodes(3, &[drain]), Ok(vec![1, 2]));
    }

    #[test]
    fn a_shift_of_three_comes_back_every_three_periods() {
        let shift = pattern(3, &[(0, 1), (1, 2), (2, 0)]);
        let error = RecurrenceError::Periodic { node: 0, phases: 3 };
        assert_eq!(recurrent_nodes(3, std::slice::from_ref(&shift)), Err(error));
        let rest = pattern(3, &[(0, 0), (0, 1), (1, 2), (2, 0)]);
        assert_eq!(recurrent_nodes(3, &[shift, rest]), Ok(vec![0, 1, 2]));
    }
}
