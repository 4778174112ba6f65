//! Targets of models on held-out samples: `METRIC=VALUE`, at least or at most depending on the metric.

use std::fmt;
use std::str::FromStr;

use mingle_models::{ObjectiveKind, SampleShape, Task, Tokens};
use serde::{Deserialize, Serialize};

/// A metric that simulations measure, and the value that it has to reach.
///
/// ```
/// use mingle_lab::simulation::MetricTarget;
///
/// let target: MetricTarget = "accuracy=0.93".parse()?;
/// assert!(target.is_met_by(0.94) && !target.is_met_by(0.92));
/// let target: MetricTarget = "rmse=12".parse()?;
/// assert!(target.is_met_by(11.0) && !target.is_met_by(13.0));
/// # Ok::<(), mingle_lab::simulation::TargetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricTarget {
    metric: SimulationMetric,
    value: f64,
}

/// A metric of the models of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulationMetric {
    Accuracy,
    R2,
    Loss,
    Mse,
    Rmse,
    Bits(Tokens),
}

const METRICS: [SimulationMetric; 7] = [
    SimulationMetric::Accuracy,
    SimulationMetric::R2,
    SimulationMetric::Loss,
    SimulationMetric::Mse,
    SimulationMetric::Rmse,
    SimulationMetric::Bits(Tokens::Characters),
    SimulationMetric::Bits(Tokens::Bytes),
];

impl SimulationMetric {
    /// The name of the metric in evaluations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::R2 => "r2",
            Self::Loss => "loss",
            Self::Mse => "mse",
            Self::Rmse => "rmse",
            Self::Bits(tokens) => tokens.metric(),
        }
    }

    /// Returns `true` if larger is better.
    fn is_score(self) -> bool {
        matches!(self, Self::Accuracy | Self::R2)
    }

    /// Returns `true` if it is measured for this objective, for texts with these tokens or other samples.
    fn is_measured(self, objective: ObjectiveKind, text: Option<Tokens>) -> bool {
        match self {
            Self::Loss => true,
            Self::Accuracy => objective == ObjectiveKind::Classification,
            Self::R2 | Self::Mse | Self::Rmse => objective == ObjectiveKind::Regression,
            Self::Bits(tokens) => text == Some(tokens),
        }
    }
}

impl MetricTarget {
    /// A target of at least this accuracy.
    ///
    /// # Errors
    /// The value is not between 0 and 1.
    pub fn accuracy(value: f64) -> Result<Self, TargetError> {
        Self::new(SimulationMetric::Accuracy, value)
    }

    fn new(metric: SimulationMetric, value: f64) -> Result<Self, TargetError> {
        let bounds = match metric {
            SimulationMetric::Accuracy if !(0.0..=1.0).contains(&value) => Some("it is a share, such as 0.93"),
            SimulationMetric::R2 if !(value.is_finite() && value <= 1.0) => Some("it is 1 at most, such as 0.9"),
            SimulationMetric::Accuracy | SimulationMetric::R2 => None,
            _ if !(value.is_finite() && value > 0.0) => Some("give a positive number"),
            _ => None,
        };
        match bounds {
            None => Ok(Self { metric, value }),
            Some(why) => Err(TargetError::Value { metric: metric.name(), value, why }),
        }
    }

    /// The metric.
    pub fn metric(&self) -> &'static str {
        self.metric.name()
    }

    /// The value to reach.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Returns `true` if larger is better: the metric has to be at least the value. Otherwise it has to be at most the
    /// value.
    pub fn is_from_below(&self) -> bool {
        self.metric.is_score()
    }

    /// Returns `true` if a mean of this size reaches the target.
    pub fn is_met_by(&self, mean: f64) -> bool {
        if self.is_from_below() { mean >= self.value } else { mean <= self.value }
    }

    /// Checks that the metric is measured for these models.
    ///
    /// # Errors
    /// The metric is not; the error lists those that are.
    pub fn check(self, task: &Task) -> Result<Self, TargetError> {
        let text = match task.shape() {
            SampleShape::Text { tokens } => Some(tokens),
            _ => None,
        };
        let is_measured = |metric: &SimulationMetric| metric.is_measured(task.objective().kind(), text);
        if is_measured(&self.metric) {
            return Ok(self);
        }
        let measured: Vec<&str> = METRICS.into_iter().filter(is_measured).map(SimulationMetric::name).collect();
        Err(TargetError::NotMeasured { metric: self.metric.name(), measured: measured.join(", ") })
    }
}

/// The reason for which a text or a value is not a target.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TargetError {
    /// The text is not a metric, an equals sign and a number.
    #[error("write a metric and its value, such as accuracy=0.93")]
    Form,
    /// The metric is unknown.
    #[error("simulations measure {}", METRICS.map(SimulationMetric::name).join(", "))]
    Unknown,
    /// The metric cannot have this value.
    #[error("{metric} {value}: {why}")]
    Value {
        /// The metric.
        metric: &'static str,
        /// The value.
        value: f64,
        /// The values that the metric can have.
        why: &'static str,
    },
    /// The metric is not measured for these models.
    #[error("{metric} is not measured of these models: {measured} are")]
    NotMeasured { metric: &'static str, measured: String },
}

impl FromStr for MetricTarget {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (name, value) = text.split_once('=').ok_or(TargetError::Form)?;
        let metric = METRICS.into_iter().find(|metric| metric.name() == name.trim()).ok_or(TargetError::Unknown)?;
        Self::new(metric, value.trim().parse().map_err(|_| TargetError::Form)?)
    }
}

impl TryFrom<String> for MetricTarget {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl From<MetricTarget> for String {
    fn from(target: MetricTarget) -> Self {
        format!("{}={}", target.metric.name(), target.value)
    }
}

impl fmt::Display for MetricTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.metric.name(), self.value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_models::Objective;

    #[test]
    fn a_target_is_of_a_metric_that_is_measured_and_a_value_that_it_can_have() {
        let table = SampleShape::Flat { features: 3 };
        let task =
            |model: &str, shape, objective: Objective| Task::new(model.parse().unwrap(), shape, objective).unwrap();
        let classes = task("softmax", table, Objective::Classification { classes: 4 });
        let quantity = task("softmax", table, Objective::Regression);
        let text = SampleShape::Text { tokens: Tokens::Bytes };
        let text = task("gpt:layers=1,heads=1,width=8,context=4", text, Objective::Classification { classes: 256 });
        let of = |target: &str, task: &Task| target.parse::<MetricTarget>().and_then(|target| target.check(task));
        assert_eq!(of("accuracy=0.9", &classes).unwrap().to_string(), "accuracy 0.9");
        assert!(of("bits_per_byte=1", &text).is_ok() && of("loss=0.5", &quantity).is_ok());
        let says = |target: &str, task: &Task| of(target, task).unwrap_err().to_string();
        assert_eq!(
            says("accuracy=0.9", &quantity),
            "accuracy is not measured of these models: r2, loss, mse, rmse are"
        );
        assert!(says("bits_per_character=1", &text).contains("accuracy, loss, bits_per_byte are"));
        assert!(says("rmse=3", &classes).contains("accuracy, loss are"));
        assert!(says("accuracy=93", &classes).contains("0.93") && says("r2=1.5", &quantity).contains("1 at most"));
        assert!(says("loss=-1", &classes).contains("positive") && says("loss=nan", &classes).contains("positive"));
        assert!(says("f1=0.5", &classes).contains("simulations measure accuracy, r2"));
        assert!(says("0.9", &classes).contains("accuracy=0.93"));
    }

    #[test]
    fn scores_are_reached_from_below_and_all_else_from_above() {
        for metric in METRICS {
            let target = MetricTarget::new(metric, 0.5).unwrap();
            assert_eq!((target.is_met_by(0.6), target.is_met_by(0.4)), (metric.is_score(), !metric.is_score()));
            assert!(target.is_met_by(0.5));
            assert_eq!(String::from(target).parse::<MetricTarget>().unwrap(), target);
        }
    }
}
