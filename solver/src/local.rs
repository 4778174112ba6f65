//! What every node has: its own terms, where it stands, and how far it moved last.

use crate::vector::distance;
use crate::{ConsensusTerms, Nonsmooth, Smooth};

/// The part of a solver that is a node's own.
pub struct Local {
    smooth: Box<dyn Smooth>,
    nonsmooth: Box<dyn Nonsmooth>,
    x: Vec<f64>,
    moved: f64,
    /// How far the rest of its state moved.
    shifted: f64,
}

/// A node of any of the solvers.
pub trait SolverNode {
    /// Its own part.
    fn local(&self) -> &Local;

    /// The solution so far.
    fn solution(&self) -> &[f64] {
        &self.local().x
    }

    /// How far the last step moved it: a node at rest has found its part of the solution.
    fn moved(&self) -> f64 {
        self.local().moved
    }

    /// How far the last iteration moved all that the node keeps, its solution and what it accumulates: zero at all nodes is
    /// where nothing changes any more, and that is the solution.
    fn residual(&self) -> f64 {
        self.local().moved.max(self.local().shifted)
    }
}

/// A node whose messages are vectors that are mixed or averaged.
pub trait MixedNode: SolverNode {
    /// Takes a step, and returns what the others, and the node itself, have to mix.
    fn message(&mut self) -> Vec<f64>;

    /// Takes the mixture of the messages of this iteration.
    fn absorb(&mut self, mixed: &[f64]);
}

impl Local {
    /// At zero.
    pub(crate) fn new(terms: ConsensusTerms) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        Self::at(terms, x)
    }

    /// At this point, `[dimension]`.
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

    /// Says how far what the node accumulates has moved.
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

    /// The largest violation of `0 in g + subdifferential gh(x)`, where `g` is the gradient of all that is smooth: how far a
    /// proximal step from `x` leads, per unit of its size.
    pub(crate) fn optimality(&self, x: &[f64], gradient: &[f64], step: f64) -> f64 {
        optimality(&*self.nonsmooth, x, gradient, step)
    }

    /// A point, less so many times the gradient there.
    pub(crate) fn descended(&self, step: f64, at: &[f64]) -> Vec<f64> {
        at.iter().zip(self.gradient(at)).map(|(x, gradient)| x - step * gradient).collect()
    }
}

/// How far `x` is from being a minimum of `nonsmooth` plus something smooth with this gradient there: the length, in the
/// maximum norm, of the proximal gradient step of this size from `x`, divided by the size.
#[must_use]
pub fn optimality(nonsmooth: &dyn Nonsmooth, x: &[f64], gradient: &[f64], step: f64) -> f64 {
    let mut next: Vec<f64> = x.iter().zip(gradient).map(|(x, gradient)| x - step * gradient).collect();
    nonsmooth.prox(step, &mut next);
    distance(&next, x) / step
}
