//! Convergence of a repeated period of mixing steps: decides whether it brings all nodes to one value.
//!
//! The product `P` of a period's column-stochastic matrices moves mass like a Markov chain: from `j` to `i` with
//! probability `P_ij`. Eigenvalues of modulus 1 are counted by its recurrent classes: one for each class, and one more
//! for each further phase of a class that moves in a cycle (Seneta, "Non-negative Matrices and Markov Chains", section
//! 1.3). So repeating the period converges exactly when there is a single recurrent class and it is aperiodic.
//!
//! The product is never formed. In the graph of pairs (step, node), with an arc wherever a step moves or keeps mass,
//! every cycle is a multiple of the `B` steps long; the recurrent classes are the same, and an aperiodic class of the
//! product has period `B` here. Mass that no link moves waits. So only the pairs in which a node *sends* are searched,
//! with arcs as long as the time to the next such pair, and a period of many steps that move little takes no more
//! memory than its links. A few searches settle both questions exactly, however small the weights.

mod sendings;

use self::sendings::Sendings;
use crate::step::MixingStep;

/// The reason why repeating a period does not bring all nodes to one value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecurrenceError {
    /// There are two classes of nodes whose mass never leaves them.
    #[error("mass that reaches node {first} and mass that reaches node {second} never mix again")]
    SeveralClasses { first: usize, second: usize },
    /// The recurrent class moves in a cycle.
    #[error("mass at node {node} only comes back to it every {phases} periods: let some node keep a share")]
    Periodic {
        /// A node of the class.
        node: usize,
        /// The number of periods after which mass can be back where it was.
        phases: usize,
    },
}

/// The nodes that hold mass in the long run at the start of a period, ascending.
///
/// # Errors
///
/// The product of the steps has more than one eigenvalue of modulus 1.
///
/// O(n + links), and memory of 24 bytes for each link.
pub fn recurrent_nodes(node_count: usize, steps: &[MixingStep]) -> Result<Vec<usize>, RecurrenceError> {
    let sendings = Sendings::new(node_count, steps);
    let classes = sendings.closed_classes();
    let [class] = &classes[..] else {
        let node = |at: usize| classes.get(at).map_or(0, |class| sendings.held_by(class)[0]);
        return Err(RecurrenceError::SeveralClasses { first: node(0), second: node(1) });
    };
    let nodes = sendings.held_by(class);
    let phases = sendings.cycle_divisor(class) / steps.len().max(1);
    if phases > 1 {
        return Err(RecurrenceError::Periodic { node: nodes[0], phases });
    }
    Ok(nodes)
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
    fn pattern(n: usize, moves: &[(usize, usize)]) -> MixingStep {
        let mut draft = StepDraft { keep: vec![0.0; n], ..StepDraft::default() };
        for &(from, to) in moves {
            if from == to {
                draft.keep[from] = 0.5;
            } else {
                draft.links.push(WeightedLink { from, to, weight: 0.5 });
            }
        }
        MixingStep::sorted(draft)
    }

    /// Steps in which every node passes its mass on to at least one node, perhaps itself.
    fn periods() -> impl Strategy<Value = (usize, Vec<MixingStep>)> {
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

    /// The nodes that can hold mass that was at `source`, after many periods: row sets of a high Boolean power.
    fn reached_after(n: usize, steps: &[MixingStep], periods: usize, source: usize) -> Vec<bool> {
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
