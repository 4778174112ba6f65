//! Rules of learning in rounds: the number of rounds, the metrics, and when to stop.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::RoundRecord;

/// The most rounds.
const MOST_ROUNDS: u64 = 100_000;
/// The most metrics.
const MOST_METRICS: usize = 256;

/// The number of rounds, the metrics, and when to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundRules {
    rounds: u64,
    metrics: Vec<String>,
    judge: Option<usize>,
    patience: Option<u64>,
}

/// Rules by which nothing can be learned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RulesError {
    /// Too few or too many rounds.
    #[error("{0} rounds: give a number from 1 to {MOST_ROUNDS}")]
    Rounds(u64),
    /// Too many metrics.
    #[error("{0} metrics are too many: at most {MOST_METRICS}")]
    Metrics(usize),
    /// The metric to judge by is not among those measured.
    #[error("no metric is called {0}")]
    Judge(String),
    /// A patience of no rounds.
    #[error("a patience of 0 rounds ends at once: give 1 or more")]
    Patience,
}

impl RoundRules {
    /// Rules with this many rounds, and the names of the metrics. The model after the last round is kept.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn new(rounds: u64, metrics: Vec<String>) -> Result<Self, RulesError> {
        if rounds == 0 || rounds > MOST_ROUNDS {
            return Err(RulesError::Rounds(rounds));
        }
        if metrics.len() > MOST_METRICS {
            return Err(RulesError::Metrics(metrics.len()));
        }
        Ok(Self { rounds, metrics, judge: None, patience: None })
    }

    /// Keeps the model with the largest mean of this metric, and stops after `patience` rounds in a row without a
    /// larger one.
    ///
    /// # Errors
    /// [`RulesError`].
    pub fn judged_by(mut self, metric: &str, patience: Option<u64>) -> Result<Self, RulesError> {
        let at = self.metrics.iter().position(|name| name == metric);
        self.judge = Some(at.ok_or_else(|| RulesError::Judge(metric.to_owned()))?);
        if patience == Some(0) {
            return Err(RulesError::Patience);
        }
        self.patience = patience;
        Ok(self)
    }

    /// The most rounds.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The names of the metrics.
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// The number of rounds after which the best model was: the first of the best, or the last where nothing is judged.
    pub(crate) fn best_round(&self, history: &[RoundRecord]) -> u64 {
        let last = history.last().map_or(0, |record| record.round);
        let Some(judge) = self.judge else { return last };
        let score = |record: &RoundRecord| record.mean.get(judge).copied().flatten();
        let scored = history.iter().filter_map(|record| Some((record.round, score(record)?)));
        let best = scored.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(last, |best| best.0)
    }

    /// Returns `true` if the model after the last round is the one that is kept.
    pub(crate) fn keeps_the_last(&self) -> bool {
        self.judge.is_none()
    }

    /// Returns `true` if another round follows, by numbers that are the same at all nodes.
    pub(crate) fn goes_on(&self, history: &[RoundRecord]) -> bool {
        let done = history.last().map_or(0, |record| record.round);
        let is_patient = self.patience.is_none_or(|patience| done - self.best_round(history) < patience);
        done < self.rounds && is_patient
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn history(scores: &[f64]) -> Vec<RoundRecord> {
        let record = |(at, score): (usize, &f64)| RoundRecord {
            round: at as u64 + 1,
            mean: vec![None, (*score >= 0.0).then_some(*score)],
            own: Vec::new(),
        };
        scores.iter().enumerate().map(record).collect()
    }

    #[test]
    fn the_first_of_the_best_rounds_is_kept_and_patience_counts_from_it() {
        let rules = RoundRules::new(10, vec!["loss".to_owned(), "ndcg".to_owned()]).unwrap();
        assert_eq!(rules.best_round(&history(&[0.1, 0.9, 0.2])), 3);
        let rules = rules.judged_by("ndcg", Some(3)).unwrap();
        assert_eq!(rules.best_round(&history(&[0.1, 0.9, 0.9, 0.2])), 2);
        assert!(rules.goes_on(&history(&[0.1, 0.9, 0.9, 0.2])));
        assert!(!rules.goes_on(&history(&[0.1, 0.9, 0.9, 0.2, 0.3])));
        // No node could measure the metric, so patience does not end it.
        assert!(rules.goes_on(&history(&[-1.0; 9])));
        assert!(!rules.goes_on(&history(&[-1.0; 10])));
    }

    #[test]
    fn rules_that_cannot_be_are_refused() {
        let names = || vec!["ndcg".to_owned()];
        assert_eq!(RoundRules::new(0, names()), Err(RulesError::Rounds(0)));
        assert!(RoundRules::new(u64::MAX, names()).is_err());
        assert!(RoundRules::new(1, vec![String::new(); 1000]).is_err());
        let rules = RoundRules::new(3, names()).unwrap();
        assert_eq!(rules.clone().judged_by("recall", None).unwrap_err().to_string(), "no metric is called recall");
        assert_eq!(rules.judged_by("ndcg", Some(0)), Err(RulesError::Patience));
    }
}
