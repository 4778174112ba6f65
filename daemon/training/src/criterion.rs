//! By which metric models are compared, and which direction is better.

use std::fmt;
use std::str::FromStr;

use mingle_home::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::Metrics;

/// Whether a metric is better when it is larger or smaller; `max` and `min` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The larger the better, such as an accuracy.
    Max,
    /// The smaller the better, such as a loss.
    Min,
}

/// Metrics that are better when they are larger: whole names, or what names end in behind a `_`.
const LARGER_IS_BETTER: [&str; 13] =
    ["accuracy", "acc", "r2", "f1", "auc", "auroc", "precision", "recall", "iou", "dice", "bleu", "map", "score"];
/// The same for those that are better when they are smaller.
const SMALLER_IS_BETTER: [&str; 11] =
    ["loss", "mse", "rmse", "mae", "mape", "error", "perplexity", "nll", "wer", "bits_per_character", "bits_per_byte"];

impl Direction {
    /// The direction of a metric whose name is a usual one, such as `loss` or `val_accuracy`; none for others.
    ///
    /// ```
    /// use mingle_training::Direction;
    ///
    /// assert_eq!(Direction::of("val_loss"), Some(Direction::Min));
    /// assert_eq!(Direction::of("kappa"), None);
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let is_in = |known: &[&str]| known.iter().any(|known| name == *known || name.ends_with(&format!("_{known}")));
        if is_in(&LARGER_IS_BETTER) {
            return Some(Self::Max);
        }
        is_in(&SMALLER_IS_BETTER).then_some(Self::Min)
    }

    /// Whether `value` is better than `other`.
    pub fn is_better(self, value: f64, other: f64) -> bool {
        match self {
            Self::Max => value > other,
            Self::Min => value < other,
        }
    }
}

/// A metric and its direction, written `accuracy`, or `kappa:max` where the name does not say which direction is better.
///
/// ```
/// use mingle_training::{Criterion, Metrics};
///
/// let criterion: Criterion = "kappa:max".parse()?;
/// let metrics: Metrics = [("kappa", 0.4)].into_iter().collect();
/// assert_eq!(criterion.value_in(&metrics), Some(0.4));
/// # Ok::<(), mingle_home::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// The name of the metric.
    pub metric: String,
    /// When it is better.
    pub direction: Direction,
}

impl Criterion {
    /// What was measured of it, if that is a finite number.
    pub fn value_in(&self, metrics: &Metrics) -> Option<f64> {
        metrics.get(&self.metric).filter(|value| value.is_finite())
    }
}

impl FromStr for Criterion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (metric, direction) = match text.rsplit_once(':') {
            Some((metric, "max")) => (metric, Some(Direction::Max)),
            Some((metric, "min")) => (metric, Some(Direction::Min)),
            _ => (text, Direction::of(text)),
        };
        if metric.is_empty() || metric.chars().any(char::is_control) {
            return Err(Error::new(ErrorKind::BadInput, "a metric needs a name, such as accuracy or loss"));
        }
        let direction = direction.ok_or_else(|| {
            let message = format!("is `{metric}` better when it is larger or when it is smaller?");
            Error::new(ErrorKind::BadInput, message).hint(format!("write {metric}:max or {metric}:min"))
        })?;
        Ok(Self { metric: metric.to_owned(), direction })
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Max => "max",
            Direction::Min => "min",
        };
        write!(f, "{}:{direction}", self.metric)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn usual_names_have_a_direction_and_others_must_say_theirs() {
        assert_eq!(Direction::of("accuracy"), Some(Direction::Max));
        assert_eq!(Direction::of("eval_RMSE"), Some(Direction::Min));
        assert_eq!(Direction::of("glossary"), None, "not everything that ends in the letters of one");
        let of = |text: &str| text.parse::<Criterion>().map(|criterion| criterion.to_string());
        assert_eq!(of("loss").unwrap(), "loss:min");
        assert_eq!(of("loss:max").unwrap(), "loss:max");
        assert_eq!(of("a:b:min").unwrap(), "a:b:min");
        assert_eq!(of("kappa").unwrap_err().to_string(), "is `kappa` better when it is larger or when it is smaller?");
        assert!(of("").is_err() && of(":max").is_err());
    }
}
