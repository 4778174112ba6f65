//! Requests of others to a running peer, and its change to a new plan of the operator.
//!
//! ```text
//!   told of a newer plan -> is the model up to date?  no: fetch one from a member
//!                        -> close the streams of the old plan, open those of the new one
//!                        -> the node enters the generation: weight 1, the ratio it has or was given
//! ```
//!
//! No peer waits for another: a peer that changes later refuses, or is refused by, those that changed before, and
//! receives the plan from them.

use std::sync::Arc;

use mingle_net::objections::Objection;
use mingle_protocol::{Durability, Input, NewGeneration, RecordRoom};

use super::Driver;
use crate::error::Result;
use crate::event_loop::EventReceivers;
use crate::events::{EarlyEnd, Event, ModelOf};
use crate::membership::{self, Borrowed, CheckedPlan, MemberKeys, PlanVerdict, Standing, Wanted};
use crate::place::Place;
use crate::records::Room;

impl Driver<'_> {
    pub(super) async fn on_wanted(&mut self, wanted: Wanted, receivers: &mut EventReceivers) -> Result {
        match self.member.answer(wanted) {
            // The receiver of the answer may be gone.
            Some(Wanted::Model(answer)) => drop(answer.send(self.has_the_model().then(|| self.model_of_the_swarm()))),
            Some(Wanted::Standing(answer)) => drop(answer.send(self.standing())),
            Some(Wanted::OtherTask(node, difference)) => {
                self.missing.has_answered(node);
                self.object(node, Objection::other_task(&difference, self.parts.advice.same_task))?;
                self.give_up_waiting_for(node)?;
            }
            Some(Wanted::Missing(node, word)) => self.on_word_of_the_missing(node, &word)?,
            Some(Wanted::Plan(plan, answer)) => {
                let verdict = self.on_plan(*plan, receivers).await?;
                let _ = answer.send(verdict);
            }
            Some(Wanted::PlanWithModel(plan, borrowed)) if !self.drained => {
                self.fetching = None;
                borrowed.warning().into_iter().for_each(|message| self.member.warn(message));
                let Borrowed { donors, model, .. } = borrowed;
                self.member
                    .log
                    .tell(Event::Borrowed(ModelOf { peers: donors.iter().map(ToString::to_string).collect() }));
                self.cut_over(*plan, Some(model), receivers).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if this peer holds a model of the swarm.
    fn has_the_model(&self) -> bool {
        self.joined || self.parts.begins_with_a_model_of_the_swarm
    }

    /// The model for a peer that has none. In the first round it is the one that all begin with: the own steps of this
    /// peer are not mixed yet, and peers that begin together begin alike.
    fn model_of_the_swarm(&mut self) -> Arc<[f32]> {
        let first = self.first_model.clone().filter(|_| self.node.round() == 0);
        first.unwrap_or_else(|| self.node.ratio())
    }

    fn standing(&self) -> Standing {
        let left = self.node.neighbour_views().filter(|neighbour| neighbour.has_left);
        Standing {
            round: self.rounds,
            last_round: self.last_round(),
            costs: self.round_costs(),
            rounds_of_task: self.parts.rounds,
            rounds_to_end: self.parts.config.policy.shortest_run(&self.parts.config.schedule),
            wish: self.parts.end_wish.get(),
            left: left.filter_map(|neighbour| self.member.connections.peer(neighbour.id)).collect(),
        }
    }

    async fn on_plan(&mut self, plan: CheckedPlan, receivers: &mut EventReceivers) -> Result<PlanVerdict> {
        if let Some(verdict) = self.member.verdict_on(&plan) {
            return Ok(verdict);
        }
        if self.fetching.is_some_and(|fetched| !plan.generation().replaces(&fetched)) {
            // It changes to this plan, or a newer one, as soon as it has a model for it.
            return Ok(PlanVerdict::Taken);
        }
        if self.drained {
            return Ok(PlanVerdict::Refused("this peer is done with the plan it had, and is going".to_owned()));
        }
        if !self.member.is_named_by(&plan) {
            // The other peers of the old plan go on without this one; its model is written as at any other end.
            self.gave_up = true;
            self.drained = true;
            return Ok(PlanVerdict::Taken);
        }
        match Place::of(plan.clone(), String::new(), self.member.local) {
            Err(failure) => return Ok(PlanVerdict::Refused(format!("{failure:#}"))),
            Ok(place) if self.parts.records.is_some() => {
                let links = RecordRoom::of(&place.schedule, place.node);
                if let Err(error) = Room::new(self.node.dimension(), links) {
                    return Ok(PlanVerdict::Refused(error.to_string()));
                }
            }
            Ok(_) => {}
        }
        if self.node.is_fresh() {
            self.cut_over(plan, None, receivers).await?;
        } else {
            self.borrow_model_for(plan);
        }
        Ok(PlanVerdict::Taken)
    }

    /// Fetches a model from the other members. When it has arrived, the peer changes to the plan with it.
    fn borrow_model_for(&mut self, plan: CheckedPlan) {
        let Ok(place) = Place::of(plan.clone(), String::new(), self.member.local) else { return };
        let service = self.member.service.clone();
        let streams = self.member.network.streams.clone();
        let dimension = self.node.dimension();
        let max_norm = self.parts.config.largest_norm.unwrap_or(f64::INFINITY);
        self.fetching = Some(plan.generation());
        tokio::spawn(async move {
            let borrowed = membership::borrow_model(streams, place.others(), dimension, max_norm).await;
            service.hand_in(Wanted::PlanWithModel(Box::new(plan), borrowed)).await;
        });
    }

    /// Changes to a plan that names this peer.
    async fn cut_over(&mut self, plan: CheckedPlan, model: Option<Vec<f32>>, receivers: &mut EventReceivers) -> Result {
        if !plan.generation().replaces(&self.parts.config.generation) {
            return Ok(());
        }
        if model.is_some() {
            self.training.forget();
        }
        let boot_nonce = self.parts.config.identity.boot_nonce;
        let dimension = self.node.dimension();
        self.member.take_up(plan, boot_nonce, dimension, receivers).await?;
        let place = &self.member.connections.place;
        self.first_round = place.plan.first_round();
        if place.plan.ends_early(self.parts.rounds) {
            self.member.log.tell(Event::EarlyEnd(EarlyEnd { last_round: place.plan.last_round(self.parts.rounds) }));
        }
        let new = NewGeneration {
            generation: place.plan.generation(),
            schedule: place.schedule.clone(),
            id: place.node,
            keys: Arc::new(MemberKeys::new(&self.parts.keypair, &place.peers)),
            rounds: place.plan.rounds(self.parts.rounds),
            ratio: model,
        };
        let config = &mut self.parts.config;
        config.generation = new.generation;
        config.rounds = new.rounds;
        config.id = new.id;
        config.schedule = new.schedule.clone();
        config.keys = new.keys.clone();
        // Lives are counted within a generation, as in the node.
        config.identity.incarnation = 1;
        if config.durability == Durability::Off {
            self.member.home.spend_incarnation(&place.hash, 1)?;
        }
        self.watching.follow(&place.peers);
        self.renew_momentum(new.ratio.is_some());
        self.renew_noise();
        self.tell_encodings();
        self.feed(Input::Enter(Box::new(new)))
    }
}
