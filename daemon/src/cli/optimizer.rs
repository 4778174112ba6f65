//! The words for how gradient steps are taken, of `run`, `join`, `demo` and `simulate`.

use clap::Args;
use mingle_models::{Decay, LearningRateSchedule, OptimizerKind, OptimizerOptions, ScheduleError};
use mingle_peer::{Error, ErrorKind, Result};

/// The learning rate of AdamW where nobody says another: PyTorch's.
pub(crate) const ADAMW_LEARNING_RATE: &str = "0.001";

/// What takes the gradient steps, and how long they are.
#[derive(Args, Clone, Copy, Debug, PartialEq)]
pub(crate) struct OptimizerArgs {
    /// What takes the gradient steps: sgd or adamw
    #[arg(long, default_value_t = OptimizerKind::Sgd, value_name = "OPTIMIZER")]
    pub(crate) optimizer: OptimizerKind,
    /// Momentum of SGD; it stays on the peer
    #[arg(long, default_value_t = 0.0)]
    pub(crate) momentum: f64,
    /// Decay rate of the second moment of AdamW [default: 0.999]
    #[arg(long, default_value_t = OptimizerOptions::BETA2, hide_default_value = true)]
    pub(crate) beta2: f64,
    /// Weight decay: L2 regularisation with sgd, decoupled with adamw
    #[arg(long, default_value_t = 0.0)]
    pub(crate) weight_decay: f64,
    /// How the learning rate falls from round to round: constant, cosine, cosine:FLOOR or step:EVERY,FACTOR
    #[arg(long, default_value_t = Decay::Constant, value_name = "SCHEDULE")]
    pub(crate) schedule: Decay,
    /// Rounds at the beginning in which the learning rate rises linearly
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    pub(crate) warmup: u64,
    /// Scale larger gradients to this L2 norm over all parameters before each step
    #[arg(long, value_name = "NORM")]
    pub(crate) clip_gradients: Option<f64>,
}

impl Default for OptimizerArgs {
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

impl OptimizerArgs {
    /// Each by the key of its setting, as the command line writes it.
    pub(crate) fn entries(&self) -> [(&'static str, String); 7] {
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

    /// Those of its entries that `run` takes as options: all that are set.
    pub(crate) fn options(&self) -> impl Iterator<Item = (String, String)> {
        let is_set = |(key, _): &(&str, String)| *key != "clip_gradients" || self.clip_gradients.is_some();
        let options = self.entries().into_iter().filter(is_set);
        options.map(|(key, value)| (key.replace('_', "-"), value)).collect::<Vec<_>>().into_iter()
    }

    /// What somebody chose here, and `theirs` for all else. What belongs to one optimizer is not taken over for another.
    pub(crate) fn or(&self, theirs: &Self, is_chosen: impl Fn(&str) -> bool) -> Self {
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

    /// Whether somebody chose another optimizer here than there.
    pub(crate) fn is_other(&self, theirs: &Self, is_chosen: impl Fn(&str) -> bool) -> bool {
        is_chosen("optimizer") && self.optimizer != theirs.optimizer
    }

    /// Refuses numbers that mean nothing, whatever the others are.
    ///
    /// # Errors
    /// The option, and what it may be.
    pub(crate) fn check(&self) -> Result {
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

    /// The optimizer, at its full rate.
    ///
    /// # Errors
    /// Options that do not go together.
    pub(crate) fn settings(&self, learning_rate: f64) -> Result<OptimizerOptions> {
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
    /// A warm-up that does not end before the run.
    pub(crate) fn rates(&self, learning_rate: f64, rounds: u64) -> Result<LearningRateSchedule> {
        LearningRateSchedule::new(learning_rate, self.schedule, self.warmup, rounds).map_err(|error: ScheduleError| {
            Error::new(ErrorKind::BadInput, format!("--warmup {}: {error}", self.warmup))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_that_do_nothing_are_refused_by_name() {
        let adamw = OptimizerArgs { optimizer: OptimizerKind::AdamW, ..OptimizerArgs::default() };
        assert_eq!(adamw.settings(0.1).unwrap(), OptimizerOptions::adamw(0.1));
        let both = OptimizerArgs { momentum: 0.9, ..adamw };
        let says = both.settings(0.1).unwrap_err().to_string();
        assert_eq!(says, "--momentum 0.9 does nothing with --optimizer adamw, which has moments of its own");
        let says = OptimizerArgs { beta2: 0.99, ..OptimizerArgs::default() }.settings(0.1).unwrap_err().to_string();
        assert_eq!(says, "--beta2 0.99 does nothing with --optimizer sgd, which has no second moment");
        let long = OptimizerArgs { warmup: 8, ..adamw };
        assert!(long.rates(0.1, 9).is_ok());
        let says = long.rates(0.1, 8).unwrap_err().to_string();
        assert_eq!(says, "--warmup 8: 8 rounds of warm-up leave none of 8 rounds at the full rate");
    }

    #[test]
    fn what_nobody_chose_is_the_others_but_for_what_belongs_to_another_optimizer() {
        let theirs = OptimizerArgs { momentum: 0.9, weight_decay: 0.01, warmup: 5, ..OptimizerArgs::default() };
        let mine = OptimizerArgs { optimizer: OptimizerKind::AdamW, ..OptimizerArgs::default() };
        assert_eq!(mine.or(&theirs, |_| false), theirs);
        assert_eq!(
            mine.or(&theirs, |key| key == "optimizer"),
            OptimizerArgs { momentum: 0.0, ..OptimizerArgs { optimizer: OptimizerKind::AdamW, ..theirs } }
        );
        assert_eq!(mine.or(&theirs, |key| key == "warmup"), OptimizerArgs { warmup: 0, ..theirs });
    }

    #[test]
    fn the_options_of_a_peer_say_all_that_is_set() {
        let args = OptimizerArgs { clip_gradients: Some(0.5), ..OptimizerArgs::default() };
        let words: Vec<String> = args.options().map(|(option, value)| format!("--{option}={value}")).collect();
        assert_eq!(words[0], "--optimizer=sgd");
        assert_eq!((words[2].as_str(), words[6].as_str()), ("--beta2=0.999", "--clip-gradients=0.5"));
        assert_eq!(OptimizerArgs::default().options().count(), 6);
    }
}
