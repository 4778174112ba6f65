//! Divergence of training: no further training could make a usable model.

use mingle_protocol::{NORM_TOLERANCE, NodeEvent, SkippedDelta};
use mingle_status::warnings::Source;

use super::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::training::Evaluation;

/// Number of consecutive rounds with unusable local steps that is no accident.
const ROUNDS: u32 = 5;

/// Count of local steps that end in numbers that are not finite.
#[derive(Debug, Default)]
pub(super) struct Divergence {
    in_a_row: u32,
    in_this_round: bool,
    /// Set once the user was warned that neighbours pull the model away.
    is_pulling_told: bool,
}

impl Divergence {
    fn note(&mut self) {
        self.in_a_row += 1;
        self.in_this_round = true;
    }

    fn end_round(&mut self) {
        if !self.in_this_round {
            self.in_a_row = 0;
        }
        self.in_this_round = false;
    }
}

impl Driver<'_> {
    /// Counts local steps that were not finite, or longer than the largest norm of a model.
    ///
    /// # Errors
    /// This has lasted for `ROUNDS` rounds, on a model that neighbours did not pull away.
    pub(super) fn note_unusable_steps(&mut self, event: &NodeEvent) -> Result {
        let is_unusable = |reason| matches!(reason, SkippedDelta::NotFinite | SkippedDelta::TooLong);
        let is_one = matches!(*event, NodeEvent::DeltaSkipped { reason, .. } if is_unusable(reason));
        if !is_one || self.node.is_pulled() {
            return Ok(());
        }
        self.divergence.note();
        if self.divergence.in_a_row < ROUNDS {
            return Ok(());
        }
        Err(self.diverged(&format!(
            "the local steps of {ROUNDS} rounds in a row end in numbers that are not finite or far too large"
        )))
    }

    /// Ends a round in the count.
    pub(super) fn note_end_of_round(&mut self) {
        self.divergence.end_round();
    }

    /// Checks that an evaluated model is usable.
    ///
    /// # Errors
    /// The metrics are not finite, the norm is larger than any that neighbours accept, or the last local steps were
    /// unusable. A model that neighbours pulled away is no error: it causes one warning.
    pub(super) fn check_divergence(&mut self, evaluation: &Evaluation, is_final: bool) -> Result {
        if self.node.is_pulled() {
            self.warn_of_pulling();
            return Ok(());
        }
        if let Some(name) = evaluation.metrics.first_not_finite() {
            return Err(self.diverged(&format!("the {name} of the model is not finite")));
        }
        if is_final && self.divergence.in_a_row > 0 {
            return Err(self.diverged("the last local steps end in numbers that are not finite"));
        }
        let norm = self.node.ratio().iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        match self.parts.config.largest_norm.filter(|largest| norm > *largest * NORM_TOLERANCE) {
            None => Ok(()),
            Some(largest) => Err(self.diverged(&format!(
                "the norm of the model is {norm:.1e}, and that of no sound one is above {largest:.1e}"
            ))),
        }
    }

    fn warn_of_pulling(&mut self) {
        if !std::mem::replace(&mut self.divergence.is_pulling_told, true) {
            let sentence = "neighbours pull this peer's model far away from what it learns: a member may send false models \
                            (`mingle run --robust clip` takes less of them; a plan without it ends it)";
            self.member.warn_of(Source::Alarm(None), sentence.to_owned());
        }
    }

    fn diverged(&self, why: &str) -> Error {
        Error::new(ErrorKind::Training, format!("training has diverged: {why}")).hint(self.parts.advice.diverged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_round_between_makes_the_count_begin_anew() {
        let mut divergence = Divergence::default();
        for _ in 1..ROUNDS {
            divergence.note();
            divergence.end_round();
        }
        assert_eq!(divergence.in_a_row, ROUNDS - 1);
        divergence.end_round();
        assert_eq!(divergence.in_a_row, 0);
    }
}
