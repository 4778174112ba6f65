//! Values of others that curious nodes compute from the averages that reach them.
//!
//! In pure averaging, everything that a node sends is a linear function of the values that all nodes began with, and the
//! weights are in the plan, which all have. So a coalition of curious nodes knows its own values, and one linear equation
//! for each message that reaches it. A node's value is reconstructed where its unit vector lies in the space of these
//! equations: the rank method of arXiv:2402.10001, for push-sum matrices. It is about averages of fixed values, as of a
//! round's models; training adds to them between averages, and masks or noise hide them.
//!
//! ```text
//!   X(0) = I,  X(t + 1) = W(t) X(t),  seen by C = { e_c : c in C } and { row j of X(t) : j -> c in step t, c in C }
//! ```

use crate::plan::Plan;
use crate::step::MixingStep;

/// The most nodes of a plan that is looked at.
pub const MOST_NODES: usize = 64;
/// The most coalitions that are looked at.
const MOST_COALITIONS: usize = 500;
/// The part of an equation, of norm 1, that has to be new for the equation to say anything: what is below drowns in the
/// rounding of models.
const NEW: f64 = 1e-9;
/// The squared distance of a unit vector from the equations below which its value is known, to six digits.
const KNOWN: f64 = 1e-12;

/// The most values of others that any coalition of so many nodes reconstructs from so many steps of the period, repeated.
/// `None` for plans of more than [`MOST_NODES`] nodes, where there are more than 500 coalitions, and where no node is left
/// outside of one.
///
/// ```
/// use mingle_planner::reconstruction::most_reconstructed;
/// use mingle_planner::{DesignOptions, Method, Topology, design};
///
/// let topology = Topology::generate("complete:n=8")?;
/// let plan = design(&topology, Method::OnePeerExponential, &DesignOptions::default())?;
/// // Of seven others, only the first that sends to it: later messages are averages already.
/// assert_eq!(most_reconstructed(8, plan.steps(), 8, 1), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Complexity
///
/// O(n^2 (links + rank messages)) for each coalition, with as many messages as reach it.
#[must_use]
pub fn most_reconstructed(nodes: usize, steps: &[MixingStep], rounds: usize, colluders: usize) -> Option<usize> {
    let coalitions = coalitions(nodes, colluders)?;
    let states = states(nodes, steps, rounds);
    coalitions.iter().map(|coalition| reconstructed(steps, &states, coalition)).max()
}

/// The most values of others that so many colluders reconstruct from one pass of a plan: as many steps as it has nodes, or
/// its period if that is longer. `None` as of [`most_reconstructed`].
#[must_use]
pub fn of_plan(plan: &Plan, colluders: usize) -> Option<usize> {
    let nodes = plan.node_count();
    most_reconstructed(nodes, plan.steps(), nodes.max(plan.steps().len()), colluders)
}

/// All coalitions of one or two nodes.
fn coalitions(nodes: usize, colluders: usize) -> Option<Vec<Vec<usize>>> {
    let is_feasible = nodes <= MOST_NODES && colluders < nodes;
    let all: Vec<Vec<usize>> = match colluders {
        1 if is_feasible => (0..nodes).map(|node| vec![node]).collect(),
        2 if is_feasible => (0..nodes).flat_map(|one| (one + 1..nodes).map(move |other| vec![one, other])).collect(),
        _ => return None,
    };
    (all.len() <= MOST_COALITIONS).then_some(all)
}

/// The states before each step, `[step][node][value]`.
fn states(nodes: usize, steps: &[MixingStep], rounds: usize) -> Vec<Vec<Vec<f64>>> {
    let unit = |node: usize| (0..nodes).map(|value| if value == node { 1.0 } else { 0.0 }).collect();
    let mut state: Vec<Vec<f64>> = (0..nodes).map(unit).collect();
    let mut states = Vec::with_capacity(rounds);
    for step in steps.iter().cycle().take(rounds) {
        let kept = |(node, row): (usize, &Vec<f64>)| row.iter().map(|value| value * step.keep_of(node)).collect();
        let mut next: Vec<Vec<f64>> = state.iter().enumerate().map(kept).collect();
        for link in step.links() {
            next[link.to].iter_mut().zip(&state[link.from]).for_each(|(sum, value)| *sum += link.weight * value);
        }
        states.push(std::mem::replace(&mut state, next));
    }
    states
}

/// The values of others that this coalition reconstructs.
fn reconstructed(steps: &[MixingStep], states: &[Vec<Vec<f64>>], coalition: &[usize]) -> usize {
    let Some(first) = states.first() else { return 0 };
    let mut known = Equations::default();
    coalition.iter().for_each(|node| known.add(&first[*node]));
    for (step, state) in steps.iter().cycle().zip(states) {
        for link in step.links().iter().filter(|link| coalition.contains(&link.to)) {
            known.add(&state[link.from]);
        }
        if known.0.len() == first.len() {
            break;
        }
    }
    (0..first.len()).filter(|node| !coalition.contains(node) && known.give(*node)).count()
}

/// An orthonormal basis of the equations.
#[derive(Default)]
struct Equations(Vec<Vec<f64>>);

impl Equations {
    /// Adds an equation, unless it follows from the others (Gram-Schmidt, twice).
    fn add(&mut self, equation: &[f64]) {
        let Some(mut rest) = normalized(equation.to_vec(), f64::MIN_POSITIVE) else { return };
        for _ in 0..2 {
            for base in &self.0 {
                let share = dot(base, &rest);
                rest.iter_mut().zip(base).for_each(|(rest, base)| *rest -= share * base);
            }
        }
        self.0.extend(normalized(rest, NEW));
    }

    /// Returns `true` if the equations give the value of a node.
    fn give(&self, node: usize) -> bool {
        1.0 - self.0.iter().map(|base| base[node] * base[node]).sum::<f64>() <= KNOWN
    }
}

/// The vector with norm 1, unless its norm is below `least`.
fn normalized(mut vector: Vec<f64>, least: f64) -> Option<Vec<f64>> {
    let norm = dot(&vector, &vector).sqrt();
    vector.iter_mut().for_each(|value| *value /= norm);
    (norm >= least).then_some(vector)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::step::StepDraft;
    use crate::{DesignOptions, Method, Topology, WeightedLink, design};

    fn step(nodes: usize, links: Vec<(usize, usize, f64)>) -> MixingStep {
        let mut keep = vec![1.0; nodes];
        links.iter().for_each(|(from, _, weight)| keep[*from] -= weight);
        let links = links.into_iter().map(|(from, to, weight)| WeightedLink { from, to, weight }).collect();
        MixingStep::sorted(StepDraft { keep, links, slots: Vec::new() })
    }

    #[test]
    fn rings_give_all_values_away_and_one_peer_exponential_the_first_senders() {
        let next = |node: usize| (node + 1) % 8;
        let one_way = step(8, (0..8).map(|node| (node, next(node), 0.5)).collect());
        let both = (0..8).flat_map(|node| [(node, next(node), 1.0 / 3.0), (next(node), node, 1.0 / 3.0)]).collect();
        for ring in [one_way, step(8, both)] {
            assert_eq!(most_reconstructed(8, std::slice::from_ref(&ring), 8, 1), Some(7));
            // A step later than it begins: the first message is of the neighbour's own value.
            assert!(most_reconstructed(8, &[ring], 1, 1).is_some_and(|seen| (1..3).contains(&seen)));
        }
        let exponential: Vec<MixingStep> =
            [1, 2, 4].map(|far| step(8, (0..8).map(|node| (node, (node + far) % 8, 0.5)).collect())).into();
        assert_eq!(most_reconstructed(8, &exponential, 8, 1), Some(1));
        // Two colluders: the first sender of each, and what the difference of their later messages gives.
        assert!(most_reconstructed(8, &exponential, 8, 2).is_some_and(|seen| (2..6).contains(&seen)));
    }

    #[test]
    fn what_is_known_is_what_a_linear_system_gives() {
        // 0 -> 2 at once, then 1 -> 0 -> 2: node 2 first gets the value of 0, then the sum that 1 is in.
        let first = step(3, vec![(0, 2, 0.5)]);
        let second = step(3, vec![(1, 0, 0.5)]);
        assert_eq!(most_reconstructed(3, std::slice::from_ref(&first), 1, 1), Some(1));
        assert_eq!(most_reconstructed(3, &[first.clone(), second, first], 3, 1), Some(2));
        // The sum of two values alone gives neither.
        let gather = step(4, vec![(0, 1, 0.5)]);
        let pass = step(4, vec![(1, 2, 0.5)]);
        let states = states(4, &[gather.clone(), pass.clone()], 2);
        assert_eq!(reconstructed(&[gather, pass], &states, &[2]), 0);
    }

    #[test]
    fn plans_too_large_and_coalitions_of_all_are_not_looked_at() {
        let plan = design(&Topology::generate("ring:n=5").unwrap(), Method::DPsgd, &DesignOptions::default()).unwrap();
        assert_eq!(most_reconstructed(5, plan.steps(), 5, 1), Some(4));
        assert_eq!(most_reconstructed(5, plan.steps(), 5, 2), Some(3));
        for (nodes, colluders) in [(5, 0), (5, 3), (1, 1), (65, 1), (40, 2)] {
            assert_eq!(most_reconstructed(nodes, plan.steps(), 5, colluders), None);
        }
    }
}
