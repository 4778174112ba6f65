//! Measures of a model by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Metrics that are shown first if measured: of texts, of classes, and of quantities.
const LEADING: [&str; 4] = ["bits_per_character", "bits_per_byte", "accuracy", "r2"];

/// Metrics of a model on held-out samples: a mean for each name, such as `accuracy` or `loss`.
///
/// ```
/// use mingle_training::Metrics;
///
/// let metrics: Metrics = [("loss", 0.25), ("accuracy", 0.9)].into_iter().collect();
/// assert_eq!(metrics.get("accuracy"), Some(0.9));
/// assert_eq!(metrics.to_string(), "accuracy 0.9000, loss 0.2500");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// The metric called `name`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// All metrics, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Returns `true` if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All metrics on one line, such as `accuracy 0.913  loss 0.312`.
    pub fn in_columns(&self) -> String {
        let words: Vec<String> = self.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        words.join("  ")
    }

    /// The metric to show first: the bits per token of a text, the accuracy or r2, or else the first by name.
    pub fn leading(&self) -> Option<(&str, f64)> {
        let known = LEADING.iter().find_map(|name| self.0.get_key_value(*name));
        let leading = known.or_else(|| self.0.first_key_value());
        leading.map(|(name, value)| (name.as_str(), *value))
    }

    /// The leading metric after a comma, such as `, accuracy 0.913`; empty without any.
    pub fn in_passing(&self) -> String {
        self.leading().map(|(name, value)| format!(", {name} {value:.3}")).unwrap_or_default()
    }

    /// The first metric that is not finite.
    pub fn first_not_finite(&self) -> Option<&str> {
        self.iter().find(|(_, value)| !value.is_finite()).map(|(name, _)| name)
    }
}

impl<N: Into<String>> FromIterator<(N, f64)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (N, f64)>>(metrics: I) -> Self {
        Self(metrics.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl std::fmt::Display for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
        f.write_str(&words.join(", "))
    }
}
