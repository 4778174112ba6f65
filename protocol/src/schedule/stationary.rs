//! Stationary weights of a periodic plan: n times the Perron vector of the period's product.
//!
//! Power iteration on (P + I) / 2, which has the eigenvectors of P but converges even where P itself is periodic
//! (a directed ring whose nodes keep nothing). It starts from all ones, the weights a swarm really starts with, so
//! where a plan is not strongly connected the result is still the mass each part ends up with.

use super::Step;

/// Periods after which the iteration stops even if it still moves; the guard only needs a few digits.
const MAX_PERIODS: usize = 20_000;
/// Two iterates that differ less than this in every entry are the same.
const TOLERANCE: f64 = 1e-13;

/// The weight of every node at the start of every step, `[step][node]`. All indices are already checked.
pub(super) fn weights(nodes: usize, steps: &[Step]) -> Vec<Vec<f64>> {
    let mut weights = vec![1.0; nodes];
    for _ in 0..MAX_PERIODS {
        let mut mixed = weights.clone();
        for step in steps {
            mixed = mix(step, &mixed);
        }
        let mut change = 0.0_f64;
        for (weight, mixed) in weights.iter_mut().zip(&mixed) {
            change = change.max((mixed - *weight).abs());
            *weight = 0.5 * (*weight + mixed);
        }
        if change <= TOLERANCE * nodes as f64 {
            break;
        }
    }
    let mut at_step = Vec::with_capacity(steps.len());
    for step in steps {
        let next = mix(step, &weights);
        at_step.push(std::mem::replace(&mut weights, next));
    }
    at_step
}

/// One step of mixing: what each node keeps plus what its in-neighbours send.
fn mix(step: &Step, weights: &[f64]) -> Vec<f64> {
    let mut next: Vec<f64> = step.keep.iter().zip(weights).map(|(keep, weight)| keep * weight).collect();
    for &(from, to, share) in &step.links {
        next[to.index()] += share * weights[from.index()];
    }
    next
}
