//! Clipping gradients by their global norm (Pascanu, Mikolov and Bengio 2013, arXiv:1211.5063), as PyTorch's
//! `torch.nn.utils.clip_grad_norm_`: with `g` the gradients of all parameters as one vector,
//!
//! ```text
//! g <- g * min(1, norm / (|g| + 1e-6))
//! ```
//!
//! burn clips each tensor by its own norm, which turns the direction of the step; this does not.

use burn::Tensor;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;

/// The term that PyTorch adds to the norm, against a division by zero.
const EPSILON: f64 = 1e-6;

/// Scales the gradients of `module` so that their norm over all parameters is `norm` at most, on the device and without
/// waiting for it. Gradients that are not finite stay so.
pub(crate) fn clip<M: Module>(gradients: &mut GradientsParams, module: &M, norm: f64) {
    let mut squares = Squares { gradients, sum: None };
    module.visit(&mut squares);
    let Some(sum) = squares.sum else { return };
    let scale = (sum.sqrt() + EPSILON).recip().mul_scalar(norm).clamp_max(1.0);
    module.visit(&mut Scaling { gradients, scale });
}

/// The sum of squares of all gradients, `[1]`.
struct Squares<'a> {
    gradients: &'a GradientsParams,
    sum: Option<Tensor<1>>,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return };
        let squares = gradient.square().sum();
        self.sum = Some(match self.sum.take() {
            Some(sum) => sum + squares,
            None => squares,
        });
    }
}

/// Multiplies all gradients by `[1]`.
struct Scaling<'a> {
    gradients: &'a mut GradientsParams,
    scale: Tensor<1>,
}

impl ModuleVisitor for Scaling<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register(param.id, gradient * self.scale.clone().unsqueeze());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use burn::module::ParamId;
    use burn::nn::LinearConfig;
    use burn::tensor::Device;

    use super::*;

    /// The clipped gradients of a weight, (2, 4), and a bias, (4): together a vector of norm 6.
    fn clipped(norm: f64) -> Vec<f32> {
        let device = Device::flex();
        let linear = LinearConfig::new(2, 1).init(&device);
        let ids: [ParamId; 2] = [linear.weight.id, linear.bias.as_ref().unwrap().id];
        let mut gradients = GradientsParams::new();
        gradients.register(ids[0], Tensor::<2>::from_floats([[2.0], [4.0]], &device));
        gradients.register(ids[1], Tensor::<1>::from_floats([4.0], &device));
        clip(&mut gradients, &linear, norm);
        let weight = gradients.get::<2>(ids[0]).unwrap().into_data().try_to_vec::<f32>().unwrap();
        let bias = gradients.get::<1>(ids[1]).unwrap().into_data().try_to_vec::<f32>().unwrap();
        [weight, bias].concat()
    }

    #[test]
    fn all_gradients_together_have_the_norm_at_most_and_keep_their_direction() {
        for (norm, wanted) in [(3.0, [1.0, 2.0, 2.0]), (0.6, [0.2, 0.4, 0.4]), (6.1, [2.0, 4.0, 4.0])] {
            for (found, wanted) in clipped(norm).iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-5, "norm {norm}: {found}, not {wanted}");
            }
        }
    }
}
