//! Differential privacy of the changes that a peer sends to others.
//!
//! - [`gaussian_mechanism`] clips a change to a norm and adds Gaussian noise.
//! - [`rdp_accountant`] computes the cost of a number of such changes, as (epsilon, delta).
//! - [`PrivacyBudget`] limits that cost for a peer, over all its runs; [`CountFile`] is where it is counted.
//! - [`SharedNoise`] is noise of which each member of a sum adds a part, in exact integers.
//! - [`CorrelatedNoise`] is noise of changes that are mixed, of which pairs of members add opposite parts.
//!
//! ```
//! use mingle_privacy::{NoisedChanges, PrivacyBudget, PrivacySettings};
//!
//! let settings = PrivacySettings::new(1.0, 4.0, 8.0, 1e-5)?;
//! let mut budget = PrivacyBudget::new(settings, NoisedChanges::default());
//! while let Some(next) = budget.next() {
//!     budget = next;
//! }
//! let spending = budget.spending();
//! assert!(spending.is_spent && spending.epsilon <= 8.0);
//! assert_eq!(spending.changes, 39);
//! # Ok::<(), mingle_privacy::SettingsError>(())
//! ```

pub mod gaussian_mechanism;
pub mod rdp_accountant;

mod budget;
mod correlated_changes;
mod correlated_noise;
mod count_file;
mod discrete_gaussian;
mod noise_design;
mod noise_graph;
mod noise_key;
mod noise_source;
mod settings;
mod shared_noise;

pub use budget::{NoisedChanges, PrivacyBudget, PrivacySpending};
pub use correlated_changes::{CorrelatedChanges, NoiseNotUsable};
pub use correlated_noise::{CorrelatedNoise, NoisePair};
pub use count_file::{CountError, CountFile, ProtectedUnit, UnprotectedMember};
pub use discrete_gaussian::DiscreteGaussian;
pub use noise_design::{NoiseDesign, NoiseDesignError};
pub use noise_graph::{NoiseGraph, NoiseParts};
pub use noise_key::NoiseKey;
pub use noise_source::NoiseSource;
pub use settings::{DEFAULT_DELTA, PrivacySettings, SettingsError};
pub use shared_noise::{SharedNoise, SharedNoiseError};
