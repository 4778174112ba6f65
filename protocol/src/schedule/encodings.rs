//! The codecs in which the parcels of a plan travel, and the bytes that they take.

use std::collections::BTreeMap;

use super::{NodeId, Schedule};
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

    /// The number of parcels, and the number of those in `codec`.
    pub fn share_in(&self, codec: Codec) -> (u64, u64) {
        (self.parcels.values().sum(), self.parcels.get(&codec).copied().unwrap_or_default())
    }
}

impl Schedule {
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
