//! The members from which a peer has the beginning of its training.

use serde::{Deserialize, Serialize};

/// Members whose models a peer begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelOf {
    /// Of three, the median of their models was taken.
    pub peers: Vec<String>,
}

/// A member with the state of whose training a peer begins, such as the moments of its optimizer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateOf {
    /// Its PeerId.
    pub peer: String,
}
