//! The quantity that a regression predicts: its name and standardisation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::{CardDifference, CardError};

/// The most bytes in the name of a column, a class or a quantity.
pub(crate) const NAME_MAX: usize = 256;

/// A quantity, which a model predicts as `(raw - mean) / deviation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Target {
    name: String,
    mean: Decimal,
    deviation: Decimal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    mean: Decimal,
    deviation: Decimal,
}

impl Target {
    /// A quantity of this name, mean and standard deviation.
    ///
    /// # Errors
    ///
    /// [`CardError::Target`] for a name that is not valid, and for numbers that are not finite or a deviation that is
    /// not positive.
    pub fn new(name: String, mean: f64, deviation: f64) -> Result<Self, CardError> {
        Unchecked { name, mean: Decimal::rounded(mean), deviation: Decimal::rounded(deviation) }.try_into()
    }

    /// The name of the quantity.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mean, over the data of the card.
    pub fn mean(&self) -> f64 {
        self.mean.value()
    }

    /// The standard deviation, over the data of the card; positive.
    pub fn deviation(&self) -> f64 {
        self.deviation.value()
    }

    /// The first difference between two quantities.
    pub(crate) fn difference(&self, there: &Self) -> Option<CardDifference> {
        let differ = |what: &str, here: &dyn fmt::Display, there: &dyn fmt::Display| CardDifference::Scaling {
            what: what.to_owned(),
            here: here.to_string(),
            there: there.to_string(),
        };
        if self.name != there.name {
            return Some(differ("the target", &self.name, &there.name));
        }
        if self.mean != there.mean {
            return Some(differ("the mean of the target", &self.mean, &there.mean));
        }
        (self.deviation != there.deviation)
            .then(|| differ("the deviation of the target", &self.deviation, &there.deviation))
    }

    /// The standardised value of `raw`: the output that a model should have.
    pub fn standardised(&self, raw: f64) -> f32 {
        ((raw - self.mean()) / self.deviation()) as f32
    }
}

impl TryFrom<Unchecked> for Target {
    type Error = CardError;

    fn try_from(target: Unchecked) -> Result<Self, CardError> {
        let Unchecked { name, mean, deviation } = target;
        if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(CardError::Target { why: "its name is empty, too long, or does not print" });
        }
        if !(mean.value().is_finite() && deviation.value().is_finite() && deviation.value() > 0.0) {
            return Err(CardError::Target { why: "mean and deviation must be finite, and the deviation positive" });
        }
        Ok(Self { name, mean, deviation })
    }
}
