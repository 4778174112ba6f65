//! Errors of a robust problem.

use thiserror::Error;

/// The number of failed subproblems of one site in a row that ends the method.
pub const MOST_FAILURES: u32 = 3;

/// Errors of checking and solving a robust problem.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RobustError {
    /// A radius is negative or not finite.
    #[error("radius {0}: give a number of at least 0")]
    Radius(f64),
    /// The radius of the ball of weights is negative or not finite.
    #[error("theta {0}: give a number of at least 0")]
    Theta(f64),
    /// The cost of changing a label or moving a target is not above zero.
    #[error("kappa {0}: give a number above 0: at 0 labels change for nothing, and no model is better than none")]
    Kappa(f64),
    /// A parameter of a loss is outside its range.
    #[error("epsilon {value}: {range}")]
    Epsilon { value: f64, range: &'static str },
    /// The penalty of the method is not above zero.
    #[error("penalty {0}: give a number above 0")]
    Penalty(f64),
    /// The factor of over-relaxation is out of its range.
    #[error("relaxation {0}: give a number from 1 to below 2")]
    Relaxation(f64),
    /// The nominal weights of sites are no distribution.
    #[error("the nominal weights of the sites are not a distribution: they are not all at least 0 and add up to {sum}")]
    Weights { sum: f64 },
    /// The loss has no convex form for the support.
    #[error(
        "the {loss} loss is robust over all numbers only: choose support unbounded, or the hinge, epsilon-insensitive or pinball loss"
    )]
    Support { loss: &'static str },
    /// A box has no width, or a half-space does not fit the columns.
    #[error("the support is none: {0}")]
    NoSupport(&'static str),
    /// There is no sample, or vectors do not fit.
    #[error("the samples do not fit together: {0}")]
    Shape(&'static str),
    /// A number is not finite.
    #[error("row {row}: {value} is not a finite number")]
    NotFinite { row: usize, value: f64 },
    /// A label is neither 1 nor -1.
    #[error("row {row}: the label {value} is neither 1 nor -1")]
    Label { row: usize, value: f64 },
    /// A sample is outside the support.
    #[error(transparent)]
    Outside(#[from] Outside),
    /// Subproblems of a site failed too many times in a row.
    #[error("the subproblem of site {site} failed {times} times in a row: scale its columns, or try another penalty", times = MOST_FAILURES)]
    Subproblem { site: usize, source: Box<Self> },
    /// A cone program was not solved.
    #[error("the cone program was not solved: {status}")]
    Solver { status: String },
}

/// A sample outside the support. Rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum Outside {
    /// A value is outside the box.
    #[error("row {row}, column {column}: {value} is outside the support [{lower}, {upper}]")]
    Box { row: usize, column: usize, value: f64, lower: f64, upper: f64 },
    /// A sample is outside a half-space.
    #[error("row {row} exceeds bound {half_space} of the support by {by}")]
    HalfSpace { row: usize, half_space: usize, by: f64 },
}
