//! Diffusion, and exact diffusion, which corrects its error (\[WS\], appendix E).

use crate::vector::add;
use crate::{ConsensusTerms, Local, MixedNode, Nothing, Smooth, SolverNode};

/// A node of diffusion: `x^(k+1) = W (x^k - alpha grad fh(x^k))`. Its solution has an error of the order of `alpha`.
pub struct DiffusionNode {
    local: Local,
    step: f64,
}

/// A node of exact diffusion: `v^(k+1) = x^k - alpha grad fh(x^k);  x^(k+1) = W (v^(k+1) + x^k - v^k)`, which is NIDS
/// without non-smooth terms.
pub struct ExactDiffusionNode {
    local: Local,
    step: f64,
    v: Vec<f64>,
}

impl DiffusionNode {
    /// A node that begins at zero.
    #[must_use]
    pub fn new(smooth: Box<dyn Smooth>, step: f64) -> Self {
        Self { local: only(smooth), step }
    }
}

impl ExactDiffusionNode {
    /// A node that begins in the state of NIDS after its first step from zero.
    #[must_use]
    pub fn new(smooth: Box<dyn Smooth>, step: f64) -> Self {
        let mut local = only(smooth);
        let v = local.descended(step, local.x());
        local.go_to(v.clone());
        Self { local, step, v }
    }
}

fn only(smooth: Box<dyn Smooth>) -> Local {
    Local::new(ConsensusTerms { smooth, nonsmooth: Box::new(Nothing) })
}

impl SolverNode for DiffusionNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl SolverNode for ExactDiffusionNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl MixedNode for DiffusionNode {
    fn message(&mut self) -> Vec<f64> {
        self.local.descended(self.step, self.local.x())
    }

    fn absorb(&mut self, mixed: &[f64]) {
        self.local.go_to(mixed.to_vec());
    }
}

impl MixedNode for ExactDiffusionNode {
    fn message(&mut self) -> Vec<f64> {
        let v = self.local.descended(self.step, self.local.x());
        let mut message = v.clone();
        add(&mut message, 1.0, self.local.x());
        add(&mut message, -1.0, &self.v);
        self.v = v;
        message
    }

    fn absorb(&mut self, mixed: &[f64]) {
        self.local.go_to(mixed.to_vec());
    }
}
