//! The end of solving a problem.

use serde::{Deserialize, Serialize};

/// A problem that is solved, or was given up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolvedProblem {
    /// Iterations done.
    pub iterations: u64,
    /// `true` if the last step, or the duality gap of a robust model, is within the tolerance.
    pub converged: bool,
    /// The objective of the whole problem.
    pub objective: f64,
    /// Of a robust model, the duality gap: no model within reach is better by more.
    pub gap: Option<f64>,
    /// By how much the optimality conditions are violated.
    pub kkt: f64,
    /// By how much a constraint is violated, or two peers differ.
    pub violation: f64,
    /// Seconds since the process started.
    pub seconds: f64,
    /// Payload and control bytes written to all links.
    pub sent_bytes: u64,
    /// The largest resident memory of the process, where the system reports it.
    pub peak_resident_bytes: Option<u64>,
}
