//! Local training: the trait that a user implements, and the agreement on its task.

mod task;

pub use mingle_federated::{FederatedMethod, FederatedSettings, SharedPrivacy};
pub use mingle_training::*;
pub use task::{Adoption, FixedTask, TrainingTask};
