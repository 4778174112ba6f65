//! Initial parameters: the same bits on every peer and device for one seed.
//!
//! All peers of a swarm must start from the same point, on whatever device. burn draws initial
//! weights from a generator that belongs to the backend (for flex: to the whole process), so the
//! values would depend on the device and on what else runs. They are drawn here instead, from one
//! ChaCha stream in flat order: uniform in `[-b, b)` with `b = 1 / sqrt(inputs of the layer)`,
//! weights and biases alike, which is what burn and PyTorch use for linear and convolution layers
//! (He et al. 2015, eq. 10, with the gain of a leaky ReLU of slope sqrt(5)). Norms start as the
//! identity: factors of one, terms of zero.
//!
//! A language model begins as GPT-2 does (Radford et al. 2019, section 2.3; nanoGPT): normal with a deviation of 0.02,
//! divided by `sqrt(2 layers)` for the layers that add to the residual stream, `c_proj`. A normal variable is the sum
//! of twelve uniform ones of 16 bits less their mean, whose deviation is one: whole numbers, whose sum is the same on
//! all machines.

use burn::Tensor;
use burn::module::{Module, ModuleVisitor, Param};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws flat parameters for `module`, whose tensors are not touched.
pub(crate) fn initial_parameters<M: Module>(module: &M, seed: u64) -> Vec<f32> {
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = Draw { flat: Vec::new(), bound: 0.0, of_norm: None, rng };
    module.visit(&mut draw);
    draw.flat
}

/// Draws flat parameters for a language model of so many `layers`, whose tensors are not touched.
pub(crate) fn gpt2_parameters<M: Module>(module: &M, layers: usize, seed: u64) -> Vec<f32> {
    let residual = GPT2_DEVIATION / (2.0 * layers as f32).sqrt();
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = DrawGpt2 { flat: Vec::new(), residual, is_residual: false, rng };
    module.visit(&mut draw);
    draw.flat
}

const GPT2_DEVIATION: f32 = 0.02;

struct DrawGpt2 {
    flat: Vec<f32>,
    /// The deviation of layers that add to the residual stream.
    residual: f32,
    is_residual: bool,
    rng: ChaCha8Rng,
}

impl ModuleVisitor for DrawGpt2 {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.is_residual |= name == "c_proj";
    }

    fn exit_module(&mut self, name: &str, _: &str) {
        self.is_residual &= name != "c_proj";
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let count = param.lazy_shape().num_elements();
        if D == 1 {
            // The factors of a norm: nothing else has one side.
            self.flat.extend(std::iter::repeat_n(1.0, count));
            return;
        }
        let deviation = if self.is_residual { self.residual } else { GPT2_DEVIATION };
        let rng = &mut self.rng;
        self.flat.extend((0..count).map(|_| deviation * normal(rng)));
    }
}

/// An approximately normal variable: a sum of twelve uniform ones, as the module describes.
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    /// The mean of the sum: twelve times that of 16 bits.
    const MEAN: f32 = 6.0 * 65_535.0;
    let words: [u64; 3] = [rng.random(), rng.random(), rng.random()];
    let parts = words.iter().flat_map(|word| [word & 0xffff, word >> 16 & 0xffff, word >> 32 & 0xffff, word >> 48]);
    // The sum is below 2^20, so the conversion is exact.
    (parts.sum::<u64>() as f32 - MEAN) / 65_536.0
}

struct Draw {
    flat: Vec<f32>,
    /// The bound of the layer being visited, set by its weight and used again by its bias.
    bound: f32,
    /// The value of all coordinates while a parameter of a norm is visited.
    of_norm: Option<f32>,
    rng: ChaCha8Rng,
}

impl ModuleVisitor for Draw {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.of_norm = match (container, name) {
            ("Struct:GroupNorm", "gamma") => Some(1.0),
            ("Struct:GroupNorm", "beta") => Some(0.0),
            _ => None,
        };
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape();
        if let Some(value) = self.of_norm {
            self.flat.extend(std::iter::repeat_n(value, shape.num_elements()));
            return;
        }
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
    use burn::nn::{GroupNormConfig, LinearConfig};
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn a_norm_starts_as_the_identity_and_draws_nothing() {
        let device = Device::flex();
        let norm = GroupNormConfig::new(2, 4).init(&device);
        assert_eq!(initial_parameters(&norm, 1), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        let linear = LinearConfig::new(3, 2).init(&device);
        let alone = initial_parameters(&linear, 1);
        assert_eq!(initial_parameters(&vec![linear.clone(), linear], 1)[..8], alone);
        assert!(alone.iter().all(|value| value.abs() < 1.0 && *value != 0.0));
    }

    #[test]
    fn a_layer_counts_the_inputs_of_one_output() {
        assert_eq!(inputs(&[64, 10]), Some(64));
        assert_eq!(inputs(&[32, 3, 5, 5]), Some(75));
        assert_eq!(inputs(&[10]), None);
    }
}
