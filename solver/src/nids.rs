//! NIDS over a symmetric mixing matrix (Li, Shi and Yan, 2019; \[WS\], Theorem 2, with the gradient that is missing there):
//!
//! ```text
//!   x^k     = prox_(alpha gh)(w^k)
//!   w^(k+1) = w^k - x^k + W ( 2 x^k - x^(k-1) + alpha (grad fh(x^(k-1)) - grad fh(x^k)) ),   w^1 = x^0 - alpha grad fh(x^0)
//! ```
//!
//! Linear convergence for strongly convex `fh`; `alpha < 2 / max L_i`, the same at all nodes; `W` symmetric, doubly
//! stochastic and without negative eigenvalues.

use crate::ConsensusTerms;
use crate::vector::{add, distance};

/// One node.
pub struct NidsNode {
    terms: ConsensusTerms,
    step: f64,
    w: Vec<f64>,
    x: Vec<f64>,
    gradient: Vec<f64>,
    moved: f64,
}

impl NidsNode {
    /// A node that begins at zero, with the step size `alpha` that all nodes have.
    #[must_use]
    pub fn new(terms: ConsensusTerms, step: f64) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        let mut gradient = x.clone();
        terms.smooth.gradient(&x, &mut gradient);
        let w = gradient.iter().map(|gradient| -step * gradient).collect();
        Self { terms, step, w, x, gradient, moved: f64::INFINITY }
    }

    /// Takes a step, and returns what the neighbours, and the node itself, have to mix.
    pub fn message(&mut self) -> Vec<f64> {
        let mut x = self.w.clone();
        self.terms.nonsmooth.prox(self.step, &mut x);
        let mut gradient = vec![0.0; x.len()];
        self.terms.smooth.gradient(&x, &mut gradient);
        let mut message: Vec<f64> = x.iter().zip(&self.x).map(|(new, old)| 2.0 * new - old).collect();
        add(&mut message, self.step, &self.gradient);
        add(&mut message, -self.step, &gradient);
        self.moved = distance(&x, &self.x);
        (self.x, self.gradient) = (x, gradient);
        message
    }

    /// Takes the mixture of the messages of this iteration.
    pub fn absorb(&mut self, mixed: &[f64]) {
        for ((w, x), mixed) in self.w.iter_mut().zip(&self.x).zip(mixed) {
            *w = *w - x + mixed;
        }
    }

    /// The solution so far.
    #[must_use]
    pub fn solution(&self) -> &[f64] {
        &self.x
    }

    /// How far the last step moved it.
    #[must_use]
    pub fn moved(&self) -> f64 {
        self.moved
    }
}
