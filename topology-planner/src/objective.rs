//! The design objectives of \[NH\], in logarithms: the values themselves reach e^147 on 33 nodes and overflow beyond.

/// `ln( Delta^2 (1 + D+)^(4 Delta) )`, the factor of \[NH\] eq. 16 and 19 that stands for the number of iterations.
///
/// `diameter` is `Delta`, the largest distance in hops between two nodes of the activated graph; `max_out_degree` is
/// `D+`, self-loops not counted. Minus infinity for a diameter of 0, which only a single node has.
///
/// ```
/// use mingle_planner::objective::ln_iteration_factor;
/// // A directed ring of 5 nodes: 4^2 * 2^16.
/// assert!((ln_iteration_factor(4, 1) - (16.0_f64 * 65536.0).ln()).abs() < 1e-12);
/// ```
#[must_use]
pub fn ln_iteration_factor(diameter: usize, max_out_degree: usize) -> f64 {
    let diameter = diameter as f64;
    2.0 * diameter.ln() + 4.0 * diameter * (1.0 + max_out_degree as f64).ln()
}

/// The logarithm of \[NH\] eq. 16, `tau Delta^2 (1 + D+)^(4 Delta)`: slots per iteration times the iteration factor.
///
/// ```
/// use mingle_planner::objective::{ln_iteration_factor, ln_objective_16};
/// assert_eq!(ln_objective_16(1, 4, 1), ln_iteration_factor(4, 1));
/// ```
#[must_use]
pub fn ln_objective_16(slots: usize, diameter: usize, max_out_degree: usize) -> f64 {
    (slots as f64).ln() + ln_iteration_factor(diameter, max_out_degree)
}

/// The logarithm of \[NH\] eq. 19, `(D+ + D-) Delta^2 (1 + D+)^(4 Delta)`: eq. 16 with the slots replaced by a bound
/// that needs no colouring.
///
/// ```
/// use mingle_planner::objective::ln_objective_19;
/// assert!((ln_objective_19(1, 1, 4) - 14.556090791758852).abs() < 1e-12);
/// ```
#[must_use]
pub fn ln_objective_19(max_out_degree: usize, max_in_degree: usize, diameter: usize) -> f64 {
    ((max_out_degree + max_in_degree) as f64).ln() + ln_iteration_factor(diameter, max_out_degree)
}
