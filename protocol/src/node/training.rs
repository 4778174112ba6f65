//! Local training as the node sees it: ordered once a round, in it or in the round before (`overlap`), awaited until a
//! deadline, used when it comes.

use super::overlap::ReadyChange;
use super::{Node, Phase};
use crate::effect::{Effect, InputFault, NodeEvent, SkippedDelta};
use crate::record::HostState;
use crate::time::Time;

/// The fewest rounds of training of a run that ends with a mean of models: a shorter one would lose too much of what it
/// has learnt last.
const FEWEST_BEFORE_MEAN: u64 = 30;
/// The number of models whose mean ends a run.
const MODELS_OF_MEAN: u64 = 4;

/// A node's state of its host's training.
#[derive(Clone, Debug)]
pub(super) struct TrainingState {
    /// The training that was ordered and not answered yet.
    ordered: Option<Ordered>,
    /// Set when a change came after its deadline and is held back: it counts as that of the next round.
    is_late: bool,
    /// The change of the next round, which came while this one is mixed.
    pub(super) ready: Option<ReadyChange>,
    /// The factor of the last change; 0 if it was not used.
    last_factor: f64,
    /// The weighted sum of the changes before that of the last round of training, as they were added.
    before_last: Option<Vec<f32>>,
}

/// The training of a round, ordered from the host.
#[derive(Clone, Copy, Debug)]
struct Ordered {
    /// The round for which it was ordered, which identifies the answer.
    number: u64,
    /// The round that waits for it; differs from `number` if a new plan has begun since.
    round: u64,
    /// `true` if it was ordered in the round before that.
    is_ahead: bool,
    /// Local steps of a round in the plan in which it was ordered.
    local_steps: u32,
    at: Time,
}

/// The time at which a change comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// Its round waits for it.
    Awaited,
    /// Its round has not begun.
    Ahead,
    /// Its round went on without it.
    Late,
}

/// The result of a round's training.
#[derive(Clone, Debug)]
pub(super) struct TrainedChange {
    /// `[dimension]`.
    pub(super) delta: Vec<f32>,
    /// Number of local steps whose sum it is.
    pub(super) steps: u32,
    /// State of the training after these steps, in the host's format.
    pub(super) state: HostState,
}

impl Default for TrainingState {
    fn default() -> Self {
        Self { ordered: None, is_late: false, ready: None, last_factor: 1.0, before_last: None }
    }
}

impl Node {
    /// Orders a round's training from the host. Returns `true` if the round waits for a training, and `false` if there
    /// is nothing to train, no mass to train on, or no neighbour left to mix the result.
    pub(super) fn begin_training(&mut self) -> bool {
        let schedule = &self.config.schedule;
        if schedule.local_steps() == 0 || schedule.stationary_weight(self.config.id, self.step) <= 0.0 {
            return false;
        }
        let round = self.round();
        if std::mem::take(&mut self.training.is_late) {
            self.tally.trained = true;
            self.order_ahead();
            return false;
        }
        if let Some(ready) = self.training.ready.take() {
            self.join_ready(ready);
            return false;
        }
        if !self.push_sum.has_working_mass() {
            self.report(NodeEvent::DeltaSkipped { round, reason: SkippedDelta::NoMass });
            return false;
        }
        if self.is_closing() {
            // A training still under way is awaited as long as the others wait, so that all mix it.
            return self.training.ordered.is_some() && round == self.training_rounds() && !self.others_are_through();
        }
        if let Some(ordered) = self.training.ordered {
            let is_due = ordered.round == round;
            self.tally.ordered_ahead = (is_due && ordered.is_ahead).then_some(ordered.at);
            return is_due || self.follows_beside_training();
        }
        if self.others_are_through() {
            return false;
        }
        self.order_training(round);
        true
    }

    /// Orders the training of a round from the present ratio.
    pub(super) fn order_training(&mut self, round: u64) {
        let local_steps = self.config.schedule.local_steps();
        let from = self.push_sum.ratio();
        let time_box = self.time_box();
        let last_factor = self.training.last_factor;
        let is_ahead = round > self.round();
        self.training.ordered = Some(Ordered { number: round, round, is_ahead, local_steps, at: self.now });
        let rounds_left = self.training_rounds().saturating_sub(round);
        self.effects.push(Effect::Train { round, from, local_steps, rounds_left, time_box, last_factor });
    }

    pub(super) fn on_trained(&mut self, round: u64, change: TrainedChange) {
        let Some(ordered) = self.take_ordered(round) else {
            return;
        };
        if !ordered.is_ahead {
            self.note_own_pace(ordered.at, change.steps);
        }
        if self.others_have_gone() {
            self.report(NodeEvent::DeltaSkipped { round, reason: SkippedDelta::OthersHaveGone });
            return self.go_on_without();
        }
        let arrival = self.arrival_of(ordered);
        let TrainedChange { mut delta, steps, state } = change;
        // A host that could not train at all must not spin.
        let has_trained = steps > 0;
        let joins_in = ordered.round.max(self.round());
        let left = self.rounds_of_mean(joins_in).filter(|_| arrival != Arrival::Late && has_trained);
        if left == Some(1) {
            self.lead_to_mean(&mut delta);
        }
        let step = self.measure_step(joins_in, &delta, (steps, ordered.local_steps));
        self.training.last_factor = step.map_or(0.0, |step| step.scale);
        if let Some((left, step)) = left.filter(|left| *left > 1).zip(step) {
            self.remember_for_mean(&delta, left, step.scale);
        }
        match (arrival, step) {
            (Arrival::Ahead, Some(step)) => return self.training.ready = Some(step.of(delta, state)),
            (Arrival::Awaited, Some(step)) => self.add_change(step.scale, &delta, step.norm),
            (Arrival::Late, Some(step)) => self.hold_back(step.scale, &delta),
            (_, None) => {}
        }
        // From here on records keep the state that belongs to the change.
        self.keep_host_state(state);
        match arrival {
            Arrival::Awaited => self.go_on_trained(ordered.is_ahead, has_trained),
            Arrival::Late => self.training.is_late = has_trained,
            Arrival::Ahead => {}
        }
    }

    fn arrival_of(&self, ordered: Ordered) -> Arrival {
        if ordered.round > self.round() {
            Arrival::Ahead
        } else if matches!(self.phase, Phase::Training { .. }) {
            Arrival::Awaited
        } else {
            Arrival::Late
        }
    }

    /// Goes on with a change that was awaited and is in the numerator.
    fn go_on_trained(&mut self, was_ahead: bool, has_trained: bool) {
        self.tally.trained = has_trained;
        self.note_pace_of_others();
        if has_trained {
            self.rounds_trained_ahead += u64::from(was_ahead);
            self.order_ahead();
        }
        self.begin_mixing();
    }

    /// Ends the wait for the training of a round.
    fn begin_mixing(&mut self) {
        self.phase = Phase::AwaitingRoom(self.new_wait());
    }

    /// Makes the change of the last round of training one that leads to the mean of the models after the last
    /// [`MODELS_OF_MEAN`] rounds. With models `z - c3 - c2 - c1` to `z`, where `c1` is the last change, that mean is
    /// `z - c1 + (c1 - 2 c2 - c3) / 4`. Changes add up, so that the nodes together come to the mean of their mean models,
    /// whatever the plan.
    fn lead_to_mean(&mut self, last: &mut [f32]) {
        let models = MODELS_OF_MEAN as f32;
        last.iter_mut().for_each(|last| *last /= models);
        if let Some(before) = self.training.before_last.take() {
            last.iter_mut().zip(before).for_each(|(last, before)| *last -= before / models);
        }
    }

    /// Adds a change that was taken by this factor, with so many rounds of training left, to the sum for the mean.
    fn remember_for_mean(&mut self, change: &[f32], left: u64, factor: f64) {
        let weight = MODELS_OF_MEAN.saturating_sub(left) as f32 * factor as f32;
        let sum = self.training.before_last.get_or_insert_with(|| vec![0.0; change.len()]);
        sum.iter_mut().zip(change).for_each(|(sum, change)| *sum += weight * change);
    }

    /// Rounds of training from `round` on, itself included, where they are those of the mean with which the run ends.
    fn rounds_of_mean(&self, round: u64) -> Option<u64> {
        let rounds = self.training_rounds();
        let left = rounds.saturating_sub(round);
        let is_wanted = self.config.ends_with_mean && rounds >= FEWEST_BEFORE_MEAN;
        (is_wanted && (1..MODELS_OF_MEAN).contains(&left)).then_some(left)
    }

    /// Takes the order that an answer names; `None` if there is none.
    fn take_ordered(&mut self, number: u64) -> Option<Ordered> {
        let ordered = self.training.ordered.take_if(|ordered| ordered.number == number);
        if ordered.is_none() {
            self.ignore(self.config.id, InputFault::UnexpectedTraining);
        }
        ordered
    }

    pub(super) fn on_untrained(&mut self, round: u64) {
        if self.take_ordered(round).is_none() {
            return;
        }
        self.go_on_without();
    }

    /// Goes on without a change that was awaited: with another training, unless neighbours wait for this node.
    fn go_on_without(&mut self) {
        if !matches!(self.phase, Phase::Training { .. }) {
            return;
        }
        self.training.last_factor = 0.0;
        if !self.is_awaited() && self.begin_training() {
            self.phase = self.training_phase();
        } else {
            self.begin_mixing();
        }
    }

    /// Returns `true` if a training is under way.
    pub(super) fn is_training(&self) -> bool {
        self.training.ordered.is_some()
    }

    /// Returns `true` if a training is under way that was ordered in an earlier round.
    pub(super) fn is_beside_training(&self) -> bool {
        self.training.ordered.is_some_and(|ordered| ordered.round < self.round())
    }

    /// The phase of waiting for a training that was ordered now.
    pub(super) fn training_phase(&self) -> Phase {
        let deadline = self.config.training_deadline.map(|deadline| self.now + deadline);
        // Once the last rounds are mixed, no other node waits longer than that.
        let patience = self.is_closing().then(|| self.clock.deadline(self.now));
        Phase::Training { give_up_at: deadline.into_iter().chain(patience).min() }
    }

    /// Goes on without the change of a training that takes too long: it is not awaited again until it has come.
    pub(super) fn try_go_on_untrained(&mut self, give_up_at: Option<Time>) -> bool {
        let is_past = |at: Option<Time>| at.is_some_and(|at| self.now >= at);
        let is_late = is_past(give_up_at);
        if !is_late && !is_past(self.keeps_up_until()) {
            return false;
        }
        // In the last rounds it is given up instead, and that is reported.
        if is_late && !self.is_closing() {
            let round = self.training.ordered.map_or(self.round(), |ordered| ordered.number);
            self.report(NodeEvent::TrainingLate { round });
        }
        self.note_pace_of_others();
        self.begin_mixing();
        true
    }

    /// Carries a training under way over to a new plan, as that of its first round. A node that begins with another
    /// node's model cannot use what it learns on its own: the host must not answer that order.
    pub(super) fn carry_training_over(&mut self, keeps_model: bool) {
        self.set_ready_aside();
        let TrainingState { ordered, .. } = std::mem::take(&mut self.training);
        self.training.ordered = ordered.map(|ordered| Ordered { round: 0, is_ahead: false, ..ordered });
        if !keeps_model {
            self.give_up_training(SkippedDelta::OtherModel);
        }
    }

    /// Withdraws the order of a training under way, and reports why: the host must not answer it.
    pub(super) fn give_up_training(&mut self, reason: SkippedDelta) {
        if let Some(Ordered { number: round, .. }) = self.training.ordered.take() {
            self.report(NodeEvent::DeltaSkipped { round, reason });
        }
    }
}
