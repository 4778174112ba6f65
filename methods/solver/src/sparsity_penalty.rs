//! Penalties that make variables zero, between their kinks: where a variable is not zero, they have derivatives.

use crate::{L1, NonnegativeL1, Nonsmooth, SparseGroups};

/// A penalty with derivatives along the variables that are not zero.
pub trait SparsityPenalty: Nonsmooth {
    /// The variables along which the penalty is smooth near `x`, ascending.
    fn active(&self, x: &[f64]) -> Vec<usize> {
        (0..x.len()).filter(|&at| x[at] != 0.0).collect()
    }

    /// Subtracts the first derivatives at `x` along the active variables from `descent`, and adds the second ones to
    /// `matrix`, row by row.
    fn expand(&self, x: &[f64], active: &[usize], descent: &mut [f64], matrix: &mut [f64]);

    /// The sets of variables that have a kink where all of a set are zero.
    fn kinks(&self, x: &[f64]) -> Vec<Vec<usize>>;

    /// Sets those variables of `next` to zero that come to a kink on the way from `x`.
    fn stop_at_kinks(&self, x: &[f64], next: &mut [f64]) {
        for kink in self.kinks(x) {
            let (length, along) = lengths(&kink, x, next);
            if length > 0.0 && along <= ROUNDING * length {
                kink.into_iter().for_each(|at| next[at] = 0.0);
            }
        }
    }

    /// The share of the way from `x` to `next` up to the first kink; 1 if there is none.
    fn way_to_kink(&self, x: &[f64], next: &[f64]) -> f64 {
        let kinks = self.kinks(x);
        let ways =
            kinks.iter().map(|kink| lengths(kink, x, next)).filter(|(length, along)| *length > 0.0 && *along < 0.0);
        ways.map(|(length, along)| length / (length - along)).fold(1.0, f64::min)
    }
}

/// A share of a variable's value that counts as zero.
const ROUNDING: f64 = 1e-12;

/// `x' x` and `x' next` over these variables.
fn lengths(of: &[usize], x: &[f64], next: &[f64]) -> (f64, f64) {
    of.iter().fold((0.0, 0.0), |(length, along), &at| (length + x[at] * x[at], along + x[at] * next[at]))
}

/// Each variable alone.
fn each(x: &[f64]) -> Vec<Vec<usize>> {
    (0..x.len()).map(|at| vec![at]).collect()
}

impl SparsityPenalty for L1 {
    fn active(&self, x: &[f64]) -> Vec<usize> {
        (0..x.len()).filter(|&at| x[at] != 0.0 || self.weight == 0.0).collect()
    }

    fn expand(&self, x: &[f64], active: &[usize], descent: &mut [f64], _: &mut [f64]) {
        for (descent, &at) in descent.iter_mut().zip(active) {
            *descent -= if x[at] > 0.0 { self.weight } else { -self.weight };
        }
    }

    fn kinks(&self, x: &[f64]) -> Vec<Vec<usize>> {
        if self.weight > 0.0 { each(x) } else { Vec::new() }
    }
}

impl SparsityPenalty for NonnegativeL1 {
    fn expand(&self, _: &[f64], _: &[usize], descent: &mut [f64], _: &mut [f64]) {
        descent.iter_mut().for_each(|descent| *descent -= self.weight);
    }

    fn kinks(&self, x: &[f64]) -> Vec<Vec<usize>> {
        each(x)
    }
}

impl SparsityPenalty for SparseGroups {
    fn active(&self, x: &[f64]) -> Vec<usize> {
        let is_active = |group: &&Vec<usize>| self.weight == 0.0 || group.iter().any(|&at| x[at] != 0.0);
        let mut active: Vec<usize> = self.groups.iter().filter(is_active).flatten().copied().collect();
        active.sort_unstable();
        active
    }

    /// Of `w ||x||`: `w x / ||x||`, and `w (I - x x' / ||x||^2) / ||x||`.
    fn expand(&self, x: &[f64], active: &[usize], descent: &mut [f64], matrix: &mut [f64]) {
        for group in &self.groups {
            let norm = group.iter().map(|&at| x[at] * x[at]).sum::<f64>().sqrt();
            let slope = self.weight * (group.len() as f64).sqrt() / norm;
            if norm == 0.0 || !slope.is_finite() {
                continue;
            }
            let places: Vec<(usize, f64)> =
                group.iter().filter_map(|at| Some((active.binary_search(at).ok()?, x[*at] / norm))).collect();
            for &(row, one) in &places {
                descent[row] -= slope * norm * one;
                for &(column, other) in &places {
                    let identity = if row == column { 1.0 } else { 0.0 };
                    matrix[row * active.len() + column] += slope * (identity - one * other);
                }
            }
        }
    }

    fn kinks(&self, _: &[f64]) -> Vec<Vec<usize>> {
        if self.weight > 0.0 { self.groups.clone() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_penalties_are_those_of_differences() {
        const STEP: f64 = 1e-5;
        let groups = vec![vec![2, 0], vec![1, 3]];
        let penalties: [Box<dyn SparsityPenalty>; 3] = [
            Box::new(L1 { weight: 0.7 }),
            Box::new(NonnegativeL1 { weight: 0.7 }),
            Box::new(SparseGroups { weight: 0.7, groups }),
        ];
        for (kind, penalty) in penalties.iter().enumerate() {
            let x = if kind == 1 { [0.5, 0.0, 1.5, 0.0] } else { [0.5, 0.0, -1.5, 0.0] };
            let active = penalty.active(&x);
            assert_eq!(active, [0, 2]);
            let derivatives = |x: &[f64]| {
                let mut descent = [0.0; 2];
                let mut matrix = [0.0; 4];
                penalty.expand(x, &active, &mut descent, &mut matrix);
                (descent, matrix)
            };
            let (descent, matrix) = derivatives(&x);
            for (row, &at) in active.iter().enumerate() {
                let moved = |by: f64| {
                    let mut x = x;
                    x[at] += by;
                    x
                };
                let slope = (penalty.value(&moved(STEP)) - penalty.value(&moved(-STEP))) / (2.0 * STEP);
                assert!((slope + descent[row]).abs() < 1e-8, "{kind}: {slope} {descent:?}");
                for column in 0..2 {
                    let change = derivatives(&moved(-STEP)).0[column] - derivatives(&moved(STEP)).0[column];
                    assert!((change / (2.0 * STEP) - matrix[2 * row + column]).abs() < 1e-8, "{kind}: {matrix:?}");
                }
            }
        }
    }
}
