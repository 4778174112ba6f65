//! The metrics of all nodes' models, by name.
//!
//! ```text
//!   mean_accuracy, worst_accuracy      or mean_r2, worst_r2: the score, of which the larger is the better and 1 the most
//!   loss, rmse, mse, bits_per_byte     means over nodes; the smaller the better
//!   worst_loss                         that of the worst node
//! ```

use std::collections::{BTreeMap, BTreeSet};

use mingle_models::ModelEvaluation;
use serde::{Deserialize, Serialize};

/// The metrics for which the worst node's value is kept beside the mean.
const SCORES: [&str; 2] = ["accuracy", "r2"];

/// The metric of which the worst node's value is the largest.
const LOSS: &str = "loss";

/// Means over nodes; none where one of them is not finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SwarmMeans(BTreeMap<String, Option<f64>>);

impl SwarmMeans {
    /// The means of one evaluation for each node, all of the same task.
    pub(super) fn of(judged: &[ModelEvaluation]) -> Self {
        let named = |judged: &ModelEvaluation| {
            judged.metrics().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        Self::of_metrics(&judged.iter().map(named).collect::<Vec<_>>())
    }

    /// The means of metrics by name, of one evaluation for each node. A metric that a node lacks has none.
    pub fn of_metrics(judged: &[BTreeMap<String, f64>]) -> Self {
        let mut all = BTreeMap::new();
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        for name in judged.iter().flat_map(BTreeMap::keys).map(String::as_str).collect::<BTreeSet<_>>() {
            let values = || judged.iter().map(|judged| judged.get(name).copied().unwrap_or(f64::NAN));
            let mean = finite(values().sum::<f64>() / judged.len() as f64);
            if SCORES.contains(&name) {
                all.insert(format!("mean_{name}"), mean);
                // If one value is not finite, there is neither a mean nor a worst.
                all.insert(format!("worst_{name}"), mean.and_then(|_| finite(values().fold(f64::INFINITY, f64::min))));
            } else {
                if name == LOSS {
                    all.insert(format!("worst_{name}"), mean.and_then(|_| finite(values().fold(0.0, f64::max))));
                }
                all.insert(name.to_owned(), mean);
            }
        }
        Self(all)
    }

    /// The mean of a metric over all nodes.
    pub fn mean(&self, name: &str) -> Option<f64> {
        self.0.get(&format!("mean_{name}")).or_else(|| self.0.get(name)).copied().flatten()
    }

    /// All means and worst values, by name; none where a value is not finite.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<f64>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The name of the score: `accuracy`, or `r2` of a regression.
    pub fn score(&self) -> &'static str {
        let is_kept = |name: &&str| self.0.contains_key(&format!("mean_{name}"));
        SCORES.into_iter().find(is_kept).unwrap_or(SCORES[0])
    }

    /// The mean of the score.
    pub fn mean_score(&self) -> Option<f64> {
        self.mean(self.score())
    }

    /// The score of the worst node.
    pub fn worst_score(&self) -> Option<f64> {
        self.0.get(&format!("worst_{}", self.score())).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_models::Quality;

    #[test]
    fn of_a_score_mean_and_worst_are_kept_and_a_node_that_diverged_hides_behind_nobody() {
        let judged = |r2: f64, rmse: f64| ModelEvaluation {
            quality: Quality::Regression { mse: rmse * rmse, rmse, r2 },
            loss: 1.0 - r2,
            samples: 9,
        };
        let measured = SwarmMeans::of(&[judged(0.5, 4.0), judged(-1.5, 2.0)]);
        assert_eq!((measured.score(), measured.mean_score(), measured.worst_score()), ("r2", Some(-0.5), Some(-1.5)));
        assert_eq!(
            (measured.mean("rmse"), measured.mean("loss"), measured.mean("accuracy")),
            (Some(3.0), Some(1.5), None)
        );
        let diverged = SwarmMeans::of(&[judged(0.5, 4.0), judged(f64::NAN, f64::INFINITY)]);
        assert_eq!((diverged.mean_score(), diverged.worst_score(), diverged.mean("rmse")), (None, None, None));
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(text, r#"{"loss":1.5,"mean_r2":-0.5,"mse":10.0,"rmse":3.0,"worst_loss":2.5,"worst_r2":-1.5}"#);
        assert_eq!(serde_json::from_str::<SwarmMeans>(&text).unwrap(), measured);
    }
}
