//! The part common to the nodes of all solvers: own terms, present point, and length of the last move.

use crate::vector::distance;
use crate::{ConsensusTerms, Nonsmooth, Smooth};

/// A node's own terms and its present point.
pub struct Local {
    smooth: Box<dyn Smooth>,
    nonsmooth: Box<dyn Nonsmooth>,
    x: Vec<f64>,
    moved: f64,
    /// The length of the last move of the rest of its state.
    shifted: f64,
}

/// A node of any of the solvers.
pub trait SolverNode {
    /// The node's own part.
    fn local(&self) -> &Local;

    /// The solution so far.
    fn solution(&self) -> &[f64] {
        &self.local().x
    }

    /// The length of the last move of the solution; small once the node has found its part of it.
    fn moved(&self) -> f64 {
        self.local().moved
    }

    /// The length of the last move of the node's whole state, its solution and what it accumulates. If it is zero at
    /// all nodes, they are at the solution.
    fn residual(&self) -> f64 {
        self.local().moved.max(self.local().shifted)
    }
}

/// A node whose messages are vectors that are mixed or averaged.
pub trait MixedNode: SolverNode {
    /// Takes a step, and returns the vector that the others, and the node itself, mix.
    fn message(&mut self) -> Vec<f64>;

    /// Takes the mixture of this iteration's messages.
    fn absorb(&mut self, mixed: &[f64]);
}

impl Local {
    /// A part that begins at zero.
    pub(crate) fn new(terms: ConsensusTerms) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        Self::at(terms, x)
    }

    /// A part that begins at this point, `[dimension]`.
    pub(crate) fn at(terms: ConsensusTerms, x: Vec<f64>) -> Self {
        let ConsensusTerms { smooth, nonsmooth } = terms;
        Self { smooth, nonsmooth, x, moved: f64::INFINITY, shifted: 0.0 }
    }

    pub(crate) fn x(&self) -> &[f64] {
        &self.x
    }

    /// Moves to this point.
    pub(crate) fn go_to(&mut self, x: Vec<f64>) {
        self.moved = distance(&x, &self.x);
        self.x = x;
    }

    /// Records the length of the last move of the accumulated state.
    pub(crate) fn note_shift(&mut self, by: f64) {
        self.shifted = by;
    }

    /// Moves to the proximal point of this one.
    pub(crate) fn go_to_prox(&mut self, step: f64, mut point: Vec<f64>) {
        self.nonsmooth.prox(step, &mut point);
        self.go_to(point);
    }

    pub(crate) fn smooth_value(&self) -> f64 {
        self.smooth.value(&self.x)
    }

    /// The gradient of the smooth term.
    pub(crate) fn gradient(&self, at: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; at.len()];
        self.smooth.gradient(at, &mut gradient);
        gradient
    }

    /// The largest violation of `0 in g + subdifferential gh(x)`, where `g` is the gradient of all smooth terms: the
    /// length of a proximal step from `x`, divided by its step size.
    pub(crate) fn optimality(&self, x: &[f64], gradient: &[f64], step: f64) -> f64 {
        optimality(&*self.nonsmooth, x, gradient, step)
    }

    /// The point `at` less `step` times the gradient there.
    pub(crate) fn descended(&self, step: f64, at: &[f64]) -> Vec<f64> {
        at.iter().zip(self.gradient(at)).map(|(x, gradient)| x - step * gradient).collect()
    }
}

/// The distance of `x` from the minimality condition of `nonsmooth` plus a smooth term with this gradient there. It is
/// the length, in the maximum norm, of the proximal gradient step of this size from `x`, divided by the size.
#[must_use]
pub fn optimality(nonsmooth: &dyn Nonsmooth, x: &[f64], gradient: &[f64], step: f64) -> f64 {
    let mut next: Vec<f64> = x.iter().zip(gradient).map(|(x, gradient)| x - step * gradient).collect();
    nonsmooth.prox(step, &mut next);
    distance(&next, x) / step
}
