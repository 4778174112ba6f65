//! Local training: what a user brings, how its task is settled, and the thread that it runs on.

mod task;
pub(crate) mod thread;

pub use mingle_training::*;
pub use task::{Adoption, FixedTask, TrainingTask};
