//! Errors of a client.

use thiserror::Error;

use crate::collaboration::CollaborationError;
use crate::signature::SignatureError;

/// Errors of making, training and restoring a client.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ClientError {
    /// There are fewer than two classes.
    #[error("there are {classes} classes: nodes can be told apart where there are two or more")]
    Classes { classes: usize },
    /// There is no node to train on.
    #[error("no node with a label is there to train on: a client needs three labelled nodes at least")]
    NoTraining,
    /// A setting is out of bounds.
    #[error("{option} is {value}, and has to be {bounds}")]
    Option { option: &'static str, value: f64, bounds: &'static str },
    /// The parameters have the wrong length.
    #[error("the network has {expected} parameters, not {found}")]
    Parameters { expected: usize, found: usize },
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// The bytes are no state of this client.
    #[error("the state is none of this client")]
    State,
    /// Signatures could not be made.
    #[error(transparent)]
    Signatures(#[from] SignatureError),
    /// Weights could not be made.
    #[error(transparent)]
    Collaboration(#[from] CollaborationError),
}
