//! One clique of all nodes, over any way to average: also directed and unbalanced graphs, by tracking averages.
//!
//! ```text
//!   x_i = prox_(alpha gh_i)(z_i);   v_i = 2 x_i - z_i - alpha grad fh_i(x_i);   z_i += average(v)_i - x_i
//! ```
//!
//! This is CD-DYS with `Phi = J`. The averaging may be inexact on the way, as long as it keeps its sum and is exact at rest: then a
//! state at rest solves the problem.

use crate::ConsensusTerms;
use crate::vector::{add, distance};

/// One node.
pub struct AverageNode {
    terms: ConsensusTerms,
    step: f64,
    z: Vec<f64>,
    x: Vec<f64>,
    moved: f64,
}

impl AverageNode {
    /// A node that begins at zero, with the step size that all nodes have.
    #[must_use]
    pub fn new(terms: ConsensusTerms, step: f64) -> Self {
        let x = vec![0.0; terms.smooth.dimension()];
        let mut z = x.clone();
        terms.smooth.gradient(&x, &mut z);
        z.iter_mut().for_each(|z| *z *= -step);
        Self { terms, step, z, x, moved: f64::INFINITY }
    }

    /// Takes a step, and returns what has to be averaged over all nodes.
    pub fn message(&mut self) -> Vec<f64> {
        let mut x = self.z.clone();
        self.terms.nonsmooth.prox(self.step, &mut x);
        let mut gradient = vec![0.0; x.len()];
        self.terms.smooth.gradient(&x, &mut gradient);
        let mut message: Vec<f64> = x.iter().zip(&self.z).map(|(x, z)| 2.0 * x - z).collect();
        add(&mut message, -self.step, &gradient);
        self.moved = distance(&x, &self.x);
        self.x = x;
        message
    }

    /// Takes what the averaging made of the messages of this iteration.
    pub fn absorb(&mut self, average: &[f64]) {
        for ((z, x), average) in self.z.iter_mut().zip(&self.x).zip(average) {
            *z = *z + average - x;
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
