//! The minimum of a quadratic model plus a nonsmooth function, on this machine: accelerated proximal gradient steps find
//! the active variables, and Newton steps between those go to the minimum (Lee, Sun and Saunders, "Proximal Newton-type
//! methods", 2014, for the model; Bertsekas, 1982, for the projection of a Newton step on signs that stay).

use crate::curvature_model::CurvatureModel;
use crate::vector::{add, dot};
use crate::{SparsityPenalty, optimality};

/// The most cycles of gradient steps and a Newton step; a model that needs more is left where it is then.
const MOST_CYCLES: usize = 100;
/// The gradient steps before each Newton step.
const GRADIENT_STEPS: usize = 10;
/// The Newton steps between gradient steps.
const MOST_NEWTON_STEPS: usize = 5;
/// The halvings of a Newton step that does not lower the model.
const MOST_HALVINGS: i32 = 8;
/// The most variables between which Newton steps are taken: their matrix is factorised.
const MOST_ACTIVE: usize = 1_000;

/// `gradient' (y - x) + 1/2 (y - x)' (H_k + shift I) (y - x) + nonsmooth(y)`.
pub(crate) struct QuadraticModel<'a> {
    pub(crate) curvature: &'a CurvatureModel,
    pub(crate) shift: f64,
    /// An upper bound of the eigenvalues of `H_k + shift I`.
    pub(crate) smoothness: f64,
    pub(crate) x: &'a [f64],
    pub(crate) gradient: &'a [f64],
    pub(crate) nonsmooth: &'a dyn SparsityPenalty,
}

impl QuadraticModel<'_> {
    /// A point that fulfils the optimality conditions of the model to `tolerance`, if it is found in the cycles allowed;
    /// else a point near.
    pub(crate) fn minimum(&self, tolerance: f64) -> Vec<f64> {
        let mut y = self.x.to_vec();
        for _ in 0..MOST_CYCLES {
            y = self.descend(y);
            let slope = self.slope(&y);
            if self.violation(&y, &slope) <= tolerance {
                break;
            }
            for _ in 0..MOST_NEWTON_STEPS {
                let slope = self.slope(&y);
                let Some(next) = self.newton(&y, &slope) else { break };
                y = next;
                if self.violation(&y, &self.slope(&y)) <= tolerance {
                    break;
                }
            }
        }
        y
    }

    /// `(H_k + shift I) vector`.
    pub(crate) fn product(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = self.curvature.product(vector);
        add(&mut product, self.shift, vector);
        product
    }

    /// The gradient of the smooth part at `y`.
    fn slope(&self, y: &[f64]) -> Vec<f64> {
        let moved: Vec<f64> = y.iter().zip(self.x).map(|(y, x)| y - x).collect();
        let mut slope = self.product(&moved);
        add(&mut slope, 1.0, self.gradient);
        slope
    }

    fn violation(&self, y: &[f64], slope: &[f64]) -> f64 {
        optimality(self.nonsmooth, y, slope, 1.0 / self.smoothness)
    }

    /// Proximal gradient steps with momentum.
    fn descend(&self, mut y: Vec<f64>) -> Vec<f64> {
        let step = 1.0 / self.smoothness;
        let mut ahead = y.clone();
        let mut momentum = 1.0_f64;
        for _ in 0..GRADIENT_STEPS {
            let mut next = ahead.clone();
            add(&mut next, -step, &self.slope(&ahead));
            self.nonsmooth.prox(step, &mut next);
            let uphill: f64 = (0..y.len()).map(|at| (ahead[at] - next[at]) * (next[at] - y[at])).sum();
            let further = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
            let factor = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / further };
            momentum = if uphill > 0.0 { 1.0 } else { further };
            ahead = next.iter().zip(&y).map(|(next, y)| next + factor * (next - y)).collect();
            y = next;
        }
        y
    }

    /// A Newton step between the active variables, shortened until it lowers the model or its violation.
    fn newton(&self, y: &[f64], slope: &[f64]) -> Option<Vec<f64>> {
        let active = self.nonsmooth.active(y);
        let side = active.len();
        if side == 0 || side > MOST_ACTIVE {
            return None;
        }
        let mut matrix = self.curvature.between(&active);
        (0..side).for_each(|at| matrix[at * side + at] += self.shift);
        let mut to: Vec<f64> = active.iter().map(|&at| -slope[at]).collect();
        self.nonsmooth.expand(y, &active, &mut to, &mut matrix);
        solve_positive_definite(&mut matrix, &mut to)?;
        let violation = self.violation(y, slope);
        let value = self.nonsmooth.value(y);
        let mut whole = y.to_vec();
        active.iter().zip(&to).for_each(|(&at, to)| whole[at] += to);
        let halved = (0..MOST_HALVINGS).map(|halvings| 0.5_f64.powi(halvings));
        for length in halved.chain([self.nonsmooth.way_to_kink(y, &whole)]) {
            let mut next = y.to_vec();
            active.iter().zip(&to).for_each(|(&at, to)| next[at] += length * to);
            self.nonsmooth.stop_at_kinks(y, &mut next);
            let moved: Vec<f64> = next.iter().zip(y).map(|(next, y)| next - y).collect();
            let bent = self.product(&moved);
            let change = dot(slope, &moved) + dot(&moved, &bent) / 2.0 + self.nonsmooth.value(&next) - value;
            let after: Vec<f64> = slope.iter().zip(&bent).map(|(slope, bent)| slope + bent).collect();
            if change < 0.0 || self.violation(&next, &after) < violation / 2.0 {
                return Some(next);
            }
        }
        None
    }
}

/// Solves `matrix x = right` in place by the factors of Cholesky; `None` where the matrix is not positive definite.
fn solve_positive_definite(matrix: &mut [f64], right: &mut [f64]) -> Option<()> {
    let side = right.len();
    for row in 0..side {
        for column in 0..=row {
            let (above, below) = matrix.split_at(row * side);
            let known = if column == row { &below[..side] } else { &above[column * side..] };
            let rest = below[column] - dot(&below[..column], &known[..column]);
            let diagonal = known[column];
            if column == row && (rest.is_nan() || rest <= 0.0) {
                return None;
            }
            matrix[row * side + column] = if column == row { rest.sqrt() } else { rest / diagonal };
        }
        let done = dot(&matrix[row * side..row * side + row], &right[..row]);
        right[row] = (right[row] - done) / matrix[row * side + row];
    }
    for row in (0..side).rev() {
        right[row] /= matrix[row * side + row];
        let found = right[row];
        add(&mut right[..row], -found, &matrix[row * side..row * side + row]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_definite_systems_are_solved_and_others_refused() {
        let mut matrix = [4.0, 2.0, 0.5, 2.0, 5.0, 1.0, 0.5, 1.0, 3.0];
        // The product with (1, -2, 3).
        let mut right = [1.5, -5.0, 7.5];
        assert!(solve_positive_definite(&mut matrix, &mut right).is_some());
        assert!(crate::vector::distance(&right, &[1.0, -2.0, 3.0]) < 1e-14, "{right:?}");
        assert!(solve_positive_definite(&mut [1.0, 2.0, 2.0, 1.0], &mut [1.0, 1.0]).is_none());
    }
}
