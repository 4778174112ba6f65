//! The state with which a peer begins or goes on with a training.

use mingle_protocol::NodeConfig;
use mingle_protocol::record::{HostState, Record, Recovered};
use tokio::sync::mpsc;

use crate::error::{Context, ErrorKind, Result};
use crate::place::Place;
use crate::records::{RecordStore, RecordWriter, Written};
use crate::timeline::Timeline;
use crate::training::LocalTraining;

/// The records that were found at a start, until they are prepared.
pub(super) struct FoundRecords {
    pub(super) store: RecordStore,
    /// Set when new records replace them.
    pub(super) is_superseded: bool,
    /// Set when they are made those of a longer run.
    pub(super) is_prolonged: bool,
}

/// The state that the run begins with, besides the configuration.
pub(super) struct Start {
    pub(super) store: Option<FoundRecords>,
    pub(super) records: Option<RecordWriter>,
    pub(super) written: Option<mpsc::Receiver<Written>>,
    pub(super) recovered: Option<Recovered>,
    /// The training's state of a run whose model the node takes along: of a replaced plan, or of the run that this one
    /// continues.
    pub(super) state_taken_along: Option<HostState>,
    /// The timeline of this process.
    pub(super) timeline: Timeline,
}

impl Start {
    /// Returns `true` if the others are further than the model that all begin with.
    pub(super) fn needs_a_model(&self, place: &Place) -> bool {
        self.is_the_first() && place.plan.first_round() > 0
    }

    /// Returns `true` if this home has no state of this training.
    pub(super) fn is_the_first(&self) -> bool {
        self.recovered.is_none() && self.state_taken_along.is_none()
    }

    /// The norm of the model that this start begins or goes on with.
    pub(super) fn norm(&self, config: &NodeConfig) -> f64 {
        self.recovered.as_ref().map_or_else(|| norm(&config.initial), |past| norm_of(&past.record))
    }

    /// Restores the training from its state in the records, which is empty if it has not trained yet. A state that was
    /// taken along may be of another optimizer: then it is left out, and a warning about that is returned.
    pub(super) fn restore(&mut self, training: &mut dyn LocalTraining) -> Result<Option<String>> {
        let mut restore = |state: &HostState| if state.is_empty() { Ok(()) } else { training.restore(state) };
        if let Some(Recovered { record, .. }) = &self.recovered {
            let doing = "the training cannot go on from the state in this peer's records";
            restore(&record.books.host).context(ErrorKind::Training, doing)?;
        }
        let unfit = self.state_taken_along.as_ref().and_then(|state| restore(state).err());
        if unfit.is_some() {
            self.state_taken_along = Some(HostState::default());
        }
        Ok(unfit.map(|failure| {
            format!("the model is taken along, but not the state of its optimizer, which does not fit this training: {failure}")
        }))
    }
}

pub(super) fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

/// The norm of the ratio in a record.
fn norm_of(record: &Record) -> f64 {
    let mass = record.books.mass.to_f64();
    match &record.ratio {
        Some(ratio) => norm(ratio),
        None if mass > 0.0 => norm(&record.numerator) / mass,
        None => norm(&record.numerator),
    }
}
