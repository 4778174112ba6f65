//! Local training: the trait that a user implements, the agreement on its task, and the thread that it runs on.

mod task;
pub(crate) mod thread;

pub use mingle_training::*;
pub use task::{Adoption, FixedTask, TrainingTask};
