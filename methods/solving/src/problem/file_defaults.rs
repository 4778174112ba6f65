//! Values that the files of several kinds of problems have where they say nothing.

use mingle_solver::DistanceMetric;
use serde::Deserialize;

/// The metric of a problem over cliques.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DistanceName {
    Identity,
    #[default]
    Memberships,
}

impl DistanceName {
    pub(super) fn metric(self) -> DistanceMetric {
        match self {
            Self::Identity => DistanceMetric::Identity,
            Self::Memberships => DistanceMetric::Memberships,
        }
    }
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn usual_tolerance() -> f64 {
    1e-10
}

pub(super) fn usual_iterations() -> u64 {
    20_000
}
