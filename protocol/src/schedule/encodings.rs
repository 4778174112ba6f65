//! The codecs in which the parcels of a plan travel, and the bytes that they take.

use std::collections::BTreeMap;

use super::{NO_WEIGHT, NodeId, Schedule};
use crate::codec::Codec;
use crate::mass::{Mass, Share};

/// Parcels of one period, by the codec that they are sent in.
///
/// A node that keeps little of its weight sends in a finer codec than it is configured for, see
/// [`Codec::with_share_kept`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encodings {
    parcels: BTreeMap<Codec, u64>,
}

impl Encodings {
    /// Parcels by codec; codecs without any are left out.
    pub fn parcels(&self) -> &BTreeMap<Codec, u64> {
        &self.parcels
    }

    /// Bytes of the parameters in them, without headers, for models of `dimension` parameters.
    pub fn bytes(&self, dimension: usize) -> u64 {
        self.parcels.iter().map(|(codec, parcels)| parcels * codec.encoded_len(dimension) as u64).sum()
    }

    /// Bytes of the parameters in the longest of them, for models of `dimension` parameters. Keyframes are no part of it.
    pub fn longest(&self, dimension: usize) -> usize {
        self.parcels.keys().map(|codec| codec.encoded_len(dimension)).max().unwrap_or(0)
    }

    /// The number of parcels, and the number of those in `codec`.
    pub fn share_in(&self, codec: Codec) -> (u64, u64) {
        (self.parcels.values().sum(), self.parcels.get(&codec).copied().unwrap_or_default())
    }
}

impl Schedule {
    /// The most rounds from one exact average to the next, 1 where every round has one; `None` in plans without. A node
    /// that has the weight of all then hands its ratio down.
    pub fn rounds_between_exact_averages(&self) -> Option<u64> {
        self.rounds_between_exact_averages.get_or(|| {
            let rounds = self.period() / self.round_length();
            let averages: Vec<u64> = (0..rounds).filter(|round| self.averages_exactly(*round)).collect();
            let first = averages.first()?;
            let last = averages.last()?;
            let gaps = averages.windows(2).map(|pair| pair[1] - pair[0]);
            gaps.chain([first + rounds - last]).max()
        })
    }

    /// Returns `true` if a node hands the ratio of all down in this round of the period.
    fn averages_exactly(&self, round: u64) -> bool {
        let all = self.nodes as f64 * (1.0 - NO_WEIGHT);
        let mut steps = round * self.round_length()..(round + 1) * self.round_length();
        steps.any(|step| {
            let root = self.stationary[self.slot(step)].iter().position(|weight| *weight >= all);
            root.is_some_and(|root| self.hands_down(NodeId(root as u32), step))
        })
    }

    /// The share of its weight that `node` keeps in global step `step`.
    pub fn share_kept(&self, node: NodeId, step: u64) -> f64 {
        if !self.keeps(node, step) {
            return 0.0;
        }
        let sent: u64 = self.out_links(node, step).iter().map(|link| link.share.units()).sum();
        Mass::from_units(Share::WHOLE.units().saturating_sub(sent)).to_f64()
    }

    /// The codec in which `node` sends in global step `step` when it is configured for `codec`, once references are in
    /// common.
    fn codec_of(&self, node: NodeId, step: u64, codec: Codec) -> Codec {
        if codec.sends_differences() && self.hands_ratios_down() {
            return codec;
        }
        codec.of_wholes().with_share_kept(self.share_kept(node, step))
    }

    /// The parcels of `node` in a period when it is configured for `codec`.
    ///
    /// ```
    /// use mingle_protocol::{Codec, NodeId, Schedule, Step};
    /// let step = Step { keep: vec![0.5, 0.0], links: vec![(NodeId(0), NodeId(1), 0.5), (NodeId(1), NodeId(0), 1.0)] };
    /// let schedule = Schedule::new(2, &[step], 1)?;
    /// assert_eq!(schedule.encodings_of(NodeId(0), Codec::Int8).share_in(Codec::Int8), (1, 1));
    /// assert_eq!(schedule.encodings_of(NodeId(1), Codec::Int8).share_in(Codec::F32), (1, 1));
    /// assert_eq!(schedule.encodings(Codec::Int8).bytes(256), 260 + 1024);
    /// # Ok::<(), mingle_protocol::ScheduleError>(())
    /// ```
    pub fn encodings_of(&self, node: NodeId, codec: Codec) -> Encodings {
        let mut encodings = Encodings::default();
        for step in 0..self.period() {
            let parcels = self.out_links(node, step).len() as u64;
            if parcels > 0 {
                *encodings.parcels.entry(self.codec_of(node, step, codec)).or_default() += parcels;
            }
        }
        encodings
    }

    /// The parcels of all nodes in a period when all are configured for `codec`.
    pub fn encodings(&self, codec: Codec) -> Encodings {
        let mut all = Encodings::default();
        for node in 0..self.nodes {
            for (codec, parcels) in self.encodings_of(NodeId(node as u32), codec).parcels {
                *all.parcels.entry(codec).or_default() += parcels;
            }
        }
        all
    }
}
