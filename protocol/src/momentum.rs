//! Momentum across rounds: a transform of a node's change at its host, of which nothing is on the wire.
//!
//! ```text
//!   y = z + d / w                        the model after the local steps, which changed the numerator by d
//!   change = d + w gamma (y - y_prev)    y_prev: the same a round before
//! ```
//!
//! Momentum follows the movement of the mixed model rather than that of a node's own changes: quasi-global momentum (Lin
//! et al., arXiv:2102.04761). It is a part of the change, which the node counts as any other. `w` is the weight of the
//! node in a settled swarm, so that the models of all nodes move alike.
//!
//! A plan bears momentum up to a limit, which depends on its matrices: beyond it, differences between nodes grow. The
//! host knows the limit from the planner.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The momentum of [`MomentumAcrossRounds::Auto`] where the plan bears it. 0.8 lowers the loss further where local steps are
/// small, and raises it where they are as large as training bears (docs/communication.md).
pub const USUAL_MOMENTUM: f64 = 0.4;

/// The part of a plan's limit that [`MomentumAcrossRounds::Auto`] takes at most: at the limit itself, differences between
/// nodes take for ever to go.
const PART_OF_THE_LIMIT: f64 = 0.9;

/// The choice of a momentum across rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MomentumAcrossRounds {
    /// None.
    #[default]
    Off,
    /// [`USUAL_MOMENTUM`], or nine tenths of the limit of the plan where that is less.
    Auto,
    /// This momentum, from 0 to below 1.
    Factor(f64),
}

/// A text that names no momentum.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no momentum across rounds: give off, auto, or a number from 0 to below 1")]
pub struct UnknownMomentum {
    /// The text.
    pub text: String,
}

/// The reason why a plan does not bear a momentum.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MomentumError {
    /// It is above the limit.
    #[error(
        "a momentum across rounds of {momentum} is too much for this plan: above {limit}, the differences between peers \
         grow from round to round"
    )]
    AboveLimit { momentum: f64, limit: f64 },
    /// The limit is not known.
    #[error("the largest momentum across rounds that this plan bears is not known: {reason}")]
    UnknownLimit { reason: String },
}

impl MomentumAcrossRounds {
    /// The momentum under a plan with this limit, which is computed only if it is needed.
    ///
    /// ```
    /// use mingle_protocol::MomentumAcrossRounds as Momentum;
    ///
    /// assert_eq!(Momentum::Auto.under(|| Ok::<_, String>(0.99))?, 0.4);
    /// let refused = Momentum::Factor(0.8).under(|| Ok::<_, String>(0.61)).unwrap_err();
    /// assert!(refused.to_string().contains("above 0.61"));
    /// # Ok::<(), mingle_protocol::MomentumError>(())
    /// ```
    ///
    /// # Errors
    /// The limit is lower, or not known where there is to be momentum.
    pub fn under<E: fmt::Display>(self, limit: impl FnOnce() -> Result<f64, E>) -> Result<f64, MomentumError> {
        if matches!(self, Self::Off | Self::Factor(0.0)) {
            return Ok(0.0);
        }
        let limit = limit().map_err(|reason| MomentumError::UnknownLimit { reason: reason.to_string() })?;
        match self {
            Self::Factor(momentum) if momentum > limit => Err(MomentumError::AboveLimit { momentum, limit }),
            Self::Factor(momentum) => Ok(momentum),
            Self::Auto | Self::Off => Ok(USUAL_MOMENTUM.min(PART_OF_THE_LIMIT * limit)),
        }
    }

    /// The largest momentum up to this choice that a later plan with this limit bears; 0 where that is not known.
    pub fn lowered_to<E: fmt::Display>(self, limit: impl FnOnce() -> Result<f64, E>) -> f64 {
        match self.under(limit) {
            Ok(momentum) => momentum,
            Err(MomentumError::AboveLimit { limit, .. }) => limit,
            Err(MomentumError::UnknownLimit { .. }) => 0.0,
        }
    }
}

impl fmt::Display for MomentumAcrossRounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.pad("off"),
            Self::Auto => f.pad("auto"),
            Self::Factor(momentum) => momentum.fmt(f),
        }
    }
}

impl FromStr for MomentumAcrossRounds {
    type Err = UnknownMomentum;

    fn from_str(text: &str) -> Result<Self, UnknownMomentum> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(momentum) if (0.0..1.0).contains(&momentum) => Ok(Self::Factor(momentum)),
                _ => Err(UnknownMomentum { text: text.to_owned() }),
            },
        }
    }
}

/// The most rounds between two trainings of a node over which its movement counts: a node that was away for longer begins
/// anew.
const MOST_ROUNDS_APART: u64 = 8;

/// A round's training, to which momentum is added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainedRound {
    /// Its number in the whole run.
    pub number: u64,
    /// The factor by which the node will multiply the change because fewer local steps were taken than ordered
    /// ([`pace_factor`](crate::pace_factor)). It is not to multiply the momentum.
    pub pace: f64,
}

/// The momentum of one round on one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentumStep {
    /// `gamma`; 0 for none.
    pub momentum: f64,
    /// The weight of the node in a settled swarm when the round begins, more than 0.
    pub weight: f64,
    /// Set if the model is another than the one that this node went on with: its movement so far is of no use.
    pub restarts: bool,
}

impl Default for MomentumStep {
    fn default() -> Self {
        Self { momentum: 0.0, weight: 1.0, restarts: false }
    }
}

/// The state of momentum on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MomentumState {
    /// The round before, and `y_prev`, the model after its local steps, `[dimension]`; `None` before the first round.
    previous: Option<(u64, Vec<f32>)>,
}

impl MomentumState {
    /// The state after this round, with this model after its local steps.
    pub fn after(round: u64, model: Vec<f32>) -> Self {
        Self { previous: Some((round, model)) }
    }

    /// The number of the round before, and the model after its local steps, `[dimension]`.
    pub fn previous(&self) -> Option<(u64, &[f32])> {
        self.previous.as_ref().map(|(round, model)| (*round, &model[..]))
    }

    /// Adds the momentum to the `change` of a round that began at the ratio `from`; both are `[dimension]`. The first
    /// round begins with the movement of its own local steps: `y_prev = z`. A change that is not finite, which no node
    /// takes, is left as it is.
    pub fn add_to(&mut self, change: &mut [f32], from: &[f32], round: TrainedRound, step: MomentumStep) {
        let MomentumStep { momentum, weight, restarts } = step;
        if momentum == 0.0 {
            self.previous = None;
            return;
        }
        if !change.iter().all(|value| value.is_finite()) {
            return self.stay_at(from, round.number);
        }
        let reach = round.pace / weight;
        let gain = momentum / reach;
        let is_of_use = |(number, model): &(u64, Vec<f32>)| {
            !restarts && round.number.abs_diff(*number) <= MOST_ROUNDS_APART && model.len() == from.len()
        };
        let mut previous = self.previous.take().filter(is_of_use).map_or_else(|| from.to_vec(), |(_, model)| model);
        for ((change, from), previous) in change.iter_mut().zip(from).zip(&mut previous) {
            let reached = f64::from(*from) + reach * f64::from(*change);
            *change = (f64::from(*change) + gain * (reached - f64::from(*previous))) as f32;
            *previous = reached as f32;
        }
        self.previous = Some((round.number, previous));
    }

    /// Takes note of a round in which the node stayed at `from`, without local steps and without momentum.
    pub fn stay_at(&mut self, from: &[f32], round: u64) {
        if let Some((number, model)) = &mut self.previous {
            *number = round;
            model.clear();
            model.extend_from_slice(from);
        }
    }
}
