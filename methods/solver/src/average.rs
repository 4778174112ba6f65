//! One clique of all nodes, over any averaging: also directed and unbalanced graphs, by tracking averages.
//!
//! ```text
//!   x_i = prox_(alpha gh_i)(z_i);   v_i = 2 x_i - z_i - alpha grad fh_i(x_i);   z_i += average(v)_i - x_i
//! ```
//!
//! This is CD-DYS with `Phi = J`. The averaging may be inexact in between, as long as it keeps its sum and is exact at
//! rest: then a state at rest solves the problem.

use crate::vector::add;
use crate::{ConsensusTerms, Local, MixedNode, SolverNode};

/// A node of averaging.
pub struct AverageNode {
    local: Local,
    step: f64,
    z: Vec<f64>,
}

impl AverageNode {
    /// A node that begins at zero, with the step size that all nodes share.
    #[must_use]
    pub fn new(terms: ConsensusTerms, step: f64) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        Self::starting_at(terms, step, x)
    }

    /// A node that begins at `x`, `[dimension]`.
    #[must_use]
    pub fn starting_at(terms: ConsensusTerms, step: f64, x: Vec<f64>) -> Self {
        let local = Local::at(terms, x);
        let z = local.descended(step, local.x());
        Self { local, step, z }
    }
}

impl SolverNode for AverageNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl MixedNode for AverageNode {
    fn message(&mut self) -> Vec<f64> {
        self.local.go_to_prox(self.step, self.z.clone());
        let x = self.local.x();
        let mut message: Vec<f64> = x.iter().zip(&self.z).map(|(x, z)| 2.0 * x - z).collect();
        add(&mut message, -self.step, &self.local.gradient(x));
        message
    }

    /// Takes the average of this iteration's messages.
    fn absorb(&mut self, average: &[f64]) {
        let shift = crate::vector::distance(average, self.local.x());
        for ((z, x), average) in self.z.iter_mut().zip(self.local.x()).zip(average) {
            *z = *z + average - x;
        }
        self.local.note_shift(shift);
    }
}
