//! The kinds of convex problems.

pub(super) const REGRESSION: &str = "sparse-regression";
pub(super) const ALLOCATION: &str = "resource-allocation";
pub(super) const ROBUST_CLASSIFICATION: &str = "robust-classification";
pub(super) const ROBUST_REGRESSION: &str = "robust-regression";

/// The kinds of convex problems, as their files name them.
pub const CONVEX_KINDS: [&str; 4] = [REGRESSION, ALLOCATION, ROBUST_CLASSIFICATION, ROBUST_REGRESSION];
