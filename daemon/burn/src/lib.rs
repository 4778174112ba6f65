//! Training of your own [burn] module on a peer: a [`BurnTrainer`] combines a module, an optimizer, a stream of batches
//! and a loss.
//!
//! ```
//! use burn::Tensor;
//! use burn::module::Module;
//! use burn::nn::loss::{MseLoss, Reduction};
//! use burn::nn::{Linear, LinearConfig};
//! use burn::optim::SgdConfig;
//! use burn::tensor::Device;
//! use mingle_burn::BurnTrainer;
//! use mingle_peer::LocalTraining;
//!
//! #[derive(Module, Debug)]
//! struct Line {
//!     linear: Linear,
//! }
//!
//! let device = Device::flex().autodiff();
//! let line = Line { linear: LinearConfig::new(1, 1).init(&device) };
//! let (x, y) = (Tensor::<2>::from_floats([[0.0], [1.0]], &device), Tensor::<2>::from_floats([[1.0], [3.0]], &device));
//! let batches = std::iter::repeat_with(move || (x.clone(), y.clone()));
//! let loss = |line: &Line, (x, y)| MseLoss::new().forward(line.linear.forward(x), y, Reduction::Mean);
//! let trainer = BurnTrainer::new(line, SgdConfig::new().init(), 0.1, batches, loss)?;
//! assert_eq!(trainer.layout().tensors()[0].name, "linear.weight");
//! # Ok::<(), mingle_burn::BurnError>(())
//! ```
//!
//! Pass it to `mingle_peer::Peer::builder(home).training(trainer)`; `examples/own_module.rs` runs three peers in one
//! process.
//!
//! [burn]: https://burn.dev

mod flat;
mod prefetch;
mod trainer;

pub use prefetch::prefetch;
pub use trainer::{BurnError, BurnTrainer};
