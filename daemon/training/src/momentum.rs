//! Momentum across rounds for any training: added to each change, and kept with the state of the training.

use std::fmt;
use std::sync::Arc;

use mingle_protocol::{MomentumAcrossRounds, MomentumState, MomentumStep, TrainedRound, pace_factor};
use serde::{Deserialize, Serialize};

use crate::{
    Budget, Evaluation, Facts, Layout, LentState, LocalTraining, ModelEncoder, Patience, PrivacySpending, Trained,
    TrainingError,
};

/// The end of a state that holds the model of the round before.
const MARK: &[u8; 16] = b"mingle-momentum1";
/// Bytes of the number of that round.
const ROUND_BYTES: usize = size_of::<u64>();

/// Any training, with momentum over the mixed model as each [`Budget`] asks for: see
/// [`MomentumState`].
///
/// The momentum is a part of the change: the swarm mixes it, and counts it, as it does what was learnt. Training that is
/// private stays so, since momentum uses only models and changes that were released. A state without momentum is that of
/// the training alone.
pub struct TrainingWithMomentum {
    training: Box<dyn LocalTraining>,
    momentum: MomentumState,
    /// `true` if records are to have room for the model of the round before.
    keeps_model: bool,
}

impl TrainingWithMomentum {
    /// `training`, whose records have room for the state of momentum if `keeps_model`.
    pub fn new(training: Box<dyn LocalTraining>, keeps_model: bool) -> Self {
        Self { training, momentum: MomentumState::default(), keeps_model }
    }

    fn model_bytes(&self) -> usize {
        size_of::<f32>() * self.layout().dimension()
    }

    /// The result of a round with its momentum.
    fn with_momentum(&mut self, mut trained: Trained, from: &[f32], budget: &Budget) -> Trained {
        if trained.steps == 0 {
            self.momentum.stay_at(from, budget.round);
        } else if trained.change.len() == from.len() {
            let pace = pace_factor(trained.steps, budget.local_steps, budget.patience.time_left().is_some());
            let round = TrainedRound { number: budget.round, pace };
            self.momentum.add_to(&mut trained.change, from, round, budget.momentum);
        }
        trained
    }
}

impl LocalTraining for TrainingWithMomentum {
    fn layout(&self) -> &Layout {
        self.training.layout()
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        self.training.initial()
    }

    fn begins_with_the_founder(&self) -> bool {
        self.training.begins_with_the_founder()
    }

    fn is_absent(&self) -> bool {
        self.training.is_absent()
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        let trained = self.training.train(from, budget)?;
        Ok(self.with_momentum(trained, from, budget))
    }

    fn train_shared(&mut self, from: &Arc<[f32]>, budget: &Budget) -> Result<Trained, TrainingError> {
        let trained = self.training.train_shared(from, budget)?;
        Ok(self.with_momentum(trained, from, budget))
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.training.evaluate(parameters, patience)
    }

    fn evaluate_shared(&mut self, parameters: &Arc<[f32]>, patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.training.evaluate_shared(parameters, patience)
    }

    fn state(&self) -> Vec<u8> {
        let mut state = self.training.state();
        if let Some((round, model)) = self.momentum.previous() {
            state.reserve(size_of_val(model) + ROUND_BYTES + MARK.len());
            state.extend(model.iter().flat_map(|value| value.to_le_bytes()));
            state.extend(round.to_le_bytes());
            state.extend(MARK);
        }
        state
    }

    fn largest_state(&self) -> usize {
        let own = if self.keeps_model { self.model_bytes() + ROUND_BYTES + MARK.len() } else { 0 };
        self.training.largest_state() + own
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        let Some(state) = state.strip_suffix(MARK) else {
            return self.training.restore(state);
        };
        let too_short = "the state of the momentum across rounds is too short for this model";
        let (state, round) = state.split_last_chunk::<ROUND_BYTES>().ok_or(too_short)?;
        let of_training = state.len().checked_sub(self.model_bytes()).ok_or(too_short)?;
        let (state, model) = state.split_at(of_training);
        if self.keeps_model {
            let model = model.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            self.momentum = MomentumState::after(u64::from_le_bytes(*round), model);
        }
        if state.is_empty() { Ok(()) } else { self.training.restore(state) }
    }

    fn lent_state(&self) -> Option<Arc<dyn LentState>> {
        self.training.lent_state()
    }

    fn privacy(&self) -> Option<PrivacySpending> {
        self.training.privacy()
    }

    fn facts(&self) -> Facts {
        self.training.facts()
    }

    fn model_encoder(&self) -> ModelEncoder {
        self.training.model_encoder()
    }

    fn shared_model_encoder(&self) -> ModelEncoder {
        self.training.shared_model_encoder()
    }
}

/// The momentum across rounds under the present plan, beside the choice that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentumTaken {
    /// `off`, `auto`, or the number that was asked for.
    pub choice: String,
    /// The momentum; 0 for none.
    pub momentum: f64,
}

/// The momentum across rounds of a peer, from plan to plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentumOfPeer {
    choice: MomentumAcrossRounds,
    /// The momentum under the present plan.
    now: f64,
    /// Set when this peer went on with a model of others: the next round begins anew.
    restarts: bool,
}

impl MomentumOfPeer {
    /// The momentum of this choice, which is `now` under the present plan.
    pub fn new(choice: MomentumAcrossRounds, now: f64) -> Self {
        Self { choice, now, restarts: false }
    }

    /// `training` with momentum.
    pub fn add_to(&self, training: Box<dyn LocalTraining>) -> Box<dyn LocalTraining> {
        Box::new(TrainingWithMomentum::new(training, self.choice != MomentumAcrossRounds::Off))
    }

    /// The momentum under the present plan.
    pub fn taken(&self) -> MomentumTaken {
        MomentumTaken { choice: self.choice.to_string(), momentum: self.now }
    }

    /// The momentum of the next round of a node with this weight in a settled swarm.
    pub fn of_round(&mut self, weight: f64) -> MomentumStep {
        MomentumStep { momentum: self.now, weight, restarts: std::mem::take(&mut self.restarts) }
    }

    /// Goes on under another plan with this limit, with the own model or that of others. Returns a warning if that plan
    /// does not bear the momentum that was chosen.
    pub fn renew<E: fmt::Display>(
        &mut self,
        is_other_model: bool,
        limit: impl Fn() -> Result<f64, E>,
    ) -> Option<String> {
        self.restarts |= is_other_model;
        let refused = self.choice.under(&limit).err();
        self.now = self.choice.lowered_to(&limit);
        refused.map(|refused| format!("the new plan: {refused}; this peer goes on with {}", self.now))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Changes the model by 1 a step, and counts its trainings.
    struct Counter {
        layout: Layout,
        steps: u32,
        trained: u8,
    }

    impl LocalTraining for Counter {
        fn layout(&self) -> &Layout {
            &self.layout
        }

        fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
            Ok(vec![0.0; 2])
        }

        fn train(&mut self, from: &[f32], _: &Budget) -> Result<Trained, TrainingError> {
            self.trained += 1;
            Ok(Trained { change: vec![self.steps as f32; from.len()], steps: self.steps, loss: None })
        }

        fn evaluate(&mut self, _: &[f32], _: &Patience) -> Result<Evaluation, TrainingError> {
            Ok(Evaluation::default())
        }

        fn state(&self) -> Vec<u8> {
            vec![self.trained]
        }

        fn largest_state(&self) -> usize {
            1
        }

        fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
            self.trained = *state.first().ok_or("there is no count")?;
            if state.len() == 1 { Ok(()) } else { Err("more than a count".into()) }
        }
    }

    fn training(steps: u32, keeps_model: bool) -> TrainingWithMomentum {
        let counter = Counter { layout: Layout::flat(2), steps, trained: 0 };
        TrainingWithMomentum::new(Box::new(counter), keeps_model)
    }

    fn budget(round: u64, momentum: f64) -> Budget {
        let momentum = MomentumStep { momentum, ..MomentumStep::default() };
        Budget {
            round,
            local_steps: 4,
            rounds_left: 1,
            last_factor: 1.0,
            momentum,
            noise: None,
            patience: Patience::default(),
        }
    }

    #[test]
    fn a_restarted_peer_goes_on_with_the_movement_of_the_round_before() {
        let mut going_on = training(4, true);
        going_on.train(&[0.0, 0.0], &budget(0, 0.5)).unwrap();
        let state = going_on.state();
        assert_eq!(state.len(), going_on.largest_state());
        let mut restarted = training(4, true);
        restarted.restore(&state).unwrap();
        assert_eq!(restarted.state(), state);
        let from = [6.0, 5.0];
        let [first, second] =
            [&mut going_on, &mut restarted].map(|training| training.train(&from, &budget(1, 0.5)).unwrap().change);
        assert_eq!((&first, second), (&vec![4.0 + 0.5 * (10.0 - 4.0), 4.0 + 0.5 * (9.0 - 4.0)], first.clone()));
    }

    #[test]
    fn states_with_and_without_momentum_are_taken_over_by_runs_of_either_kind() {
        let mut with = training(4, true);
        with.train(&[0.0, 0.0], &budget(0, 0.5)).unwrap();
        let mut without = training(4, false);
        without.restore(&with.state()).unwrap();
        assert_eq!(without.state(), [1], "the state of the training alone");
        assert!(without.largest_state() == 1);
        let mut with = training(4, true);
        with.restore(&without.state()).unwrap();
        assert_eq!(with.state(), [1]);
        let cut = [&MARK[..3], MARK].concat();
        assert!(with.restore(&cut).unwrap_err().to_string().contains("too short"));
    }

    #[test]
    fn a_plan_that_bears_less_lowers_the_momentum_until_another_bears_more() {
        let choice = MomentumAcrossRounds::Factor(0.8);
        let mut momentum = MomentumOfPeer::new(choice, 0.8);
        let limit = |limit: f64| move || Ok::<_, String>(limit);
        let warning = momentum.renew(false, limit(0.61)).unwrap();
        assert!(warning.contains("above 0.61") && warning.ends_with("goes on with 0.61"), "{warning}");
        assert_eq!(momentum.of_round(1.5), MomentumStep { momentum: 0.61, weight: 1.5, restarts: false });
        assert_eq!(momentum.renew(true, limit(0.99)), None);
        assert_eq!(momentum.of_round(1.0), MomentumStep { momentum: 0.8, weight: 1.0, restarts: true });
        assert!(!momentum.of_round(1.0).restarts, "one round alone begins anew");
        let unknown = momentum.renew(false, || Err("too many nodes")).unwrap();
        assert!(unknown.contains("too many nodes") && unknown.ends_with("goes on with 0"), "{unknown}");
    }

    #[test]
    fn a_change_of_half_the_steps_counts_twice_and_its_momentum_once() {
        let mut training = training(2, true);
        // The node doubles the change: y = 2 * 2, and momentum adds half of that.
        let change = training.train(&[0.0, 0.0], &budget(0, 0.5)).unwrap().change;
        assert_eq!(change, [2.0 + 0.5 * 4.0 / 2.0; 2]);
        assert_eq!(training.momentum.previous(), Some((0, &[4.0, 4.0][..])));
    }
}
