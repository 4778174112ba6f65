//! The criterion by which models are compared: a metric with its better direction.

use std::fmt;
use std::str::FromStr;

use mingle_home::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::Metrics;

/// The better direction of a metric; `max` and `min` in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricDirection {
    /// The larger the better, such as an accuracy.
    Max,
    /// The smaller the better, such as a loss.
    Min,
}

/// Metrics that are better when larger: whole names, or suffixes of names after a `_`.
const LARGER_IS_BETTER: [&str; 13] =
    ["accuracy", "acc", "r2", "f1", "auc", "auroc", "precision", "recall", "iou", "dice", "bleu", "map", "score"];
/// Metrics that are better when smaller: whole names, or suffixes of names after a `_`.
const SMALLER_IS_BETTER: [&str; 11] =
    ["loss", "mse", "rmse", "mae", "mape", "error", "perplexity", "nll", "wer", "bits_per_character", "bits_per_byte"];

impl MetricDirection {
    /// The direction of a metric with a usual name, such as `loss` or `val_accuracy`; `None` for others.
    ///
    /// ```
    /// use mingle_training::MetricDirection;
    ///
    /// assert_eq!(MetricDirection::of("val_loss"), Some(MetricDirection::Min));
    /// assert_eq!(MetricDirection::of("kappa"), None);
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let is_in = |known: &[&str]| known.iter().any(|known| name == *known || name.ends_with(&format!("_{known}")));
        if is_in(&LARGER_IS_BETTER) {
            return Some(Self::Max);
        }
        is_in(&SMALLER_IS_BETTER).then_some(Self::Min)
    }

    /// Returns `true` if `value` is better than `other`.
    pub fn is_better(self, value: f64, other: f64) -> bool {
        match self {
            Self::Max => value > other,
            Self::Min => value < other,
        }
    }
}

/// A metric and its direction, written `accuracy`, or `kappa:max` if the name does not imply a direction.
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
    /// Its better direction.
    pub direction: MetricDirection,
}

impl Criterion {
    /// The value of the metric, if it was measured and is finite.
    pub fn value_in(&self, metrics: &Metrics) -> Option<f64> {
        metrics.get(&self.metric).filter(|value| value.is_finite())
    }
}

impl FromStr for Criterion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (metric, direction) = match text.rsplit_once(':') {
            Some((metric, "max")) => (metric, Some(MetricDirection::Max)),
            Some((metric, "min")) => (metric, Some(MetricDirection::Min)),
            _ => (text, MetricDirection::of(text)),
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
            MetricDirection::Max => "max",
            MetricDirection::Min => "min",
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
        assert_eq!(MetricDirection::of("accuracy"), Some(MetricDirection::Max));
        assert_eq!(MetricDirection::of("eval_RMSE"), Some(MetricDirection::Min));
        assert_eq!(MetricDirection::of("glossary"), None, "not everything that ends in the letters of one");
        let of = |text: &str| text.parse::<Criterion>().map(|criterion| criterion.to_string());
        assert_eq!(of("loss").unwrap(), "loss:min");
        assert_eq!(of("loss:max").unwrap(), "loss:max");
        assert_eq!(of("a:b:min").unwrap(), "a:b:min");
        assert_eq!(of("kappa").unwrap_err().to_string(), "is `kappa` better when it is larger or when it is smaller?");
        assert!(of("").is_err() && of(":max").is_err());
    }
}
