//! Orders of local training, with the momentum across rounds that the present plan bears and the noise that members
//! share, and the answers to them.

use std::sync::Arc;

use mingle_protocol::{Effect, Input};

use super::ending::FINAL;
use super::{Driver, UnderEvaluation};
use crate::error::Result;
use crate::events::Event;
use crate::membership::PlaceOfNoise;
use crate::place::Place;
use crate::training::Trained;
use crate::training::thread::{JobResult, TrainingOrder};

impl Driver<'_> {
    /// Orders the local steps of a round. Other effects are no orders.
    pub(super) fn order_training(&mut self, effect: Effect) -> Result {
        let Effect::Train { round, from, local_steps, rounds_left, time_box, last_factor } = effect else {
            return Ok(());
        };
        let schedule = &self.node.config().schedule;
        let weight = schedule.stationary_weight(self.node.id(), round * schedule.round_length());
        // Where each peer has the first model from its own training, none asks for it.
        let is_first = self.first_round + round == 0;
        if is_first && self.parts.begins_with_a_model_of_the_swarm {
            self.first_model = Some(Arc::clone(&from));
        } else if self.first_round + self.node.round() > 0 {
            self.first_model = None;
        }
        let rounds_before = self.first_round;
        let momentum = self.parts.momentum.of_round(weight);
        let noise = self.noise.now();
        let order = TrainingOrder {
            round,
            rounds_before,
            from,
            local_steps,
            rounds_left,
            time_box,
            last_factor,
            momentum,
            noise,
        };
        self.training.order(order, &self.parts.training)
    }

    /// Takes the momentum that the present plan bears, after a change of plan.
    pub(super) fn renew_momentum(&mut self, is_other_model: bool) {
        let plan = &self.member.connections.place.plan.plan;
        if let Some(message) = self.parts.momentum.renew(is_other_model, || plan.largest_momentum()) {
            self.member.log.tell(Event::Warning { message });
        }
    }

    /// Shares noise with members of the present plan, where that was asked for.
    pub(super) fn renew_noise(&mut self) {
        let Place { plan, schedule, node, peers, .. } = &self.member.connections.place;
        let hash = plan.plan.hash();
        let own = &self.parts.keypair;
        let place = PlaceOfNoise { plan: hash.as_bytes(), schedule, node: *node, members: peers, own };
        let settings = self.parts.privacy.map(|spending| spending.settings);
        let event = match self.noise.renew(settings, place) {
            Ok(shared) => shared.map(Event::Noise),
            Err(refused) => {
                let message = format!("--dp-colluders: {refused}; until then all noise on a change is this peer's own");
                Some(Event::Warning { message })
            }
        };
        event.into_iter().for_each(|event| self.member.log.tell(event));
    }

    /// Handles the result of a training or of an evaluation.
    pub(super) fn on_answer(&mut self, answer: JobResult) -> Result {
        match answer {
            JobResult::Untrained { round } => {
                let counts = self.training.end(&self.parts.training)?;
                if counts { self.feed(Input::Untrained { round }) } else { Ok(()) }
            }
            JobResult::Trained { round, trained, took, state, privacy } => {
                let counts = self.training.end(&self.parts.training)?;
                let Trained { change: delta, steps, loss } = trained;
                if steps > 0 {
                    self.train_loss = loss;
                    self.watching.note_local_steps(steps, took);
                }
                self.note_privacy(privacy);
                let state = state.into();
                if counts { self.feed(Input::Trained { round, delta, steps, state }) } else { Ok(()) }
            }
            JobResult::Evaluated { round: FINAL, evaluation } => {
                self.check_divergence(&evaluation, true)?;
                if let Some(best) = self.parts.best.as_mut().filter(|_| evaluation.is_whole) {
                    best.consider(self.rounds, &evaluation.metrics, self.node.ratio());
                }
                self.final_evaluation =
                    Some(if evaluation.is_whole { (evaluation, None) } else { self.best_known(evaluation) });
                Ok(())
            }
            JobResult::Evaluated { evaluation, .. } => {
                let evaluated = self.evaluating.take().filter(|_| evaluation.is_whole);
                if let Some(UnderEvaluation { rounds, report, model }) = evaluated {
                    self.tell_evaluation(rounds, &report, &evaluation);
                    if let Some(best) = &mut self.parts.best {
                        best.consider(rounds, &evaluation.metrics, model);
                    }
                    self.last_evaluation = Some((rounds, evaluation.clone()));
                }
                self.check_divergence(&evaluation, false)
            }
            JobResult::Failed(failure) => Err(failure),
        }
    }
}
