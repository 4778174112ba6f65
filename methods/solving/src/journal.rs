//! The progress of a node's solution, for observers: written by the node's work, read by its host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::learning::RoundRecord;

/// Iterations whose residual is kept; a longer curve has no use.
const MOST_POINTS: usize = 1 << 20;

/// The progress so far.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// Iterations done.
    pub iterations: u64,
    /// The residual of each iteration: how far it moved the node.
    pub residuals: Vec<f64>,
    /// The largest residual of all nodes at the last check, and after which iteration that was.
    pub checked: Option<(u64, f64)>,
    /// Of a robust model, the duality gap at the last check.
    pub gap: Option<f64>,
    /// The solution so far.
    pub x: Vec<f64>,
    /// In learning in rounds, the record of the last round.
    pub round: Option<RoundRecord>,
    /// Set where an attempt goes on from an earlier round than this node has kept, until an observer takes it.
    pub went_back: Option<WentBack>,
}

/// A return to an earlier round than a node has kept, for which its work after that is done anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WentBack {
    /// The newest round that the node has kept, of this task and data or of others.
    pub kept: u64,
    /// The round that all go on from.
    pub to: u64,
}

/// A shared handle on the entries.
#[derive(Clone, Debug, Default)]
pub struct ProgressJournal(Arc<Mutex<Entries>>);

impl ProgressJournal {
    /// Locks the entries. Nothing that holds the lock panics.
    pub fn read(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an iteration: its residual and the solution after it.
    pub(crate) fn note(&self, residual: f64, x: &[f64]) {
        let mut entries = self.read();
        entries.iterations += 1;
        if entries.residuals.len() < MOST_POINTS {
            entries.residuals.push(residual);
        }
        entries.x.clear();
        entries.x.extend_from_slice(x);
    }

    /// Notes that so many rounds are over, and the record of the last one.
    pub(crate) fn note_rounds(&self, rounds: u64, record: Option<&RoundRecord>) {
        let mut entries = self.read();
        entries.iterations = rounds;
        entries.round = record.cloned();
    }

    /// Notes that the attempt goes on from the round `to`, and the newest that the node has kept.
    pub(crate) fn note_return(&self, kept: u64, to: u64) {
        if to < kept {
            self.read().went_back = Some(WentBack { kept, to });
        }
    }

    /// Notes the largest residual of all nodes, as the last check found it.
    pub(crate) fn note_check(&self, worst: f64) {
        let mut entries = self.read();
        entries.checked = Some((entries.iterations, worst));
    }

    /// Notes the duality gap of a robust model, as the last check found it.
    pub(crate) fn note_gap(&self, gap: f64) {
        self.read().gap = Some(gap);
    }
}
