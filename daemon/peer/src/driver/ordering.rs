//! Orders of local training, with the momentum across rounds that the present plan bears.

use mingle_protocol::Effect;

use super::Driver;
use crate::error::Result;
use crate::events::Event;
use crate::training::thread::TrainingOrder;

impl Driver<'_> {
    /// Orders the local steps of a round. Other effects are no orders.
    pub(super) fn order_training(&mut self, effect: Effect) -> Result {
        let Effect::Train { round, from, local_steps, rounds_left, time_box, last_factor } = effect else {
            return Ok(());
        };
        let weight = self.node.config().schedule.stationary_weight(self.node.id(), self.node.step());
        let (rounds_before, momentum) = (self.first_round, self.parts.momentum.of_round(weight));
        let order =
            TrainingOrder { round, rounds_before, from, local_steps, rounds_left, time_box, last_factor, momentum };
        self.training.order(order, &self.parts.training)
    }

    /// Takes the momentum that the present plan bears, after a change of plan.
    pub(super) fn renew_momentum(&mut self, is_other_model: bool) {
        let plan = &self.member.connections.place.plan.plan;
        if let Some(message) = self.parts.momentum.renew(is_other_model, || plan.largest_momentum()) {
            self.member.log.tell(Event::Warning { message });
        }
    }
}
