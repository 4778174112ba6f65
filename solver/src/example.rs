//! A table to try things on.

/// The findings of 270 patients, and whether they have a heart disease, as CSV; `solver/data/README.md` says where it is from.
pub const HEART: &str = include_str!("../data/heart.csv");

/// The column of [`HEART`] that the others explain.
pub const HEART_TARGET: &str = "disease";
