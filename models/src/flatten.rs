//! Modules to flat parameters and back.
//!
//! The flat order is the order of the fields: layer by layer, weight before bias, each tensor row
//! by row in burn's layout (a linear weight is `[inputs, outputs]`, a convolution's is `[channels
//! out, channels in, height, width]`). It depends on the model alone, not on the device.

use std::sync::Arc;

use burn::Tensor;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{AllocationProperty, Bytes, DType, Device, TensorData};

/// A copy of `module` whose parameters are `flat`, on `device`; each requires gradients there if
/// the device computes them. Parameter identities are kept: optimizer state belongs to them.
///
/// The caller has checked that `flat` has `parameter_count` values.
pub fn unflatten<M: Module>(module: M, flat: &[f32], device: &Device) -> M {
    module.map(&mut Filler { rest: flat, device })
}

/// As [`unflatten`], without a copy of the parameters: on the processor the tensors of the module lie in `flat` until an
/// operation changes them, which copies that tensor alone. Other devices copy all of them, as they do otherwise.
pub(crate) fn unflatten_shared<M: Module>(module: M, flat: &Arc<[f32]>, device: &Device) -> M {
    let bytes = bytes::Bytes::from_owner(SharedVector(Arc::clone(flat)));
    module.map(&mut SharingFiller { rest: bytes, device })
}

/// The same module with parameters numbered by their place, from 1, so that the optimizer state kept under these
/// numbers is the same in every process.
pub fn number_parameters<M: Module>(module: M) -> M {
    module.map(&mut Numbering { last: 0 })
}

/// Consumes `module` and appends its parameters to `flat`.
///
/// # Errors
///
/// The text of the device's failure; `flat` is then incomplete.
pub fn flatten<M: Module>(module: M, flat: &mut Vec<f32>) -> Result<(), String> {
    let mut drain = Drain { flat, failure: None };
    module.map(&mut drain);
    match drain.failure {
        None => Ok(()),
        Some(failure) => Err(failure),
    }
}

/// The number of values in the flat parameters of `module`, without touching a tensor.
pub(crate) fn parameter_count<M: Module>(module: &M) -> usize {
    let mut counter = ParameterCounter { count: 0 };
    module.visit(&mut counter);
    counter.count
}

/// The name and length of each tensor, in the order of the flat parameters: the names are those of a model file.
pub(crate) fn tensor_names<M: Module>(module: &M) -> Vec<(String, usize)> {
    let mut names = TensorNames::default();
    module.visit(&mut names);
    names.tensors
}

struct Filler<'a> {
    rest: &'a [f32],
    device: &'a Device,
}

impl ModuleMapper for Filler<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let (values, rest) = self.rest.split_at(shape.num_elements());
        self.rest = rest;
        let tensor = Tensor::from_data(TensorData::new(values.to_vec(), shape), self.device);
        // Not `param.map`: the blank module would first draw the random values it never uses.
        Param::initialized(param.id, tensor.set_require_grad(self.device.is_autodiff()))
    }
}

/// A vector as the bytes that several tensors share.
struct SharedVector(Arc<[f32]>);

impl AsRef<[u8]> for SharedVector {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

struct SharingFiller<'a> {
    rest: bytes::Bytes,
    device: &'a Device,
}

impl ModuleMapper for SharingFiller<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let values = self.rest.split_to(size_of::<f32>() * shape.num_elements());
        let values = Bytes::from_shared(values, AllocationProperty::Native);
        let tensor = Tensor::from_data(TensorData::from_bytes(values, shape, DType::F32), self.device);
        Param::initialized(param.id, tensor.set_require_grad(self.device.is_autodiff()))
    }
}

/// Takes the tensors out of the module instead of reading clones of them: a tensor with one owner hands over its
/// memory, a shared one is copied once more.
struct Drain<'a> {
    flat: &'a mut Vec<f32>,
    failure: Option<String>,
}

impl ModuleMapper for Drain<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        let data = match tensor.inner().try_into_data() {
            Ok(data) => data,
            Err(failure) => {
                self.failure.get_or_insert(failure.to_string());
                TensorData::zeros::<f32, _>([0; D])
            }
        };
        match data.as_slice::<f32>() {
            Ok(values) => self.flat.extend_from_slice(values),
            Err(failure) => {
                self.failure.get_or_insert(failure.to_string());
            }
        }
        // The tensor that the mapper returns is dropped with the module; on the processor it costs nothing.
        Param::from_mapped_value(id, Tensor::from_data(data, &Device::flex()), mapper)
    }
}

struct Numbering {
    last: u64,
}

impl ModuleMapper for Numbering {
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.last += 1;
        param.id = ParamId::from(self.last);
        param
    }
}

struct ParameterCounter {
    count: usize,
}

impl ModuleVisitor for ParameterCounter {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.count += param.lazy_shape().num_elements();
    }
}

#[derive(Default)]
struct TensorNames {
    path: Vec<String>,
    tensors: Vec<(String, usize)>,
}

impl ModuleVisitor for TensorNames {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // The first word is the variant of the network. Norms have other names in PyTorch.
        let words = self.path.iter().skip(1).map(|word| match word.as_str() {
            "gamma" => "weight",
            "beta" => "bias",
            word => word,
        });
        let name = words.collect::<Vec<_>>().join(".");
        self.tensors.push((name, param.lazy_shape().num_elements()));
    }
}
