//! When a simulation has reached what it is for: `--target METRIC=VALUE`.

use std::f64::consts::LN_2;
use std::fmt;
use std::str::FromStr;

use mingle_lab::simulation::Target;
use mingle_models::Tokens;

/// A metric that simulations measure, and what it is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TargetArg {
    metric: Metric,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Accuracy,
    Loss,
    Bits(Tokens),
}

impl TargetArg {
    /// An accuracy.
    pub(crate) fn accuracy(value: f64) -> Self {
        Self { metric: Metric::Accuracy, value }
    }

    /// What it means to a simulation on texts with these tokens, or on other data.
    ///
    /// # Errors
    /// Nothing like that is measured of these data, or it cannot be reached.
    pub(crate) fn on(self, tokens: Option<Tokens>) -> Result<Target, String> {
        let value = self.value;
        match self.metric {
            Metric::Accuracy if !(0.0..=1.0).contains(&value) => Err("it is a share, such as 0.93".to_owned()),
            Metric::Accuracy => Ok(Target::Accuracy(value)),
            _ if !value.is_finite() || value <= 0.0 => Err("give a positive number".to_owned()),
            Metric::Loss => Ok(Target::Loss(value)),
            Metric::Bits(wanted) if tokens == Some(wanted) => Ok(Target::Loss(value * LN_2)),
            Metric::Bits(_) => Err(match tokens {
                Some(tokens) => format!("of this text {}, accuracy and loss are measured", tokens.metric()),
                None => "of these data accuracy and loss are measured".to_owned(),
            }),
        }
    }
}

impl FromStr for TargetArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (metric, value) = text.split_once('=').ok_or("write a metric and its value, such as accuracy=0.93")?;
        let bits = [Tokens::Characters, Tokens::Bytes].into_iter().find(|tokens| tokens.metric() == metric);
        let metric = match (metric, bits) {
            ("accuracy", _) => Metric::Accuracy,
            ("loss", _) => Metric::Loss,
            (_, Some(tokens)) => Metric::Bits(tokens),
            _ => return Err("simulations measure accuracy, loss, bits_per_character and bits_per_byte".to_owned()),
        };
        let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
        Ok(Self { metric, value })
    }
}

impl fmt::Display for TargetArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = match self.metric {
            Metric::Accuracy => "accuracy",
            Metric::Loss => "loss",
            Metric::Bits(tokens) => tokens.metric(),
        };
        write!(f, "{metric} {}", self.value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bits_are_a_loss_of_texts_alone() {
        let of = |text: &str, tokens| text.parse::<TargetArg>().unwrap().on(tokens);
        assert_eq!(of("accuracy=0.9", None), Ok(Target::Accuracy(0.9)));
        assert_eq!(of("bits_per_byte=1", Some(Tokens::Bytes)), Ok(Target::Loss(LN_2)));
        assert!(of("bits_per_byte=1", Some(Tokens::Characters)).unwrap_err().contains("bits_per_character"));
        assert!(of("accuracy=93", None).unwrap_err().contains("0.93"));
        assert!(of("loss=-1", None).is_err());
        assert!("f1=0.5".parse::<TargetArg>().unwrap_err().contains("simulations measure"));
        assert!("0.9".parse::<TargetArg>().unwrap_err().contains("accuracy=0.93"));
    }
}
