//! Hostile members of a simulated swarm: they send false models, to measure the effect on the others.
//!
//! An attacker runs the production node and keeps its weight books honestly, so that the mass ledger stays exact. It
//! falsifies only the ratio of its parcels, and sends the same to all its out-neighbours.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mingle_protocol::{MAX_MAGNITUDE, NodeId, Payload};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use thiserror::Error;

/// The default number of standard deviations below the mean, as in the experiments of Baruch et al.
const USUAL_DEVIATIONS: f64 = 1.5;

/// The vector that an attacker sends instead of its own ratio z.
///
/// ```
/// use mingle_lab::simulation::Lie;
/// assert_eq!("scale:10".parse(), Ok(Lie::Scale(10.0)));
/// assert_eq!("little".parse::<Lie>().unwrap().to_string(), "little:1.5");
/// assert!("scale".parse::<Lie>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lie {
    /// -z.
    SignFlip,
    /// z times this.
    Scale(f64),
    /// In each coordinate, the mean of the honest ratios less this many of their standard deviations: "A little is enough"
    /// (Baruch, Baruch, Goldberg, NeurIPS 2019, arXiv 1902.06156). The attacker knows all honest ratios.
    Little(f64),
}

impl FromStr for Lie {
    type Err = UnknownLie;

    fn from_str(text: &str) -> Result<Self, UnknownLie> {
        let unknown = || UnknownLie(text.to_owned());
        let number = |value: &str| value.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(unknown);
        match text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value))) {
            ("sign-flip", None) => Ok(Self::SignFlip),
            ("scale", Some(factor)) => Ok(Self::Scale(number(factor)?)),
            ("little", None) => Ok(Self::Little(USUAL_DEVIATIONS)),
            ("little", Some(deviations)) => Ok(Self::Little(number(deviations)?)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignFlip => f.pad("sign-flip"),
            Self::Scale(factor) => write!(f, "scale:{factor}"),
            Self::Little(deviations) => write!(f, "little:{deviations}"),
        }
    }
}

/// An unknown attack.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no attack; there are sign-flip, scale:FACTOR and little[:DEVIATIONS]")]
pub struct UnknownLie(String);

/// The attackers of a swarm, and their lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attack {
    /// The vector that they send.
    pub lie: Lie,
    /// The number of attackers; the seed chooses them.
    pub attackers: usize,
}

/// The parcels that honest nodes received, and those that they clipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Received {
    /// Parcels from honest nodes.
    pub from_honest: u64,
    /// The parcels from honest nodes that were clipped.
    pub clipped_from_honest: u64,
    /// Parcels from attackers.
    pub from_attackers: u64,
    /// The parcels from attackers that were clipped.
    pub clipped_from_attackers: u64,
}

/// The nodes that attack, drawn from the seed.
pub(super) fn attackers(nodes: usize, count: usize, seed: u64) -> BTreeSet<NodeId> {
    let mut order: Vec<NodeId> = (0..nodes as u32).map(NodeId).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A stream of its own, apart from those of the data and the losses.
    rng.set_stream(2);
    order.shuffle(&mut rng);
    order.into_iter().take(count).collect()
}

/// The payload of an attacker with the ratio `own`; `honest` are the ratios of the others. Values too large for a
/// parcel are clamped.
pub(super) fn lie(lie: Lie, own: &[f32], honest: &[Arc<[f32]>]) -> Option<Payload> {
    let said: Vec<f32> = match lie {
        Lie::SignFlip => own.iter().map(|value| -value).collect(),
        Lie::Scale(factor) => own.iter().map(|value| (f64::from(*value) * factor) as f32).collect(),
        Lie::Little(deviations) => below_the_mean(honest, deviations),
    };
    let fits: Vec<f32> = said.iter().map(|value| value.clamp(-MAX_MAGNITUDE, MAX_MAGNITUDE)).collect();
    Payload::new(&fits).ok()
}

fn below_the_mean(models: &[Arc<[f32]>], deviations: f64) -> Vec<f32> {
    let n = models.len().max(1) as f64;
    let coordinate = |index: usize| {
        let values = || models.iter().map(|model| f64::from(model[index]));
        let mean = values().sum::<f64>() / n;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        (mean - deviations * variance.sqrt()) as f32
    };
    (0..models.first().map_or(0, |model| model.len())).map(coordinate).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_little_is_so_many_deviations_below_the_mean_of_the_honest() {
        let honest: [Arc<[f32]>; 2] = [Arc::from([1.0, 4.0]), Arc::from([3.0, 4.0])];
        assert_eq!(*lie(Lie::Little(1.5), &[9.0, 9.0], &honest).unwrap().values(), [0.5, 4.0]);
        assert_eq!(*lie(Lie::SignFlip, &[9.0, -8.0], &honest).unwrap().values(), [-9.0, 8.0]);
        assert_eq!(*lie(Lie::Scale(1e300), &[9.0, -8.0], &honest).unwrap().values(), [1e30, -1e30]);
    }

    #[test]
    fn the_seed_says_who_attacks() {
        for count in [0, 1, 2, 8] {
            assert_eq!(attackers(8, count, 3).len(), count);
            assert_eq!(attackers(8, count, 3), attackers(8, count, 3));
        }
        let others: BTreeSet<_> = (0..20).map(|seed| attackers(8, 1, seed)).collect();
        assert!(others.len() > 4);
    }
}
