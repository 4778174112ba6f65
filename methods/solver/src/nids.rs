//! NIDS over a symmetric mixing matrix (Li, Shi and Yan, 2019; \[WS\], Theorem 2, with the gradient that is missing
//! there):
//!
//! ```text
//!   x^k     = prox_(alpha gh)(w^k)
//!   w^(k+1) = w^k - x^k + W ( 2 x^k - x^(k-1) + alpha (grad fh(x^(k-1)) - grad fh(x^k)) ),   w^1 = x^0 - alpha grad fh(x^0)
//! ```
//!
//! Linear convergence for strongly convex `fh`; `alpha < 2 / max L_i`, the same at all nodes; `W` symmetric, doubly
//! stochastic and without negative eigenvalues.

use crate::vector::add;
use crate::{ConsensusTerms, Local, MixedNode, SolverNode};

/// A node of NIDS.
pub struct NidsNode {
    local: Local,
    step: f64,
    w: Vec<f64>,
    gradient: Vec<f64>,
}

impl NidsNode {
    /// A node that begins at zero, with the step size `alpha` that all nodes share.
    #[must_use]
    pub fn new(terms: ConsensusTerms, step: f64) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        Self::starting_at(terms, step, x)
    }

    /// A node that begins at `x`, `[dimension]`.
    #[must_use]
    pub fn starting_at(terms: ConsensusTerms, step: f64, x: Vec<f64>) -> Self {
        let local = Local::at(terms, x);
        let w = local.descended(step, local.x());
        let gradient = local.gradient(local.x());
        Self { local, step, w, gradient }
    }
}

impl SolverNode for NidsNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl MixedNode for NidsNode {
    fn message(&mut self) -> Vec<f64> {
        let before = self.local.x().to_vec();
        self.local.go_to_prox(self.step, self.w.clone());
        let gradient = self.local.gradient(self.local.x());
        let mut message: Vec<f64> = self.local.x().iter().zip(before).map(|(new, old)| 2.0 * new - old).collect();
        add(&mut message, self.step, &self.gradient);
        add(&mut message, -self.step, &gradient);
        self.gradient = gradient;
        message
    }

    fn absorb(&mut self, mixed: &[f64]) {
        let shift = crate::vector::distance(mixed, self.local.x());
        for ((w, x), mixed) in self.w.iter_mut().zip(self.local.x()).zip(mixed) {
            *w = *w - x + mixed;
        }
        self.local.note_shift(shift);
    }
}
