//! The choice of a codec: one that was asked for, or the one that suits the plan.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::codec::Codec;
use crate::schedule::Schedule;

/// The most rounds from one exact average to the next under which [`CodecChoice::Auto`] sends differences: as many as
/// periodic averages have where the planner chooses. Over longer periods differences grow, and the error of few bits with
/// them (`docs/communication.md`).
pub const LONGEST_CODED_PERIOD: u64 = 8;

/// The choice of a codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodecChoice {
    /// [`Codec::Int4`] where the plan gives all nodes a reference often enough, else [`Codec::F32`].
    #[default]
    Auto,
    /// This codec, whatever the plan.
    Fixed(Codec),
}

/// A chosen codec, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenCodec {
    /// The codec.
    pub codec: Codec,
    /// The reason.
    pub reason: CodecReason,
}

/// The reason for which a codec was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecReason {
    /// It was asked for.
    Asked,
    /// The plan has exact averages, so differences to them can be sent.
    ExactAverages,
    /// The plan has no exact averages, or none that one node hands to all: then the bits of their averages differ.
    NoExactAverages,
    /// There are so many rounds from one exact average to the next.
    LongPeriod {
        /// The most rounds.
        rounds: u64,
    },
    /// Nothing is trained: nodes average what they have, as exactly as they can.
    NoTraining,
    /// The model is so small that int4 is no shorter.
    FewParameters,
}

impl CodecChoice {
    /// The codec for models of `dimension` parameters under this schedule. It depends on nothing else, so the same run
    /// gives the same bits.
    ///
    /// ```
    /// use mingle_protocol::{Codec, CodecChoice, CodecReason, NodeId, Schedule, Step};
    /// let gossip = Step { keep: vec![0.5; 2], links: vec![(NodeId(0), NodeId(1), 0.5), (NodeId(1), NodeId(0), 0.5)] };
    /// let chosen = CodecChoice::Auto.under(&Schedule::new(2, &[gossip], 1)?, 1000);
    /// assert_eq!((chosen.codec, chosen.reason), (Codec::F32, CodecReason::NoExactAverages));
    /// # Ok::<(), mingle_protocol::ScheduleError>(())
    /// ```
    pub fn under(self, schedule: &Schedule, dimension: usize) -> ChosenCodec {
        let coded = Codec::Int4;
        let reason = match (self, schedule.rounds_between_exact_averages()) {
            (Self::Fixed(codec), _) => return ChosenCodec { codec, reason: CodecReason::Asked },
            (Self::Auto, None) => CodecReason::NoExactAverages,
            (Self::Auto, Some(rounds)) if rounds > LONGEST_CODED_PERIOD => CodecReason::LongPeriod { rounds },
            (Self::Auto, Some(_)) if schedule.local_steps() == 0 => CodecReason::NoTraining,
            (Self::Auto, Some(_)) if coded.encoded_len(dimension) >= Codec::F32.encoded_len(dimension) => {
                CodecReason::FewParameters
            }
            (Self::Auto, Some(_)) => return ChosenCodec { codec: coded, reason: CodecReason::ExactAverages },
        };
        ChosenCodec { codec: Codec::F32, reason }
    }
}

impl ChosenCodec {
    /// A codec that was asked for.
    pub const fn asked(codec: Codec) -> Self {
        Self { codec, reason: CodecReason::Asked }
    }

    /// The reason in words, where the codec was chosen by `auto`.
    pub fn reason(&self) -> Option<String> {
        (self.reason != CodecReason::Asked).then(|| self.reason.to_string())
    }
}

impl From<Codec> for CodecChoice {
    fn from(codec: Codec) -> Self {
        Self::Fixed(codec)
    }
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Fixed(codec) => codec.fmt(f),
        }
    }
}

impl fmt::Display for CodecReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("as asked"),
            Self::ExactAverages => f.write_str("auto, since the plan has exact averages"),
            Self::NoExactAverages => f.write_str("auto, since no node of the plan hands an exact average to all"),
            Self::LongPeriod { rounds } => {
                write!(f, "auto, since exact averages are {rounds} rounds apart, more than {LONGEST_CODED_PERIOD}")
            }
            Self::NoTraining => f.write_str("auto, since nothing is trained"),
            Self::FewParameters => f.write_str("auto, since the model has few parameters"),
        }
    }
}

/// A name that no choice of a codec has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is no codec; there are f32, f16, bf16, int8, int4 and int3, and auto for what suits the plan")]
pub struct UnknownCodecChoice {
    /// The name given.
    pub name: String,
}

impl FromStr for CodecChoice {
    type Err = UnknownCodecChoice;

    fn from_str(name: &str) -> Result<Self, UnknownCodecChoice> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        name.parse().map(Self::Fixed).map_err(|_| UnknownCodecChoice { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::{NodeId, Step};

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    /// So many rounds of gossip, then one whose two steps average exactly at `A`, if `is_exact`.
    fn schedule(gossip: usize, is_exact: bool) -> Schedule {
        with_local_steps(gossip, is_exact, 1)
    }

    fn with_local_steps(gossip: usize, is_exact: bool, local_steps: u32) -> Schedule {
        let idle = Step { keep: vec![1.0; 2], links: Vec::new() };
        let mixing = Step { keep: vec![0.5; 2], links: vec![(A, B, 0.5), (B, A, 0.5)] };
        let up = Step { keep: vec![1.0, 0.0], links: vec![(B, A, 1.0)] };
        let down = Step { keep: vec![0.5, 1.0], links: vec![(A, B, 0.5)] };
        let mut steps: Vec<Step> = (0..gossip).flat_map(|_| [mixing.clone(), idle.clone()]).collect();
        steps.extend(if is_exact { [up, down] } else { [mixing, idle] });
        Schedule::new(2, &steps, local_steps).unwrap().with_round_length(2).unwrap()
    }

    fn auto(schedule: &Schedule, dimension: usize) -> (Codec, CodecReason) {
        let chosen = CodecChoice::Auto.under(schedule, dimension);
        (chosen.codec, chosen.reason)
    }

    #[test]
    fn auto_sends_four_bits_where_exact_averages_are_near_each_other_and_f32_elsewhere() {
        let longest = usize::try_from(LONGEST_CODED_PERIOD).unwrap();
        for gossip in 0..longest + 4 {
            let rounds = gossip as u64 + 1;
            let exact = schedule(gossip, true);
            assert_eq!(exact.rounds_between_exact_averages(), Some(rounds));
            let expected = if gossip < longest {
                (Codec::Int4, CodecReason::ExactAverages)
            } else {
                (Codec::F32, CodecReason::LongPeriod { rounds })
            };
            assert_eq!(auto(&exact, 1000), expected, "{gossip} rounds of gossip");
            assert_eq!(auto(&schedule(gossip, false), 1000), (Codec::F32, CodecReason::NoExactAverages));
        }
    }

    #[test]
    fn auto_never_sends_more_bytes_than_f32() {
        let exact = schedule(0, true);
        for dimension in 1..600 {
            let (codec, reason) = auto(&exact, dimension);
            assert!(codec.encoded_len(dimension) <= 4 * dimension, "{dimension} parameters in {codec}");
            assert_eq!(codec == Codec::F32, reason == CodecReason::FewParameters, "{dimension}");
        }
        assert_eq!(auto(&exact, 34).0, Codec::Int4);
    }

    #[test]
    fn auto_leaves_f32_to_plans_that_only_average() {
        assert_eq!(auto(&with_local_steps(0, true, 0), 1000), (Codec::F32, CodecReason::NoTraining));
    }

    #[test]
    fn a_codec_that_is_asked_for_is_taken_under_any_plan() {
        for codec in Codec::ALL {
            let choice: CodecChoice = codec.name().parse().unwrap();
            for schedule in [schedule(0, true), schedule(20, true), schedule(0, false)] {
                assert_eq!(choice.under(&schedule, 1), ChosenCodec::asked(codec));
            }
            assert_eq!(choice.to_string(), codec.name());
        }
        assert_eq!("auto".parse(), Ok(CodecChoice::Auto));
        assert!("int2".parse::<CodecChoice>().unwrap_err().to_string().contains("int4 and int3, and auto"));
    }
}
