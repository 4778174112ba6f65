//! Local training: the trait that a user implements, and the agreement on its task.

pub(crate) mod federated;
mod task;

pub use mingle_training::*;
pub use task::{Adoption, FixedTask, TrainingTask};
