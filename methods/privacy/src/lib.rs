//! Differential privacy of the changes that a peer sends to others.
//!
//! - [`gaussian_mechanism`] clips a change to a norm and adds Gaussian noise.
//! - [`rdp_accountant`] computes the cost of a number of such changes, as (epsilon, delta).
//! - [`PrivacyBudget`] limits that cost for a peer, over all its runs.
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
mod noise_source;
mod settings;

pub use budget::{NoisedChanges, PrivacyBudget, PrivacySpending};
pub use noise_source::NoiseSource;
pub use settings::{DEFAULT_DELTA, PrivacySettings, SettingsError};
