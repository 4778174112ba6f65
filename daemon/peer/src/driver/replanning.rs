//! What others want of a peer that runs, and how it takes up a new plan of the operator's.
//!
//! ```text
//!   told of a newer plan -> is the model up to date?  no: fetch one from a member
//!                        -> close the streams of the old plan, open those of the new one
//!                        -> the node enters the generation: weight 1, the ratio it has or was given
//! ```
//!
//! Nobody waits for anybody: a peer that comes later refuses, or is refused by, those who went before, and hears of the
//! plan from them.

use std::collections::BTreeMap;

use libp2p::PeerId;
use mingle_protocol::{Durability, Input, NewGeneration, NodeId, RecordRoom};

use super::{Driver, Sources};
use crate::error::Result;
use crate::events::Event;
use crate::membership::{self, CheckedPlan, Hall, Standing, Verdict, Wanted};
use crate::objections::Objection;
use crate::place::Place;
use crate::plan;
use crate::records::Room;
use crate::wiring::Wiring;

impl Driver<'_> {
    pub(super) async fn on_wanted(&mut self, wanted: Wanted, sources: &mut Sources) -> Result {
        match wanted {
            // Whoever asked may be gone.
            Wanted::Model(answer) => drop(answer.send(self.joined.then(|| self.node.ratio()))),
            Wanted::Standing(answer) => drop(answer.send(self.standing())),
            Wanted::Warning(message) => self.warn(message),
            Wanted::OtherTask(node, difference) => self.object(node, Objection::other_task(&difference))?,
            Wanted::Knocked(peer) => {
                let waiting = self.parts.hall.waiting();
                self.parts.board.update(|status| status.waiting = waiting);
                self.parts.log.tell(Event::Knocked { peer: peer.to_string() });
            }
            Wanted::Plan(plan, answer) => {
                let verdict = self.on_plan(*plan, sources).await?;
                let _ = answer.send(verdict);
            }
            Wanted::PlanWithModel(plan, peer, model) => {
                self.parts.log.tell(Event::Borrowed { peer: peer.to_string() });
                self.cut_over(*plan, Some(model), sources).await?;
            }
        }
        Ok(())
    }

    fn standing(&self) -> Standing {
        let left = self.node.neighbour_views().filter(|neighbour| neighbour.has_left);
        Standing {
            round: self.rounds,
            left: left.filter_map(|neighbour| self.parts.wiring.peer(neighbour.id)).collect(),
        }
    }

    async fn on_plan(&mut self, plan: CheckedPlan, sources: &mut Sources) -> Result<Verdict> {
        let ours = self.parts.config.generation;
        if plan.generation() == ours {
            return Ok(Verdict::Known);
        }
        if !plan.generation().replaces(&ours) {
            return Ok(Verdict::Older(self.parts.wiring.place.plan.offer.clone()));
        }
        if plan::node_of(&plan.plan, &self.parts.local).is_none() {
            self.parts.log.tell(Event::PlannedOut { counter: plan.generation().counter });
            // Whoever is left of the old plan goes on without this peer; its model is written as at any other end.
            self.gave_up = true;
            self.drained = true;
            return Ok(Verdict::Taken);
        }
        match Place::of(plan.clone(), String::new(), self.parts.local) {
            Err(failure) => return Ok(Verdict::Refused(format!("{failure:#}"))),
            Ok(place) if self.parts.records.is_some() => {
                let links = RecordRoom::of(&place.schedule, place.node);
                if let Err(error) = Room::new(self.parts.config.initial.len(), links) {
                    return Ok(Verdict::Refused(error.to_string()));
                }
            }
            Ok(_) => {}
        }
        if self.node.is_fresh() {
            self.cut_over(plan, None, sources).await?;
        } else {
            self.borrow_model_for(plan);
        }
        Ok(Verdict::Taken)
    }

    /// Fetches a model from the other members; when it is there, the plan is taken up with it.
    fn borrow_model_for(&mut self, plan: CheckedPlan) {
        let Ok(place) = Place::of(plan.clone(), String::new(), self.parts.local) else { return };
        let (hall, streams) = (self.parts.hall.clone(), self.parts.network.streams.clone());
        let dimension = self.parts.config.initial.len();
        tokio::spawn(async move {
            let (peer, model) = borrow_model(streams, &place, dimension).await;
            hall.hand_in(Wanted::PlanWithModel(Box::new(plan), peer, model)).await;
        });
    }

    /// Takes up a plan that names this peer.
    async fn cut_over(&mut self, plan: CheckedPlan, model: Option<Vec<f32>>, sources: &mut Sources) -> Result {
        if !plan.generation().replaces(&self.parts.config.generation) {
            return Ok(());
        }
        let origin = "from the operator".to_owned();
        let place = Place::of(plan, origin, self.parts.local)?;
        let rounds = place.plan.rounds(self.parts.rounds);
        let generation = place.plan.generation();
        let dimension = self.parts.config.initial.len();
        place.plan.keep(self.parts.home)?;
        plan::write(&place.plan.plan, &self.parts.home.plan())?;
        self.parts.hall.follow(&place.plan);
        self.first_round = place.plan.first_round();
        self.parts.log.tell(Event::NewPlan {
            counter: generation.counter,
            hash: place.hash.clone(),
            nodes: place.peers.len(),
            node: place.node.index(),
            first_round: self.first_round,
        });
        let new = NewGeneration { generation, schedule: place.schedule.clone(), id: place.node, rounds, ratio: model };
        self.training.forget();
        self.open_streams(place, dimension, sources).await?;
        (self.parts.config.generation, self.parts.config.rounds, self.parts.config.id) = (generation, rounds, new.id);
        self.parts.config.schedule = new.schedule.clone();
        // Lives are counted within a generation, as the node does.
        self.parts.config.identity.incarnation = 1;
        if self.parts.config.durability == Durability::Off {
            self.parts.home.spend_incarnation(&self.parts.wiring.place.hash, 1)?;
        }
        let place = &self.parts.wiring.place;
        self.watching.follow(&place.peers);
        self.parts.board.show_place(place);
        let waiting = self.parts.hall.waiting();
        self.parts.board.update(|status| status.waiting = waiting);
        self.parts.interface.show_plan(&place.plan.plan);
        self.tell_encodings();
        self.feed(Input::Enter(Box::new(new)))
    }

    /// Closes the streams of the present plan and opens those of another place; the node is about to forget its links.
    async fn open_streams(&mut self, place: Place, dimension: usize, sources: &mut Sources) -> Result {
        let (out, inward) = place.neighbours();
        self.parts.network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        let ended = self.parts.wiring.end().await;
        self.past += ended;
        let boot_nonce = self.parts.config.identity.boot_nonce;
        let (wiring, events) =
            Wiring::open(&self.parts.network.streams, place, boot_nonce, dimension, &self.parts.timeline)?;
        // What was still in the queue came over streams of the old plan.
        (self.parts.wiring, sources.edges) = (wiring, events);
        self.objections = crate::objections::Objections::default();
        Ok(())
    }

    /// A neighbour follows another plan: whichever of the two is newer is told to the other. False where plans are fixed.
    pub(super) fn compare_plans(&self, node: NodeId) -> bool {
        let (Some(swarm), Some(peer)) = (self.parts.swarm.clone(), self.parts.wiring.peer(node)) else { return false };
        let offer = self.parts.wiring.place.plan.offer.clone();
        let hall = self.parts.hall.clone();
        let mut streams = self.parts.network.streams.clone();
        tokio::spawn(async move {
            if let Ok(Some(Verdict::Older(newer))) = membership::announce(&mut streams, peer, &offer).await
                && let Ok(plan) = newer.check(Some(&swarm))
            {
                tell_of(&hall, plan).await;
            }
        });
        true
    }
}

async fn tell_of(hall: &Hall, plan: CheckedPlan) {
    let (answer, verdict) = tokio::sync::oneshot::channel();
    hall.hand_in(Wanted::Plan(Box::new(plan), answer)).await;
    if let Ok(Verdict::Refused(why)) = verdict.await {
        tracing::warn!(why, "a newer plan cannot be followed");
    }
}

/// The model of some other member, asked one after the other until one gives it, and who that was.
pub(crate) async fn borrow_model(
    mut streams: libp2p_stream::Control,
    place: &Place,
    dimension: usize,
) -> (PeerId, Vec<f32>) {
    let others: BTreeMap<&NodeId, &PeerId> = place.peers.iter().filter(|(node, _)| **node != place.node).collect();
    loop {
        for peer in others.values() {
            if let Some(model) = membership::fetch_model(&mut streams, **peer, dimension).await {
                return (**peer, model);
            }
        }
        tokio::time::sleep(MODEL_PAUSE).await;
    }
}

/// Between two rounds of asking for a model.
const MODEL_PAUSE: std::time::Duration = std::time::Duration::from_millis(300);
