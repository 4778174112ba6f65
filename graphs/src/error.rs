//! What can be wrong with a client.

use thiserror::Error;

use crate::aggregation::AggregationError;
use crate::collaboration::CollaborationError;
use crate::signature::SignatureError;

/// Why a client cannot learn.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClientError {
    /// There are no classes to tell apart.
    #[error("there are {classes} classes: nodes can be told apart where there are two or more")]
    Classes {
        /// How many there are.
        classes: usize,
    },
    /// There is no node to train on.
    #[error("no node with a label is there to train on: a client needs three labelled nodes at least")]
    NoTraining,
    /// A setting is out of bounds.
    #[error("{option} is {value}, and has to be {bounds}")]
    Option {
        /// Which one.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        bounds: &'static str,
    },
    /// Parameters of another network.
    #[error("the network has {expected} parameters, not {found}")]
    Parameters {
        /// As many as it has.
        expected: usize,
        /// As many as there are.
        found: usize,
    },
    /// The device fails.
    #[error("the device failed: {0}")]
    Device(String),
    /// A state of something else.
    #[error("the state is none of this client")]
    State,
    /// Signatures.
    #[error(transparent)]
    Signatures(#[from] SignatureError),
    /// Weights.
    #[error(transparent)]
    Collaboration(#[from] CollaborationError),
    /// Parameters of others.
    #[error(transparent)]
    Aggregation(#[from] AggregationError),
}
