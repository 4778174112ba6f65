//! Differential privacy of the changes that a peer gives to others.
//!
//! - [`gaussian_mechanism`] clips a change to a norm and adds Gaussian noise.
//! - [`rdp_accountant`] says what a number of such changes costs, as (epsilon, delta).
//! - [`PrivacyBudget`] holds a peer to a maximum of that, over all its runs.
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
