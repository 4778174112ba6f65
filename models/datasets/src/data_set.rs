//! The samples of a source, dealt out for training and evaluation.

use crate::{DataCard, Samples};

/// Samples to train on and samples to evaluate on, of one shape and the same classes.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// The samples that peers partition and train on.
    pub train: Samples,
    /// The held-out samples, on which no peer trains.
    pub test: Samples,
    /// The meaning of features and labels. Peers with different files compare their cards.
    pub card: DataCard,
}
