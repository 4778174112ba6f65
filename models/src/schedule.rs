//! Learning rates that change from round to round.
//!
//! With the learning rate `eta`, `W` rounds of warm-up and `R` rounds in all, the rate of round `t`, from 0, is
//!
//! ```text
//! t < W     eta * (t + 1) / (W + 1)                                      LinearLR(start_factor=1/(W+1), total_iters=W)
//! constant  eta
//! cosine    eta * (1 + cos(pi * (t - W) / (R - W))) / 2                  CosineAnnealingLR(T_max=R-W)
//! cosine:F  eta * (F + (1 - F) * (1 + cos(...)) / 2)                      CosineAnnealingLR(T_max=R-W, eta_min=F*eta)
//! step:E,F  eta * F^floor((t - W) / E)                                   StepLR(step_size=E, gamma=F)
//! ```
//!
//! The rate of the last round also holds after the end. On the right stands the name in PyTorch's
//! `torch.optim.lr_scheduler`, where `SequentialLR(milestones=[W])` puts the warm-up before the rest. The cosine is
//! that of Loshchilov and Hutter 2016 (arXiv:1608.03983), without restarts, down to 0 or to a share F of the rate.

use std::f64::consts::FRAC_PI_2;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The fall of the learning rate after the warm-up, as written by the user: `constant`, `cosine`, `cosine:FLOOR` or
/// `step:EVERY,FACTOR`.
///
/// ```
/// use mingle_models::Decay;
///
/// assert_eq!("step:100,0.5".parse::<Decay>()?, Decay::Step { every: 100, factor: 0.5 });
/// assert!("linear".parse::<Decay>().is_err());
/// # Ok::<(), mingle_models::RateScheduleError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Decay {
    /// The full rate in all rounds.
    #[default]
    Constant,
    /// Half a period of a cosine, nearly to its floor in the last round.
    Cosine {
        /// The share of the rate to which it falls; at least 0, less than 1.
        floor: f64,
    },
    /// A factor after every so many rounds.
    Step {
        /// Rounds between two steps; at least 1.
        every: u64,
        /// The factor by which the rate is multiplied; more than 0, less than 1.
        factor: f64,
    },
}

/// The learning rate of each round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRateSchedule {
    learning_rate: f64,
    decay: Decay,
    warmup: u64,
    rounds: u64,
}

/// Errors of parsing or making a schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RateScheduleError {
    /// The text names no schedule.
    #[error(
        "unknown schedule {0:?}: write constant, cosine, cosine:FLOOR such as cosine:0.1, or step:EVERY,FACTOR, such as step:100,0.5"
    )]
    Unknown(String),
    /// A cosine that would not lower the rate.
    #[error("cosine:{floor}: the floor is a share of the rate, at least 0 and below 1")]
    Floor {
        /// The share of the rate that was given.
        floor: f64,
    },
    /// A step that would not lower the rate.
    #[error("step:{every},{factor}: the rate falls after at least 1 round, by a factor above 0 and below 1")]
    Step {
        /// Rounds between two steps.
        every: u64,
        /// The factor by which the rate is multiplied.
        factor: f64,
    },
    /// The warm-up is as long as the run, or longer: the full rate would never be reached.
    #[error("{warmup} rounds of warm-up leave none of {rounds} rounds at the full rate")]
    Warmup { warmup: u64, rounds: u64 },
}

impl LearningRateSchedule {
    /// The rates of a run of `rounds` rounds, of which the first `warmup` are below the full `learning_rate`.
    ///
    /// # Errors
    ///
    /// [`RateScheduleError::Warmup`] where the warm-up does not end before the run.
    pub fn new(learning_rate: f64, decay: Decay, warmup: u64, rounds: u64) -> Result<Self, RateScheduleError> {
        if warmup > 0 && warmup >= rounds {
            return Err(RateScheduleError::Warmup { warmup, rounds });
        }
        Ok(Self { learning_rate, decay, warmup, rounds })
    }

    /// The learning rate in `round`, from 0: at least 0, at most the full one.
    pub fn rate(&self, round: u64) -> f64 {
        self.learning_rate * self.factor(round)
    }

    /// Returns `true` if the rate is the same in all rounds.
    pub fn is_constant(&self) -> bool {
        self.decay == Decay::Constant && self.warmup == 0
    }

    fn factor(&self, round: u64) -> f64 {
        let Self { decay, warmup, rounds, .. } = *self;
        let round = round.min(rounds.saturating_sub(1));
        if round < warmup {
            return (round + 1) as f64 / (warmup + 1) as f64;
        }
        match decay {
            Decay::Constant => 1.0,
            Decay::Cosine { floor } => {
                // (1 + cos x) / 2 = sin^2((pi - x) / 2), which has no rounding to 0 near the end.
                let left = (rounds - round) as f64 / (rounds - warmup) as f64;
                floor + (1.0 - floor) * (FRAC_PI_2 * left).sin().powi(2)
            }
            Decay::Step { every, factor } => factor.powf(((round - warmup) / every) as f64),
        }
    }
}

impl FromStr for Decay {
    type Err = RateScheduleError;

    fn from_str(text: &str) -> Result<Self, RateScheduleError> {
        let unknown = || RateScheduleError::Unknown(text.to_owned());
        match text {
            "constant" => Ok(Self::Constant),
            "cosine" => Ok(Self::Cosine { floor: 0.0 }),
            _ if text.starts_with("cosine:") => {
                let floor: f64 = text["cosine:".len()..].parse().map_err(|_| unknown())?;
                if (0.0..1.0).contains(&floor) {
                    Ok(Self::Cosine { floor })
                } else {
                    Err(RateScheduleError::Floor { floor })
                }
            }
            _ => {
                let (every, factor) =
                    text.strip_prefix("step:").and_then(|step| step.split_once(',')).ok_or_else(unknown)?;
                let every: u64 = every.parse().map_err(|_| unknown())?;
                let factor: f64 = factor.parse().map_err(|_| unknown())?;
                if every == 0 || !(factor > 0.0 && factor < 1.0) {
                    return Err(RateScheduleError::Step { every, factor });
                }
                Ok(Self::Step { every, factor })
            }
        }
    }
}

mingle_datasets::text_form!(Decay, RateScheduleError);

impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Cosine { floor: 0.0 } => f.write_str("cosine"),
            Self::Cosine { floor } => write!(f, "cosine:{floor}"),
            Self::Step { every, factor } => write!(f, "step:{every},{factor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn factors<const N: usize>(decay: &str, warmup: u64, rounds: u64, at: [u64; N]) -> [f64; N] {
        let schedule = LearningRateSchedule::new(0.5, decay.parse().unwrap(), warmup, rounds).unwrap();
        at.map(|round| schedule.rate(round) / 0.5)
    }

    fn assert_near<const N: usize>(found: [f64; N], wanted: [f64; N]) {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}, not {wanted:?}");
    }

    #[test]
    fn the_rate_rises_linearly_to_the_first_round_after_the_warmup() {
        assert_near(factors("constant", 4, 10, [0, 1, 3, 4, 9, 10]), [0.2, 0.4, 0.8, 1.0, 1.0, 1.0]);
        assert_near(factors("constant", 0, 1, [0, 1, u64::MAX]), [1.0; 3]);
    }

    #[test]
    fn the_cosine_begins_at_the_full_rate_is_half_way_at_half_time_and_positive_in_the_last_round() {
        let last = (1.0 + (0.9 * std::f64::consts::PI).cos()) / 2.0;
        assert_near(factors("cosine", 0, 10, [0, 5, 9, 10, u64::MAX]), [1.0, 0.5, last, last, last]);
        assert_near(factors("cosine", 2, 12, [1, 2, 7, 11, 12]), [2.0 / 3.0, 1.0, 0.5, last, last]);
        assert_near(factors("cosine:0.2", 2, 12, [1, 2, 7, 11]), [2.0 / 3.0, 1.0, 0.6, 0.2 + 0.8 * last]);
        let [first, end] = factors("cosine", 0, 1_000_000_000_000, [0, 999_999_999_999]);
        assert!(first == 1.0 && end > 0.0, "{end}");
    }

    #[test]
    fn steps_are_counted_from_the_end_of_the_warmup() {
        assert_near(factors("step:3,0.5", 0, 10, [0, 2, 3, 5, 6, 9, 10]), [1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 0.125]);
        assert_near(factors("step:3,0.5", 1, 10, [0, 1, 3, 4, 9]), [0.5, 1.0, 1.0, 0.5, 0.25]);
        assert_eq!(factors("step:1,0.1", 0, 2_000, [1_999]), [0.0], "it may come to nothing, and is a number");
    }

    #[test]
    fn every_schedule_reads_back_as_it_prints_and_what_is_none_is_refused() {
        for text in ["constant", "cosine", "cosine:0.1", "step:100,0.5", "step:1,0.001"] {
            assert_eq!(text.parse::<Decay>().unwrap().to_string(), text);
        }
        for text in ["", "Cosine", "cosine:", "step", "step:", "step:3", "step:-1,0.5", "step:3,x", "linear"] {
            assert_eq!(text.parse::<Decay>(), Err(RateScheduleError::Unknown(text.to_owned())), "{text}");
        }
        for text in ["step:0,0.5", "step:3,0", "step:3,1", "step:3,1.5", "step:3,-0.5", "step:3,NaN", "step:3,inf"] {
            assert!(matches!(text.parse::<Decay>(), Err(RateScheduleError::Step { .. })), "{text}");
        }
        for text in ["cosine:1", "cosine:-0.1", "cosine:NaN", "cosine:inf"] {
            assert!(matches!(text.parse::<Decay>(), Err(RateScheduleError::Floor { .. })), "{text}");
        }
        let refused = LearningRateSchedule::new(0.1, Decay::Constant, 10, 10).unwrap_err();
        assert_eq!(refused.to_string(), "10 rounds of warm-up leave none of 10 rounds at the full rate");
    }
}
