//! Diffusion, and exact diffusion, which corrects what is wrong about it (\[WS\], section 6).

use crate::Smooth;
use crate::vector::add;

/// `x^(k+1) = W (x^k - alpha grad fh(x^k))`: stays off the solution by something in the order of `alpha`.
pub struct DiffusionNode {
    smooth: Box<dyn Smooth>,
    step: f64,
    x: Vec<f64>,
}

impl DiffusionNode {
    /// A node that begins at zero.
    #[must_use]
    pub fn new(smooth: Box<dyn Smooth>, step: f64) -> Self {
        let x = vec![0.0; smooth.dimension()];
        Self { smooth, step, x }
    }

    /// Takes a step, and returns what has to be mixed.
    pub fn message(&mut self) -> Vec<f64> {
        descended(&*self.smooth, self.step, &self.x)
    }

    /// Takes the mixture of the messages of this iteration.
    pub fn absorb(&mut self, mixed: &[f64]) {
        self.x.copy_from_slice(mixed);
    }

    /// The solution so far.
    #[must_use]
    pub fn solution(&self) -> &[f64] {
        &self.x
    }
}

/// `v^(k+1) = x^k - alpha grad fh(x^k);  x^(k+1) = W (v^(k+1) + x^k - v^k)`: NIDS where nothing is non-smooth.
pub struct ExactDiffusionNode {
    smooth: Box<dyn Smooth>,
    step: f64,
    x: Vec<f64>,
    v: Vec<f64>,
}

impl ExactDiffusionNode {
    /// A node that begins at zero, where NIDS is after its first step.
    #[must_use]
    pub fn new(smooth: Box<dyn Smooth>, step: f64) -> Self {
        let x = descended(&*smooth, step, &vec![0.0; smooth.dimension()]);
        Self { smooth, step, v: x.clone(), x }
    }

    /// Takes a step, and returns what has to be mixed.
    pub fn message(&mut self) -> Vec<f64> {
        let v = descended(&*self.smooth, self.step, &self.x);
        let mut message = v.clone();
        add(&mut message, 1.0, &self.x);
        add(&mut message, -1.0, &self.v);
        self.v = v;
        message
    }

    /// Takes the mixture of the messages of this iteration.
    pub fn absorb(&mut self, mixed: &[f64]) {
        self.x.copy_from_slice(mixed);
    }

    /// The solution so far.
    #[must_use]
    pub fn solution(&self) -> &[f64] {
        &self.x
    }
}

fn descended(smooth: &dyn Smooth, step: f64, x: &[f64]) -> Vec<f64> {
    let (mut gradient, mut v) = (vec![0.0; x.len()], x.to_vec());
    smooth.gradient(x, &mut gradient);
    add(&mut v, -step, &gradient);
    v
}
