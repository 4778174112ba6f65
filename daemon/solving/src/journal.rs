//! How a node's solution goes, for whoever watches: written by its work, read by its host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::learning::RoundRecord;

/// Iterations of which the residual is kept: a curve of more has no use.
const MOST_POINTS: usize = 1 << 20;

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// Iterations done.
    pub iterations: u64,
    /// How far each moved the node: its residual, by iteration.
    pub residuals: Vec<f64>,
    /// The largest residual of all nodes at the last check, and after which iteration that was.
    pub checked: Option<(u64, f64)>,
    /// The solution so far.
    pub x: Vec<f64>,
    /// Where something is learned in rounds: how good it was after the last one.
    pub round: Option<RoundRecord>,
}

/// A handle on them.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Entries>>);

impl Journal {
    /// What is there. Nothing that holds the lock panics.
    pub fn read(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An iteration is over.
    pub(crate) fn note(&self, residual: f64, x: &[f64]) {
        let mut entries = self.read();
        entries.iterations += 1;
        if entries.residuals.len() < MOST_POINTS {
            entries.residuals.push(residual);
        }
        entries.x.clear();
        entries.x.extend_from_slice(x);
    }

    /// So many rounds are over, and this is what the last one brought.
    pub(crate) fn note_rounds(&self, rounds: u64, record: Option<&RoundRecord>) {
        let mut entries = self.read();
        entries.iterations = rounds;
        entries.round = record.cloned();
    }

    /// All nodes know how far the one moved that moved most.
    pub(crate) fn note_check(&self, worst: f64) {
        let mut entries = self.read();
        entries.checked = Some((entries.iterations, worst));
    }
}
