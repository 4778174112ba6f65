//! Vanilla D-PSGD (Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", 2017): all links,
//! symmetric weights.

use super::{Design, colored_step};
use crate::{mixing_matrix::MixingMatrix, topology::Topology};

/// Every edge of the topology in both directions with Metropolis-Hastings weights.
pub(super) fn design(topology: &Topology) -> Design {
    Design { step: colored_step(topology, MixingMatrix::metropolis_hastings(topology)), parameters: Vec::new() }
}
