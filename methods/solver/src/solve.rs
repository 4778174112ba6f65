//! A solver of problems in one place.

use crate::{Nonsmooth, Smooth, optimality};

/// Solves a problem in one place: minimises `smooth + nonsmooth` by proximal gradient descent with momentum (Beck and
/// Teboulle, FISTA, 2009), which restarts after an overshoot (O'Donoghue and Candes, 2015). Ends when the
/// [`optimality`] is at most `tolerance`, or after `most` steps; returns the solution and the number of steps.
#[must_use]
pub fn alone(smooth: &dyn Smooth, nonsmooth: &dyn Nonsmooth, tolerance: f64, most: usize) -> (Vec<f64>, usize) {
    let step = if smooth.smoothness() > 0.0 { 1.0 / smooth.smoothness() } else { 1.0 };
    let mut x = vec![0.0; smooth.dimension()];
    let mut momentum = 1.0_f64;
    let mut ahead = x.clone();
    let mut gradient = x.clone();
    for taken in 0..most {
        smooth.gradient(&x, &mut gradient);
        if optimality(nonsmooth, &x, &gradient, step) <= tolerance {
            return (x, taken);
        }
        smooth.gradient(&ahead, &mut gradient);
        let mut next = ahead.clone();
        crate::vector::add(&mut next, -step, &gradient);
        nonsmooth.prox(step, &mut next);
        let uphill: f64 = (0..x.len()).map(|at| (ahead[at] - next[at]) * (next[at] - x[at])).sum();
        let further = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
        let factor = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / further };
        momentum = if uphill > 0.0 { 1.0 } else { further };
        ahead = next.iter().zip(&x).map(|(next, x)| next + factor * (next - x)).collect();
        x = next;
    }
    (x, most)
}
