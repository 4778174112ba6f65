//! Orders of local training, with the momentum across rounds that the present plan bears.

use mingle_planner::Plan;
use mingle_protocol::{Effect, MomentumAcrossRounds, MomentumError};

use super::Driver;
use crate::error::Result;
use crate::events::Event;
use crate::plan;
use crate::training::thread::TrainingOrder;
use crate::training::{LocalTraining, MomentumStep, TrainingWithMomentum};

/// The momentum across rounds of a peer.
pub(crate) struct Momentum {
    choice: MomentumAcrossRounds,
    /// The momentum under the present plan.
    now: f64,
    /// Set when this peer went on with a model of others: the next round begins anew.
    restarts: bool,
}

impl Momentum {
    /// The momentum under this plan, and `training` with it.
    ///
    /// # Errors
    /// The plan does not bear the momentum that was chosen.
    pub(crate) fn begin(
        choice: MomentumAcrossRounds,
        plan: &Plan,
        training: Box<dyn LocalTraining>,
    ) -> Result<(Self, Box<dyn LocalTraining>)> {
        let now = plan::momentum(choice, plan)?;
        let training = TrainingWithMomentum::new(training, choice != MomentumAcrossRounds::Off);
        Ok((Self { choice, now, restarts: false }, Box::new(training)))
    }

    /// Goes on under another plan. Returns a warning if that plan does not bear the momentum that was chosen.
    fn renew(&mut self, plan: &Plan, is_other_model: bool) -> Option<String> {
        self.restarts |= is_other_model;
        let refused = self.choice.under(|| plan.largest_momentum()).err();
        self.now = self.choice.lowered_to(|| plan.largest_momentum());
        refused.map(|refused: MomentumError| format!("the new plan: {refused}; this peer goes on with {}", self.now))
    }
}

impl Driver<'_> {
    /// Orders the local steps of a round. Other effects are no orders.
    pub(super) fn order_training(&mut self, effect: Effect) -> Result {
        let Effect::Train { round, from, local_steps, rounds_left, time_box, last_factor } = effect else {
            return Ok(());
        };
        let momentum = MomentumStep {
            momentum: self.parts.momentum.now,
            weight: self.node.config().schedule.stationary_weight(self.node.id(), self.node.step()),
            restarts: std::mem::take(&mut self.parts.momentum.restarts),
        };
        let rounds_before = self.first_round;
        let order =
            TrainingOrder { round, rounds_before, from, local_steps, rounds_left, time_box, last_factor, momentum };
        self.training.order(order, &self.parts.training)
    }

    /// Takes the momentum that the present plan bears, after a change of plan.
    pub(super) fn renew_momentum(&mut self, is_other_model: bool) {
        let plan = &self.member.connections.place.plan.plan;
        if let Some(message) = self.parts.momentum.renew(plan, is_other_model) {
            self.member.log.tell(Event::Warning { message });
        }
    }
}
