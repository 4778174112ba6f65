//! Training that has diverged: nothing that it could still do would make a model.

use super::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::training::Evaluation;

/// So many rounds in a row whose local steps cannot be used are no accident.
const ROUNDS: u32 = 5;

/// What was seen of local steps that end in numbers that are not finite.
#[derive(Debug, Default)]
pub(super) struct Divergence {
    in_a_row: u32,
    in_this_round: bool,
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
    /// The local steps of a round were not finite.
    ///
    /// # Errors
    /// They have not been for some rounds.
    pub(super) fn on_steps_not_finite(&mut self) -> Result {
        self.divergence.note();
        if self.divergence.in_a_row < ROUNDS {
            return Ok(());
        }
        Err(self.diverged(&format!("the local steps of {ROUNDS} rounds in a row end in numbers that are not finite")))
    }

    /// A round is over.
    pub(super) fn note_end_of_round(&mut self) {
        self.divergence.end_round();
    }

    /// Whether a model that was judged can be one.
    ///
    /// # Errors
    /// It cannot: what was measured of it is not finite, it is larger than any that neighbours take, or it was never trained.
    pub(super) fn check_divergence(&mut self, evaluation: &Evaluation, is_final: bool) -> Result {
        if let Some(name) = evaluation.metrics.first_not_finite() {
            return Err(self.diverged(&format!("the {name} of the model is not finite")));
        }
        if is_final && self.divergence.in_a_row > 0 {
            return Err(self.diverged("the last local steps end in numbers that are not finite"));
        }
        let norm = self.node.ratio().iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        match self.parts.config.largest_norm.filter(|largest| norm > *largest) {
            None => Ok(()),
            Some(largest) => Err(self.diverged(&format!(
                "the norm of the model is {norm:.1e}, and that of no sound one is above {largest:.1e}"
            ))),
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
