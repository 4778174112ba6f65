//! Initial parameters: the same bits on every peer and device for one seed.
//!
//! All peers of a swarm must start from the same point, on whatever device. burn draws initial
//! weights from a generator that belongs to the backend (for flex: to the whole process), so the
//! values would depend on the device and on what else runs. They are drawn here instead, from one
//! ChaCha stream in flat order: uniform in `[-b, b)` with `b = 1 / sqrt(inputs of the layer)`,
//! weights and biases alike, which is what burn and PyTorch use for linear and convolution layers
//! (He et al. 2015, eq. 10, with the gain of a leaky ReLU of slope sqrt(5)).

use burn::Tensor;
use burn::module::{Module, ModuleVisitor, Param};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws flat parameters for `module`, whose tensors are not touched.
pub(crate) fn initial_parameters<M: Module>(module: &M, seed: u64) -> Vec<f32> {
    let mut draw = Draw { flat: Vec::new(), bound: 0.0, rng: ChaCha8Rng::seed_from_u64(seed) };
    module.visit(&mut draw);
    draw.flat
}

struct Draw {
    flat: Vec<f32>,
    /// The bound of the layer being visited, set by its weight and used again by its bias.
    bound: f32,
    rng: ChaCha8Rng,
}

impl ModuleVisitor for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape();
        if let Some(inputs) = inputs(shape.as_slice()) {
            self.bound = 1.0 / (inputs as f32).sqrt();
        }
        let bound = self.bound;
        let rng = &mut self.rng;
        let values = (0..shape.num_elements()).map(|_| (2.0 * rng.random::<f32>() - 1.0) * bound);
        self.flat.extend(values);
    }
}

/// The inputs that feed one output of the layer with this weight; a bias has none of its own.
fn inputs(weight: &[usize]) -> Option<usize> {
    match weight {
        [_outputs] => None,
        [inputs, _outputs] => Some(*inputs),
        [_channels_out, rest @ ..] => Some(rest.iter().product()),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_counts_the_inputs_of_one_output() {
        assert_eq!(inputs(&[64, 10]), Some(64));
        assert_eq!(inputs(&[32, 3, 5, 5]), Some(75));
        assert_eq!(inputs(&[10]), None);
    }
}
