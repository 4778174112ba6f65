//! Variants of the nodes of a fault test.

use std::fmt;

use super::profile::{Profile, Scenario};
use crate::config::Robust;
use crate::injected_bug::InjectedBug;
use crate::overlap::TrainingOverlap;

/// The properties of a run's nodes that do not follow from the seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// A bug that every node has.
    pub injected_bug: Option<InjectedBug>,
    /// The treatment of ratios that come from neighbours, by all nodes.
    pub robust: Robust,
    /// Training of the next round while the present one is mixed, at all nodes.
    pub overlap: TrainingOverlap,
}

impl From<Option<InjectedBug>> for Variant {
    fn from(injected_bug: Option<InjectedBug>) -> Self {
        Self { injected_bug, ..Self::default() }
    }
}

impl fmt::Display for Variant {
    /// The end of a sentence on a run of such nodes: each property that is not the usual one; empty if all are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { injected_bug, robust, overlap } = self;
        injected_bug.map_or(Ok(()), |bug| write!(f, ", with {bug} injected"))?;
        if *robust != Robust::Off {
            write!(f, ", receiving with {robust}")?;
        }
        if *overlap != TrainingOverlap::Off {
            write!(f, ", with overlap {overlap}")?;
        }
        Ok(())
    }
}

impl Variant {
    /// The swarm of a seed with such nodes, and its faults.
    pub fn scenario(self, profile: Profile, seed: u64) -> Scenario {
        let mut scenario = Scenario::new(profile, seed);
        scenario.config.injected_bug = self.injected_bug;
        scenario.config.robust = self.robust;
        scenario.config.overlap = self.overlap;
        scenario
    }
}
