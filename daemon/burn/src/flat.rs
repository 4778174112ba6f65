//! The exchanged tensors of a module as one flat vector, and back, selected by their dotted paths.

use burn::Tensor;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::TensorData;
use mingle_peer::training::Layout;

/// A filter that selects exchanged tensors by their dotted paths.
pub(crate) type Filter = Box<dyn Fn(&str) -> bool + Send>;

/// The layout of the exchanged tensors of `module`, in the order of its fields.
pub(crate) fn layout_of<M: Module>(module: &M, filter: &Filter) -> Layout {
    let mut names = ModuleNames { path: Vec::new(), filter, tensors: Vec::new() };
    module.visit(&mut names);
    Layout::new(names.tensors)
}

/// Copies the exchanged tensors out of the module into one vector.
///
/// # Errors
/// The error text of the device.
pub(crate) fn flatten<M: Module>(module: &M, filter: &Filter, dimension: usize) -> Result<Vec<f32>, String> {
    let mut reader = Reader { path: Vec::new(), filter, flat: Vec::with_capacity(dimension), failure: None };
    module.visit(&mut reader);
    reader.failure.map_or(Ok(reader.flat), Err)
}

/// The module with its exchanged tensors replaced by these values. Tensors that require gradients still do; identities,
/// to which optimizers tie their states, are kept.
pub(crate) fn fill<M: Module>(module: M, filter: &Filter, flat: &[f32]) -> M {
    module.map(&mut ModuleFiller { path: Vec::new(), filter, rest: flat })
}

/// The module with parameters numbered by their place, from 1, so that another process can match the optimizer's state
/// to them.
pub(crate) fn number<M: Module>(module: M) -> M {
    module.map(&mut ModuleNumbering { last: 0 })
}

struct ModuleNames<'a> {
    path: Vec<String>,
    filter: &'a Filter,
    tensors: Vec<(String, Vec<usize>)>,
}

impl ModuleVisitor for ModuleNames<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        if (self.filter)(&name) {
            self.tensors.push((name, param.lazy_shape().to_vec()));
        }
    }
}

struct Reader<'a> {
    path: Vec<String>,
    filter: &'a Filter,
    flat: Vec<f32>,
    failure: Option<String>,
}

impl ModuleVisitor for Reader<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !(self.filter)(&self.path.join(".")) {
            return;
        }
        // A module in half precision is exchanged in single.
        let read = param.base().inner().try_into_data().map_err(|failure| failure.to_string());
        match read.and_then(|data| data.convert::<f32>().try_to_vec::<f32>().map_err(|failure| format!("{failure:?}")))
        {
            Ok(values) => self.flat.extend_from_slice(&values),
            Err(failure) => drop(self.failure.get_or_insert(failure)),
        }
    }
}

struct ModuleFiller<'a> {
    path: Vec<String>,
    filter: &'a Filter,
    rest: &'a [f32],
}

impl ModuleMapper for ModuleFiller<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !(self.filter)(&self.path.join(".")) {
            return param;
        }
        let shape = param.lazy_shape();
        let (values, rest) = self.rest.split_at(shape.num_elements());
        self.rest = rest;
        param.map(|before| {
            let data = TensorData::new(values.to_vec(), shape).convert_dtype(before.dtype());
            Tensor::from_data(data, &before.device()).set_require_grad(before.is_require_grad())
        })
    }
}

struct ModuleNumbering {
    last: u64,
}

impl ModuleMapper for ModuleNumbering {
    fn map_float<const D: usize>(&mut self, mut param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.last += 1;
        param.id = ParamId::from(self.last);
        param
    }
}
