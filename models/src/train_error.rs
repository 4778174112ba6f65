//! Errors of training.

use mingle_datasets::{Objective, SampleShape};

use crate::task::{Task, TaskError};

/// Errors of training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TrainError {
    /// There is nothing to train on.
    #[error("this peer has no samples to train on: give it data or fewer peers to share with")]
    NoSamples,
    /// There are more samples than can be counted.
    #[error("{0} samples are too many for one peer: 4294967295 are possible")]
    TooManySamples(usize),
    /// A text is too short for one window.
    #[error(
        "this peer has {tokens} tokens of text: windows of {context} need at least one more than that. Give it more, or the model a smaller context"
    )]
    ShortText { tokens: usize, context: usize },
    /// A step would not fit in memory.
    #[error(
        "a step on {batch_size} windows of {context} tokens keeps {activations} numbers, more than {}: take a smaller batch",
        Task::ACTIVATIONS_MAX
    )]
    Memory { batch_size: usize, context: usize, activations: usize },
    /// The samples are not the ones the task is for.
    #[error(
        "the task is for samples of shape {expected} and {expected_objective}, but these have shape {found} and {found_objective}"
    )]
    Mismatch { expected: SampleShape, expected_objective: Objective, found: SampleShape, found_objective: Objective },
    /// A setting is out of bounds.
    #[error("{option} = {value} must be {bounds}")]
    Option { option: &'static str, value: f64, bounds: &'static str },
    /// A text has no samples that count by themselves.
    #[error("windows of a text overlap, so there is no gradient of a single sample: take a model of rows or images")]
    NoSingleSamples,
    /// The parameters are not the task's.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The bytes are no state of a trainer.
    #[error("the training cannot go on from this state: {0}")]
    State(String),
    /// The device failed.
    #[error("the device failed while training: {0}")]
    Device(String),
}
