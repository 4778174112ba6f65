//! The network of a client: a filter whose coefficients are learned for each channel, then a multilayer perceptron (UniFilter).

use burn::Tensor;
use burn::module::{Module, Param, ParamId};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::Device;
use burn::tensor::activation::relu;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The sizes of a client's network; equal at all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkShape {
    /// The highest order of bases.
    pub orders: usize,
    /// Features of a node.
    pub features: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
    /// Layers of the perceptron, the last included; at least 1.
    pub layers: usize,
    /// Classes.
    pub classes: usize,
}

impl NetworkShape {
    /// The number of coefficients: one for each order, from 0, and channel. They come first in a flat vector of
    /// parameters, order by order.
    pub fn coefficients(&self) -> usize {
        (self.orders + 1) * self.features
    }

    /// The number of all parameters.
    pub fn parameters(&self) -> usize {
        self.coefficients() + self.widths().map(|(inputs, outputs)| inputs * outputs).sum::<usize>()
    }

    /// Inputs and outputs of each layer.
    pub(crate) fn widths(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let width = |at: usize| match at {
            0 => self.features,
            at if at == self.layers => self.classes,
            _ => self.hidden,
        };
        (0..self.layers).map(move |layer| (width(layer), width(layer + 1)))
    }

    /// The initial parameters of all clients: coefficients `1 / (orders + 1)`, weights uniform in `+-1 / sqrt(inputs)`,
    /// the same for the same seed.
    pub fn initial_parameters(&self, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut parameters = vec![1.0 / (self.orders + 1) as f32; self.coefficients()];
        for (inputs, outputs) in self.widths() {
            let bound = 1.0 / (inputs as f32).sqrt();
            parameters.extend((0..inputs * outputs).map(|_| (2.0 * rng.random::<f32>() - 1.0) * bound));
        }
        parameters
    }
}

/// `logits = perceptron(sum_k a_k * B_k)`.
#[derive(Module, Debug)]
pub(crate) struct BasisNetwork {
    /// `[orders + 1, features]`
    coefficients: Param<Tensor<2>>,
    layers: Vec<Linear>,
}

/// Dropout masks, multiplied element by element: zero, or one over the share that is kept.
#[derive(Default)]
pub(crate) struct Masks {
    /// `[orders + 1, nodes, features]`
    pub(crate) bases: Option<Tensor<3>>,
    /// The mask of each layer's input, `[nodes, inputs]`.
    pub(crate) layers: Vec<Option<Tensor<2>>>,
}

impl BasisNetwork {
    /// A blank network; its tensors exist only once parameters are loaded.
    pub(crate) fn blank(shape: &NetworkShape, device: &Device) -> Self {
        Self {
            coefficients: Initializer::Zeros.init([shape.orders + 1, shape.features], device),
            layers: shape
                .widths()
                .map(|(inputs, outputs)| LinearConfig::new(inputs, outputs).with_bias(false).init(device))
                .collect(),
        }
    }

    /// The parameters of the filter.
    pub(crate) fn of_filter(&self) -> Vec<ParamId> {
        vec![self.coefficients.id]
    }

    /// The parameters of the perceptron.
    pub(crate) fn of_perceptron(&self) -> Vec<ParamId> {
        self.layers.iter().map(|layer| layer.weight.id).collect()
    }

    /// Logits `[nodes, classes]` of bases `[orders + 1, nodes, features]`. A hidden layer as wide as its input has a
    /// residual connection.
    pub(crate) fn forward(&self, bases: Tensor<3>, masks: &Masks) -> Tensor<2> {
        let bases = match &masks.bases {
            Some(mask) => bases * mask.clone(),
            None => bases,
        };
        let filtered = bases * self.coefficients.val().unsqueeze_dim(1);
        let mut hidden: Tensor<2> = filtered.sum_dim(0).squeeze_dim(0);
        for (at, layer) in self.layers.iter().enumerate() {
            let input = match masks.layers.get(at) {
                Some(Some(mask)) => hidden.clone() * mask.clone(),
                _ => hidden.clone(),
            };
            let output = layer.forward(input);
            if at + 1 == self.layers.len() {
                return output;
            }
            let [inputs, outputs] = layer.weight.dims();
            hidden = if inputs == outputs { relu(output) + hidden } else { relu(output) };
        }
        hidden
    }
}
