//! Partition of one data set among peers, evenly or as unevenly as real peers hold data.
//!
//! Every sample goes to exactly one peer, and no peer is left without. A part that comes out empty receives one sample
//! of the largest part, which is possible as long as there are at least as many samples as peers.

use std::fmt;
use std::str::FromStr;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

use mingle_datasets::Samples;

/// The rule by which samples are partitioned, as written by the user.
///
/// | text | who gets what |
/// | --- | --- |
/// | `iid` | shuffled and dealt out: parts of equal size (up to one) which look alike |
/// | `label-sorted` | sorted by class and cut into parts of equal size (up to one): few classes each (McMahan et al. 2017) |
/// | `dirichlet:0.3` | each class divided by shares from a symmetric Dirichlet distribution: the smaller the number, the more uneven (Yurochkin et al. 2019) |
///
/// ```
/// use mingle_models::Split;
///
/// let labels = [0, 1, 0, 1, 0, 1];
/// let parts = "label-sorted".parse::<Split>()?.partition(&labels, 2, 7)?;
/// assert_eq!(parts, [vec![0, 2, 4], vec![1, 3, 5]]);
/// # Ok::<(), mingle_models::PartitionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Split {
    /// Shuffled and dealt out.
    #[default]
    Iid,
    /// Sorted by class and cut.
    LabelSorted,
    /// Each class divided by Dirichlet shares.
    Dirichlet {
        /// The concentration, from 0.001 to 1000: 0.1 is harsh, 100 nearly even.
        concentration: f64,
    },
}

/// Below, gamma variates vanish in double precision; above, shares are even.
const CONCENTRATIONS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;

impl Split {
    /// Divides `samples` among `nodes` peers; the indices in each part ascend. A text is cut into contiguous parts of
    /// equal size (up to one), in its order, whatever the split, because a model sees windows of it.
    ///
    /// # Errors
    ///
    /// Those of [`partition`](Self::partition).
    pub fn share_out(self, samples: &Samples, nodes: usize, seed: u64) -> Result<Vec<Vec<usize>>, PartitionError> {
        if !samples.is_text() {
            return self.partition(samples.labels(), nodes, seed);
        }
        if nodes == 0 || nodes > samples.len() {
            return Err(PartitionError::Nodes { nodes, samples: samples.len() });
        }
        Ok(even_cuts(&(0..samples.len()).collect::<Vec<_>>(), nodes))
    }

    /// Divides the samples with these `labels` among `nodes` peers; the indices in each part
    /// ascend.
    ///
    /// Equal arguments give equal parts. Time O(samples log samples + nodes * classes).
    ///
    /// # Errors
    ///
    /// [`PartitionError::Nodes`] when there are no peers or more peers than samples, and
    /// [`PartitionError::Concentration`] when the concentration is out of bounds.
    pub fn partition(self, labels: &[u16], nodes: usize, seed: u64) -> Result<Vec<Vec<usize>>, PartitionError> {
        if nodes == 0 || nodes > labels.len() {
            return Err(PartitionError::Nodes { nodes, samples: labels.len() });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.shuffle(&mut rng);
        let mut parts = match self {
            Self::Iid => even_cuts(&order, nodes),
            Self::LabelSorted => {
                // A stable sort: within a class the shuffled order stays.
                order.sort_by_key(|&sample| labels[sample]);
                even_cuts(&order, nodes)
            }
            Self::Dirichlet { concentration } => {
                order.sort_by_key(|&sample| labels[sample]);
                dirichlet(&order, labels, nodes, concentration, &mut rng)?
            }
        };
        fill_empty(&mut parts);
        for part in &mut parts {
            part.sort_unstable();
        }
        Ok(parts)
    }
}

/// Consecutive parts whose sizes differ by at most one.
fn even_cuts(order: &[usize], nodes: usize) -> Vec<Vec<usize>> {
    let cut = |node: usize| node * order.len() / nodes;
    (0..nodes).map(|node| order[cut(node)..cut(node + 1)].to_vec()).collect()
}

/// Divides each run of equal labels by its own Dirichlet shares.
fn dirichlet(
    order: &[usize],
    labels: &[u16],
    nodes: usize,
    concentration: f64,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Vec<usize>>, PartitionError> {
    let gamma = match Gamma::new(concentration, 1.0) {
        Ok(gamma) if CONCENTRATIONS.contains(&concentration) => gamma,
        _ => return Err(PartitionError::Concentration(concentration)),
    };
    let mut parts = vec![Vec::new(); nodes];
    for class in order.chunk_by(|&a, &b| labels[a] == labels[b]) {
        let shares = shares(nodes, &gamma, rng);
        let mut cumulative = 0.0;
        let mut start = 0;
        for (part, share) in parts.iter_mut().zip(&shares) {
            cumulative += share;
            let end = ((cumulative * class.len() as f64).round() as usize).clamp(start, class.len());
            part.extend_from_slice(&class[start..end]);
            start = end;
        }
        // Rounding may leave the cumulative share slightly below one.
        parts[nodes - 1].extend_from_slice(&class[start..]);
    }
    Ok(parts)
}

/// Dirichlet variates: independent gamma variates divided by their sum.
fn shares(nodes: usize, gamma: &Gamma<f64>, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut shares: Vec<f64> = (0..nodes).map(|_| gamma.sample(rng)).collect();
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
    } else {
        // All variates vanished, as they do for tiny concentrations: in that limit one peer holds everything.
        shares[rng.random_range(0..nodes)] = 1.0;
    }
    shares
}

/// Gives each empty part one sample of the largest part, the first of the largest on ties.
///
/// While a part is empty, the samples, at least as many as parts, fill fewer parts than there are;
/// so the largest has two or more and does not become empty in turn.
fn fill_empty(parts: &mut [Vec<usize>]) {
    while let Some(empty) = parts.iter().position(Vec::is_empty) {
        let mut largest = 0;
        for (node, part) in parts.iter().enumerate() {
            if part.len() > parts[largest].len() {
                largest = node;
            }
        }
        let Some(sample) = parts[largest].pop() else {
            return;
        };
        parts[empty].push(sample);
    }
}

/// Errors of parsing a split or partitioning samples.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum PartitionError {
    /// The text names no split.
    #[error("unknown split {0:?}: write iid, label-sorted or dirichlet:ALPHA, such as dirichlet:0.3")]
    Unknown(String),
    /// There are no peers, or more peers than samples.
    #[error("{samples} samples cannot be shared among {nodes} peers: each needs at least one")]
    Nodes { nodes: usize, samples: usize },
    /// The concentration is out of bounds.
    #[error("the Dirichlet concentration {0} must be from 0.001 to 1000")]
    Concentration(f64),
}

impl FromStr for Split {
    type Err = PartitionError;

    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let unknown = || PartitionError::Unknown(text.to_owned());
        match text {
            "iid" => Ok(Self::Iid),
            "label-sorted" => Ok(Self::LabelSorted),
            _ => {
                let number = text.strip_prefix("dirichlet:").ok_or_else(unknown)?;
                let concentration: f64 = number.parse().map_err(|_| unknown())?;
                if !CONCENTRATIONS.contains(&concentration) {
                    return Err(PartitionError::Concentration(concentration));
                }
                Ok(Self::Dirichlet { concentration })
            }
        }
    }
}

mingle_datasets::text_form!(Split, PartitionError);

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iid => f.write_str("iid"),
            Self::LabelSorted => f.write_str("label-sorted"),
            Self::Dirichlet { concentration } => write!(f, "dirichlet:{concentration}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn split() -> impl Strategy<Value = Split> {
        prop_oneof![
            Just(Split::Iid),
            Just(Split::LabelSorted),
            (-3.0f64..3.0).prop_map(|exponent| Split::Dirichlet { concentration: 10f64.powf(exponent) }),
        ]
    }

    proptest! {
        #[test]
        fn every_sample_goes_to_exactly_one_peer_and_no_peer_is_left_without(
            split in split(),
            labels in prop::collection::vec(0u16..7, 1..200),
            nodes_percent in 0usize..=100,
            seed: u64,
        ) {
            let nodes = 1 + (labels.len() - 1) * nodes_percent / 100;
            let parts = split.partition(&labels, nodes, seed).unwrap();
            prop_assert_eq!(parts.len(), nodes);
            prop_assert!(parts.iter().all(|part| !part.is_empty() && part.is_sorted()));
            let mut all: Vec<usize> = parts.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..labels.len()).collect::<Vec<_>>());
            prop_assert_eq!(parts, split.partition(&labels, nodes, seed).unwrap());
        }

        #[test]
        fn even_splits_differ_by_at_most_one_sample(
            sorted: bool, samples in 1usize..300, nodes in 1usize..40, seed: u64,
        ) {
            prop_assume!(nodes <= samples);
            let labels: Vec<u16> = (0..samples).map(|sample| (sample % 5) as u16).collect();
            let split = if sorted { Split::LabelSorted } else { Split::Iid };
            let parts = split.partition(&labels, nodes, seed).unwrap();
            let largest = parts.iter().map(Vec::len).max().unwrap();
            prop_assert!(parts.iter().all(|part| part.len() + 1 >= largest));
        }
    }

    /// Half the summed distance between the parts' class shares and those of the whole, averaged
    /// over parts: 0 when all parts look alike, towards 1 when each holds one class of many.
    fn skew(parts: &[Vec<usize>], labels: &[u16]) -> f64 {
        let classes = usize::from(*labels.iter().max().unwrap()) + 1;
        let shares = |samples: &[usize]| {
            let mut shares = vec![0.0; classes];
            for &sample in samples {
                shares[usize::from(labels[sample])] += 1.0 / samples.len() as f64;
            }
            shares
        };
        let whole = shares(&(0..labels.len()).collect::<Vec<_>>());
        let distance =
            |part: &Vec<usize>| -> f64 { shares(part).iter().zip(&whole).map(|(a, b)| (a - b).abs() / 2.0).sum() };
        parts.iter().map(distance).sum::<f64>() / parts.len() as f64
    }

    #[test]
    fn splits_are_as_uneven_as_they_say() {
        let labels: Vec<u16> = (0..2_000).map(|sample| (sample % 10) as u16).collect();
        let skew_of = |text: &str| skew(&text.parse::<Split>().unwrap().partition(&labels, 10, 3).unwrap(), &labels);
        let skews = [skew_of("iid"), skew_of("dirichlet:1"), skew_of("dirichlet:0.1"), skew_of("label-sorted")];
        assert!(skews.is_sorted(), "{skews:?}");
        // A large concentration divides each class evenly; dealing out does so only on average.
        assert!(skew_of("dirichlet:1000") < skews[0]);
        assert!(skews[0] < 0.12 && skews[3] > 0.89, "{skews:?}");
    }

    #[test]
    fn splits_read_back_as_they_print_and_impossible_ones_are_refused() {
        for text in ["iid", "label-sorted", "dirichlet:0.3", "dirichlet:1000"] {
            assert_eq!(text.parse::<Split>().unwrap().to_string(), text);
        }
        for text in ["", "dirichlet", "dirichlet:", "dirichlet:x", "sorted"] {
            assert_eq!(text.parse::<Split>(), Err(PartitionError::Unknown(text.into())));
        }
        for (text, value) in [("dirichlet:0", 0.0), ("dirichlet:-1", -1.0), ("dirichlet:inf", f64::INFINITY)] {
            assert_eq!(text.parse::<Split>(), Err(PartitionError::Concentration(value)));
        }
        let error = Split::Iid.partition(&[0, 1], 3, 0);
        assert_eq!(error, Err(PartitionError::Nodes { nodes: 3, samples: 2 }));
        assert!(Split::Iid.partition(&[], 0, 0).is_err());
    }
}
