//! An example table.

/// The findings of 270 patients, and the presence of heart disease, as CSV; `methods/solver/data/README.md` names the source.
pub const HEART: &str = include_str!("../data/heart.csv");

/// The target column of [`HEART`].
pub const HEART_TARGET: &str = "disease";
