//! Vanilla D-PSGD (Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", 2017): all links,
//! symmetric weights.

use super::{Design, DesignRequest};
use crate::mixing_matrix::MixingMatrix;

/// Every edge of the topology in both directions with Metropolis-Hastings weights.
pub(super) fn design(request: &DesignRequest<'_>) -> Design {
    Design::fixed(request.scheduled_step(MixingMatrix::metropolis_hastings(request.topology)))
}
