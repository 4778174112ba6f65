//! The kinds of convex problems.

use super::ProblemTask;

pub(super) const REGRESSION: &str = "sparse-regression";
pub(super) const ALLOCATION: &str = "resource-allocation";
pub(super) const COUPLED: &str = "clique-coupling";
pub(super) const NETWORK_LASSO: &str = "network-lasso";
pub(super) const ROBUST_CLASSIFICATION: &str = "robust-classification";
pub(super) const ROBUST_REGRESSION: &str = "robust-regression";

/// The kinds of convex problems, as their files name them.
pub const CONVEX_KINDS: [&str; 6] =
    [REGRESSION, ALLOCATION, COUPLED, NETWORK_LASSO, ROBUST_CLASSIFICATION, ROBUST_REGRESSION];

/// The mark of the method that solves regressions, in the hash of their problems: peers with another method refuse each
/// other's messages.
const REGRESSION_METHOD: &[u8] = b"mingle regression 2";

/// The hash of a problem, by the text that all nodes share.
pub(super) fn hash(task: &ProblemTask, shared: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    if matches!(task, ProblemTask::Regression(_)) {
        hasher.update(REGRESSION_METHOD);
    }
    *hasher.update(shared.as_bytes()).finalize().as_bytes()
}
