//! What every node has: its own terms, where it stands, and how far it moved last.

use crate::vector::distance;
use crate::{ConsensusTerms, Nonsmooth, Smooth};

/// The part of a solver that is a node's own.
pub struct Local {
    smooth: Box<dyn Smooth>,
    nonsmooth: Box<dyn Nonsmooth>,
    x: Vec<f64>,
    moved: f64,
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
        let ConsensusTerms { smooth, nonsmooth } = terms;
        let x = vec![0.0; smooth.dimension()];
        Self { smooth, nonsmooth, x, moved: f64::INFINITY }
    }

    pub(crate) fn x(&self) -> &[f64] {
        &self.x
    }

    /// Moves to this point.
    pub(crate) fn go_to(&mut self, x: Vec<f64>) {
        self.moved = distance(&x, &self.x);
        self.x = x;
    }

    /// Moves to the proximal point of this one.
    pub(crate) fn go_to_prox(&mut self, step: f64, mut point: Vec<f64>) {
        self.nonsmooth.prox(step, &mut point);
        self.go_to(point);
    }

    /// The gradient of the smooth term.
    pub(crate) fn gradient(&self, at: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; at.len()];
        self.smooth.gradient(at, &mut gradient);
        gradient
    }

    /// A point, less so many times the gradient there.
    pub(crate) fn descended(&self, step: f64, at: &[f64]) -> Vec<f64> {
        at.iter().zip(self.gradient(at)).map(|(x, gradient)| x - step * gradient).collect()
    }
}
