//! The end of a peer's run, as its trainer is told of it.

use std::sync::Arc;

use mingle_peer::{Error, ErrorKind};

use crate::error::{Reason, Refusal};

/// The end of the peer's run.
#[derive(Clone, Debug)]
pub(crate) enum RunEnd {
    /// The model, `[dimension]`, after so many rounds; the peer was stopped before its last round where `was_stopped`.
    Model {
        vector: Arc<[f32]>,
        rounds: u64,
        was_stopped: bool,
    },
    Failure {
        kind: ErrorKind,
        message: String,
        hint: Option<String>,
    },
}

impl RunEnd {
    /// The refusal for a call after the end that does not fetch the final model.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::Model { rounds, was_stopped: true, .. } => {
                Refusal::conflict(Reason::Over, format!("the peer was stopped after {rounds} rounds"))
                    .hint("start it again with the same command: it goes on from there")
            }
            Self::Model { rounds, .. } => {
                Refusal::conflict(Reason::Over, format!("the run is over, after {rounds} rounds"))
            }
            Self::Failure { kind, message, hint } => {
                let error = Error::new(*kind, message.clone());
                Refusal::gone(match hint {
                    Some(hint) => error.hint(hint.clone()),
                    None => error,
                })
            }
        }
    }
}
