//! Federated averaging without a server (FedAvg of McMahan et al., AISTATS 2017): in each round every member trains from
//! the common model, the changes of all are averaged exactly, and all go on from the mean.
//!
//! A [`LocalModel`] is what a member trains: a built-in model, or one of another program. [`FederatedLearning`] makes of
//! it a part of learning in rounds ([`RoundLearning`](mingle_solving::RoundLearning)): the outer momentum, and with
//! [`SharedPrivacy`] the clipping, rounding and noise of each contribution, counted before it leaves.

mod learning;
mod local_model;
mod private_sum;
mod settings;

pub use learning::FederatedLearning;
pub use local_model::{Beginning, LocalModel, LocalRound};
pub use settings::{EPSILON, FederatedMethod, FederatedSettings, SPENT, SharedPrivacy, TRAIN_LOSS};
