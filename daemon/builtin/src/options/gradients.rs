//! Options of the gradient steps.

use mingle_models::{Decay, LearningRateSchedule, OptimizerKind, OptimizerOptions, RateScheduleError};
use mingle_peer::{Error, ErrorKind, Result};

/// The optimizer of the gradient steps, with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientOptions {
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Momentum of SGD; it stays on the peer.
    pub momentum: f64,
    /// Decay rate of the second moment of AdamW.
    pub beta2: f64,
    /// Weight decay: L2 regularisation with sgd, decoupled with adamw.
    pub weight_decay: f64,
    /// Decay of the learning rate from round to round.
    pub schedule: Decay,
    /// Rounds at the beginning in which the learning rate rises linearly.
    pub warmup: u64,
    /// The L2 norm over all parameters to which larger gradients are scaled before each step.
    pub clip_gradients: Option<f64>,
}

impl Default for GradientOptions {
    fn default() -> Self {
        Self {
            optimizer: OptimizerKind::Sgd,
            momentum: 0.0,
            beta2: OptimizerOptions::BETA2,
            weight_decay: 0.0,
            schedule: Decay::Constant,
            warmup: 0,
            clip_gradients: None,
        }
    }
}

impl GradientOptions {
    /// Each setting by its key, as the command line writes it.
    pub fn entries(&self) -> [(&'static str, String); 7] {
        let Self { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients } = self;
        [
            ("optimizer", optimizer.to_string()),
            ("momentum", momentum.to_string()),
            ("beta2", beta2.to_string()),
            ("weight_decay", weight_decay.to_string()),
            ("schedule", schedule.to_string()),
            ("warmup", warmup.to_string()),
            ("clip_gradients", clip_gradients.map_or_else(|| "none".to_owned(), |norm| norm.to_string())),
        ]
    }

    /// The settings as options of `mingle run`: all that are set.
    pub fn options(&self) -> impl Iterator<Item = (String, String)> {
        let is_set = |(key, _): &(&str, String)| *key != "clip_gradients" || self.clip_gradients.is_some();
        let options = self.entries().into_iter().filter(is_set);
        options.map(|(key, value)| (key.replace('_', "-"), value)).collect::<Vec<_>>().into_iter()
    }

    /// The settings chosen here, and `theirs` for all others. Settings of one optimizer are not taken over for another.
    pub fn or(&self, theirs: &Self, is_chosen: impl Fn(&str) -> bool) -> Self {
        let is_other = self.is_other(theirs, &is_chosen);
        Self {
            optimizer: if is_other { self.optimizer } else { theirs.optimizer },
            momentum: if is_other || is_chosen("momentum") { self.momentum } else { theirs.momentum },
            beta2: if is_other || is_chosen("beta2") { self.beta2 } else { theirs.beta2 },
            weight_decay: if is_chosen("weight_decay") { self.weight_decay } else { theirs.weight_decay },
            schedule: if is_chosen("schedule") { self.schedule } else { theirs.schedule },
            warmup: if is_chosen("warmup") { self.warmup } else { theirs.warmup },
            clip_gradients: if is_chosen("clip_gradients") { self.clip_gradients } else { theirs.clip_gradients },
        }
    }

    /// Returns `true` if another optimizer than `theirs` was chosen here.
    pub fn is_other(&self, theirs: &Self, is_chosen: impl Fn(&str) -> bool) -> bool {
        is_chosen("optimizer") && self.optimizer != theirs.optimizer
    }

    /// Refuses invalid numbers, each by itself.
    ///
    /// # Errors
    /// Names the option and its bounds.
    pub fn check(&self) -> Result {
        let wrong = |what: &str| Err(Error::new(ErrorKind::BadInput, what));
        if !(0.0..1.0).contains(&self.momentum) {
            return wrong("--momentum must lie between 0 and 1, 1 excluded");
        }
        if !(0.0..1.0).contains(&self.beta2) {
            return wrong("--beta2 must lie between 0 and 1, 1 excluded");
        }
        if !self.weight_decay.is_finite() || self.weight_decay < 0.0 {
            return wrong("--weight-decay must be zero or a positive number");
        }
        if self.clip_gradients.is_some_and(|norm| !norm.is_finite() || norm <= 0.0) {
            return wrong("--clip-gradients must be a positive number");
        }
        Ok(())
    }

    /// The settings of the optimizer, at its full rate.
    ///
    /// # Errors
    /// The options contradict each other.
    pub fn settings(&self, learning_rate: f64) -> Result<OptimizerOptions> {
        let Self { optimizer: kind, momentum, beta2, weight_decay, clip_gradients, .. } = *self;
        if kind == OptimizerKind::Sgd && beta2 != OptimizerOptions::BETA2 {
            let message = format!("--beta2 {beta2} does nothing with --optimizer sgd, which has no second moment");
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave it away, or add --optimizer adamw"));
        }
        if kind == OptimizerKind::AdamW && momentum > 0.0 {
            let message =
                format!("--momentum {momentum} does nothing with --optimizer adamw, which has moments of its own");
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave one of the two away"));
        }
        Ok(OptimizerOptions { kind, learning_rate, momentum, beta2, weight_decay, clip_gradients })
    }

    /// The learning rate in each of `rounds` rounds.
    ///
    /// # Errors
    /// The warm-up does not end before the run.
    pub fn rates(&self, learning_rate: f64, rounds: u64) -> Result<LearningRateSchedule> {
        LearningRateSchedule::new(learning_rate, self.schedule, self.warmup, rounds).map_err(
            |error: RateScheduleError| Error::new(ErrorKind::BadInput, format!("--warmup {}: {error}", self.warmup)),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_that_do_nothing_are_refused_by_name() {
        let adamw = GradientOptions { optimizer: OptimizerKind::AdamW, ..GradientOptions::default() };
        assert_eq!(adamw.settings(0.1).unwrap(), OptimizerOptions::adamw(0.1));
        let both = GradientOptions { momentum: 0.9, ..adamw };
        let says = both.settings(0.1).unwrap_err().to_string();
        assert_eq!(says, "--momentum 0.9 does nothing with --optimizer adamw, which has moments of its own");
        let says = GradientOptions { beta2: 0.99, ..GradientOptions::default() }.settings(0.1).unwrap_err().to_string();
        assert_eq!(says, "--beta2 0.99 does nothing with --optimizer sgd, which has no second moment");
        let long = GradientOptions { warmup: 8, ..adamw };
        assert!(long.rates(0.1, 9).is_ok());
        let says = long.rates(0.1, 8).unwrap_err().to_string();
        assert_eq!(says, "--warmup 8: 8 rounds of warm-up leave none of 8 rounds at the full rate");
    }

    #[test]
    fn what_nobody_chose_is_the_others_but_for_what_belongs_to_another_optimizer() {
        let theirs = GradientOptions { momentum: 0.9, weight_decay: 0.01, warmup: 5, ..GradientOptions::default() };
        let mine = GradientOptions { optimizer: OptimizerKind::AdamW, ..GradientOptions::default() };
        assert_eq!(mine.or(&theirs, |_| false), theirs);
        assert_eq!(
            mine.or(&theirs, |key| key == "optimizer"),
            GradientOptions { momentum: 0.0, ..GradientOptions { optimizer: OptimizerKind::AdamW, ..theirs } }
        );
        assert_eq!(mine.or(&theirs, |key| key == "warmup"), GradientOptions { warmup: 0, ..theirs });
    }

    #[test]
    fn the_options_of_a_peer_say_all_that_is_set() {
        let args = GradientOptions { clip_gradients: Some(0.5), ..GradientOptions::default() };
        let words: Vec<String> = args.options().map(|(option, value)| format!("--{option}={value}")).collect();
        assert_eq!(words[0], "--optimizer=sgd");
        assert_eq!((words[2].as_str(), words[6].as_str()), ("--beta2=0.999", "--clip-gradients=0.5"));
        assert_eq!(GradientOptions::default().options().count(), 6);
    }
}
