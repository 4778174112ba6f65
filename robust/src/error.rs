//! What can be wrong with a robust problem.

use thiserror::Error;

use crate::samples::Outside;

/// A problem that is none, or one that its solver gave up.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RobustError {
    /// A radius below zero, or none.
    #[error("radius {0}: give a number of at least 0")]
    Radius(f64),
    /// A radius of the ball of weights below zero, or none.
    #[error("theta {0}: give a number of at least 0")]
    Theta(f64),
    /// A cost of changing a label or moving a target that is not above zero.
    #[error("kappa {0}: give a number above 0: at 0 labels change for nothing, and no model is better than none")]
    Kappa(f64),
    /// A parameter of a loss outside its range.
    #[error("epsilon {value}: {range}")]
    Epsilon {
        /// The parameter.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A penalty of the method that is not above zero.
    #[error("penalty {0}: give a number above 0")]
    Penalty(f64),
    /// Nominal weights of sites that are no distribution.
    #[error("the nominal weights of the sites are not a distribution: they are not all at least 0 and add up to {sum}")]
    Weights {
        /// Their sum.
        sum: f64,
    },
    /// A support that the loss has no convex form for.
    #[error(
        "the {loss} loss is robust over all numbers only: choose support unbounded, or the hinge, epsilon-insensitive or pinball loss"
    )]
    Support {
        /// The loss.
        loss: &'static str,
    },
    /// A box without a width, or a half-space that does not fit the columns.
    #[error("the support is none: {0}")]
    NoSupport(&'static str),
    /// No sample, or vectors that do not fit together.
    #[error("the samples do not fit together: {0}")]
    Shape(&'static str),
    /// A number that is none.
    #[error("row {row}: {value} is not a finite number")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// What is there.
        value: f64,
    },
    /// A label that is not one.
    #[error("row {row}: the label {value} is neither 1 nor -1")]
    Label {
        /// The row, from 0.
        row: usize,
        /// What is there.
        value: f64,
    },
    /// A sample that the support rules out.
    #[error(transparent)]
    Outside(#[from] Outside),
    /// Subproblems of a site failed again and again.
    #[error("the subproblem of site {site} failed {times} times in a row: scale its columns, or try another penalty", times = crate::MOST_FAILURES)]
    Subproblem {
        /// The site, from 0.
        site: usize,
        /// What was wrong with the last.
        source: Box<Self>,
    },
    /// A cone program that was not solved.
    #[error("the cone program was not solved: {status}")]
    Solver {
        /// What its solver says.
        status: String,
    },
}
