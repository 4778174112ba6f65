//! What a step consists of: train, wait for room, split, wait for parcels, absorb.

use std::time::Duration;

use super::{Node, Phase, Wait};
use crate::config::WaitPolicy;
use crate::effect::{Effect, Event, Fault, RoundReport, SkippedDelta, Suspension};
use crate::link::{InLink, WINDOW};
use crate::mass::Mass;
use crate::message::{Message, Parcel, ParcelHeader};
use crate::payload::first_unusable;
use crate::peer::Peer;
use crate::schedule::{NodeId, OutShare};

/// A node that was never sent anything splits all the same after this many hungry steps: parcels that would have fed it
/// may have died with a neighbour, and someone has to start again.
const LONGEST_FAST: u32 = 16;

/// What happened in the present round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTally {
    trained: bool,
    waited: Duration,
    absorbed: u32,
    apart: f64,
    own: f64,
}

/// Whether the node has been fed since it last split. A node that sends half of what it has and is sent nothing starves
/// within tens of rounds (finding F1 and the rule "never starve yourself").
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Appetite {
    due: bool,
    fed: bool,
    /// A parcel was absorbed in the present step.
    fed_in_step: bool,
    /// Anything was heard from an in-neighbour in the present step.
    heard_in_step: bool,
    fasts: u32,
}

impl Appetite {
    /// A parcel was absorbed.
    fn feed(&mut self) {
        self.fed = true;
        self.fed_in_step = true;
        self.heard_in_step = true;
        self.fasts = 0;
    }

    /// An in-neighbour went on, with or without a parcel.
    pub(super) fn hear(&mut self) {
        self.heard_in_step = true;
    }

    /// Parcels sent to a neighbour died or left with it: they cannot come back, so sending once more is allowed.
    pub(super) fn excuse(&mut self) {
        self.fed = true;
    }

    fn is_hungry(&self) -> bool {
        self.due && !self.fed && self.fasts < LONGEST_FAST
    }

    fn split(&mut self) {
        self.due = false;
        self.fed = false;
        self.fasts = 0;
    }

    fn fast(&mut self) {
        self.fasts += 1;
    }

    fn next_step(&mut self) {
        self.fed_in_step = false;
        self.heard_in_step = false;
    }
}

impl Node {
    /// Goes on until something has to be waited for.
    pub(super) fn advance(&mut self) {
        while match self.phase {
            Phase::Gathering { give_up_at } => self.try_start(give_up_at),
            Phase::BeforeStep => self.begin_step(),
            Phase::Training | Phase::Drained => false,
            Phase::AwaitingRoom(wait) => self.try_split(wait),
            Phase::AwaitingParcels(wait) => self.try_finish_step(wait),
            Phase::Draining { give_up_at } => self.try_finish_draining(give_up_at),
        } {}
    }

    /// Everyone is here, or a restarted node has waited long enough for those who are.
    fn try_start(&mut self, give_up_at: Option<crate::time::Time>) -> bool {
        if !self.started {
            return false;
        }
        if self.stopping {
            return self.begin_draining();
        }
        let greeted = self.peers.values().filter(|peer| peer.mutual).count();
        let waited_enough = give_up_at.is_some_and(|at| self.now >= at) && greeted > 0;
        if greeted < self.peers.len() && !waited_enough {
            return false;
        }
        if self.config.identity.incarnation > 1 {
            self.step = self.catch_up_step();
        }
        self.report(Event::Started { step: self.step });
        self.peers
            .values_mut()
            .for_each(|peer| peer.ack_owed = true);
        self.phase = Phase::BeforeStep;
        self.absorb_on_arrival();
        true
    }

    /// The start of the first period that no neighbour has entered yet.
    fn catch_up_step(&self) -> u64 {
        let ahead = self
            .peers
            .values()
            .map(|peer| peer.passed)
            .max()
            .unwrap_or(0);
        let period = self.config.schedule.period();
        ahead
            .div_ceil(period)
            .saturating_mul(period)
            .min(self.last_step)
    }

    /// Where a node that has fallen far behind goes on: its neighbours would otherwise wait for it in vain in every
    /// step, and it would hold their parcels for steps it will not reach for a long time. `None` while it keeps up.
    ///
    /// Without faults nobody ever jumps: a receiver of ours cannot be further ahead than the staleness allows, nor in
    /// a synchronous swarm a sender further than its window, unless they have gone on without us. An asynchronous node
    /// jumps only to the end, once everyone else has got there.
    fn overdue_step(&self) -> Option<u64> {
        let (allowed, is_bound_to_us): (u64, fn(&Peer) -> bool) = match self.config.policy {
            WaitPolicy::Sync => (WINDOW as u64, |_| true),
            WaitPolicy::Bounded { staleness } => {
                (staleness.max(WINDOW as u64), |peer| peer.outgoing.is_some())
            }
            WaitPolicy::Async => return self.everyone_is_done().then_some(self.last_step),
        };
        let slack = allowed
            .saturating_add(2)
            .saturating_mul(self.config.schedule.period());
        let horizon = self.step.saturating_add(slack);
        let left_behind = self
            .peers
            .values()
            .any(|peer| is_bound_to_us(peer) && peer.passed > horizon);
        (left_behind || self.everyone_is_done())
            .then(|| self.catch_up_step())
            .filter(|step| *step > self.step)
    }

    /// Whether some neighbour has reached the end and no other can still be heard on the way there.
    fn everyone_is_done(&self) -> bool {
        let is_done = |peer: &&Peer| peer.passed >= self.last_step;
        self.step < self.last_step
            && self.peers.values().any(|peer| is_done(&peer))
            && !self
                .peers
                .values()
                .any(|peer| peer.is_active() && !is_done(&peer))
    }

    fn begin_step(&mut self) -> bool {
        if let Some(step) = self.overdue_step() {
            self.report(Event::CaughtUp {
                from: self.step,
                to: step,
            });
            self.step = step;
            self.absorb_until(step);
        }
        if self.stopping || self.step >= self.last_step || self.is_left_alone() {
            return self.begin_draining();
        }
        self.split_done = false;
        self.appetite.next_step();
        if self.step.is_multiple_of(self.config.schedule.period()) {
            self.clock.start(self.now);
            self.tally = RoundTally::default();
            if self.begin_training() {
                self.phase = Phase::Training;
                return false;
            }
        }
        self.phase = Phase::AwaitingRoom(self.new_wait());
        true
    }

    /// Nobody will ever send or take mass again, and there is none to train on or nothing to train.
    fn is_left_alone(&self) -> bool {
        let no_input = self
            .peers
            .values()
            .all(|peer| peer.incoming.as_ref().is_none_or(InLink::is_complete));
        let no_output = self
            .peers
            .values()
            .all(|peer| peer.outgoing.as_ref().is_none_or(|link| !link.is_open()));
        let trains = self.config.schedule.local_steps() > 0;
        no_input && (!self.push_sum.has_working_mass() || (no_output && !trains))
    }

    /// Asks the host to train; false when there is nothing to train, or nothing to train on.
    fn begin_training(&mut self) -> bool {
        let schedule = &self.config.schedule;
        let local_steps = schedule.local_steps();
        if local_steps == 0 || schedule.stationary_weight(self.config.id, self.step) <= 0.0 {
            return false;
        }
        let round = self.round();
        if !self.push_sum.has_working_mass() {
            self.report(Event::DeltaSkipped {
                round,
                reason: SkippedDelta::NoMass,
            });
            return false;
        }
        let from = self.push_sum.ratio();
        self.effects.push(Effect::Train {
            round,
            from,
            local_steps,
        });
        true
    }

    pub(super) fn on_trained(&mut self, round: u64, delta: &[f32]) {
        if self.phase != Phase::Training || round != self.round() {
            let fault = Fault::UnexpectedTraining;
            self.report(Event::Ignored {
                peer: self.config.id,
                fault,
            });
            return;
        }
        if let Some(reason) = self.flaw_of(delta) {
            self.report(Event::DeltaSkipped { round, reason });
        } else {
            // The guarded step (F3): while w is low because mass is under way, so is the step.
            let usual = self
                .config
                .schedule
                .stationary_weight(self.config.id, self.step);
            let scale = (self.mass().to_f64() / usual).min(1.0);
            self.push_sum.step(scale as f32, delta);
        }
        self.tally.trained = true;
        self.phase = Phase::AwaitingRoom(self.new_wait());
    }

    fn flaw_of(&self, delta: &[f32]) -> Option<SkippedDelta> {
        let expected = self.dimension();
        if delta.len() != expected {
            return Some(SkippedDelta::WrongDimension {
                got: delta.len(),
                expected,
            });
        }
        first_unusable(delta).map(|_| SkippedDelta::NotFinite)
    }

    fn new_wait(&self) -> Wait {
        Wait {
            since: self.now,
            deadline: self.clock.deadline(self.now),
        }
    }

    /// Splits once every receiver of this step has room, or time is up.
    fn try_split(&mut self, wait: Wait) -> bool {
        if self.stopping {
            return self.begin_draining();
        }
        let full = self.full_out_neighbours();
        if !full.is_empty() && self.now < wait.deadline {
            return false;
        }
        self.end_wait(wait, full);
        self.split();
        self.phase = Phase::AwaitingParcels(self.new_wait());
        true
    }

    /// Receivers of this step whose window is full. Only a synchronous swarm waits for them.
    fn full_out_neighbours(&self) -> Vec<NodeId> {
        if self.config.policy != WaitPolicy::Sync {
            return Vec::new();
        }
        let is_full = |peer: &Peer| {
            peer.is_active()
                && peer
                    .outgoing
                    .as_ref()
                    .is_some_and(|link| link.is_open() && !link.has_room())
        };
        let links = self.config.schedule.out_links(self.config.id, self.step);
        links
            .iter()
            .map(|link| link.to)
            .filter(|to| self.peers.get(to).is_some_and(is_full))
            .collect()
    }

    /// Cuts the mass along this step's links and sends it. A share whose link cannot take it stays home.
    fn split(&mut self) {
        let schedule = std::sync::Arc::clone(&self.config.schedule);
        let links = schedule.out_links(self.config.id, self.step);
        let keeps = schedule.keeps(self.config.id, self.step);
        self.split_done = true;
        if links.is_empty() {
            return;
        }
        let cuts = if keeps && self.appetite.is_hungry() {
            Vec::new()
        } else {
            self.cut(links, keeps)
        };
        let outgoing = Mass::from_units(cuts.iter().map(|(_, mass)| mass.units()).sum());
        if cuts.is_empty() {
            self.appetite.fast();
        } else if let Some(payload) = self.push_sum.split(outgoing) {
            self.appetite.split();
            for &(to, mass) in &cuts {
                self.send_parcel(to, mass, &payload);
            }
        } else if self.push_sum.has_working_mass() {
            self.report(Event::OwnRatioUnusable { step: self.step });
        }
        // Those who get no parcel are told that none is coming.
        for link in links {
            if let Some(peer) = self.peers.get_mut(&link.to) {
                peer.ack_owed |= peer.mutual;
            }
        }
    }

    /// The mass for every link that can take a parcel; empty masses are left out.
    fn cut(&self, links: &[OutShare], keeps: bool) -> Vec<(NodeId, Mass)> {
        let whole = self.mass();
        let can_take =
            |link: &&OutShare| self.peers.get(&link.to).is_some_and(Peer::can_take_parcel);
        let mut cuts: Vec<(NodeId, Mass)> = links
            .iter()
            .filter(can_take)
            .map(|link| (link.to, whole.portion(link.share)))
            .collect();
        if !keeps && cuts.len() == links.len() {
            // Everything goes: the units lost to rounding down go with the last parcel.
            let sent: u64 = cuts.iter().map(|(_, mass)| mass.units()).sum();
            if let Some((_, last)) = cuts.last_mut() {
                *last = Mass::from_units(last.units() + (whole.units() - sent));
            }
        }
        cuts.retain(|(_, mass)| !mass.is_zero());
        cuts
    }

    fn send_parcel(&mut self, to: NodeId, mass: Mass, payload: &crate::payload::Payload) {
        let (step, now, after) = (self.step, self.now, self.config.retransmit_after);
        let Some(peer) = self.peers.get_mut(&to) else {
            return;
        };
        let receiver_incarnation = peer.incarnation();
        let Some(link) = &mut peer.outgoing else {
            return;
        };
        let base = link.base();
        let seq = link.push(step, mass, payload.clone()).seq;
        link.arm(now, after);
        let header = ParcelHeader {
            generation: self.config.generation,
            sender_incarnation: self.config.identity.incarnation,
            receiver_incarnation,
            base,
            seq,
            step,
            mass,
        };
        self.send(
            to,
            Message::Parcel(Parcel {
                header,
                payload: payload.clone(),
            }),
        );
    }

    /// Absorbs and goes on once the wait policy is content, or time is up.
    fn try_finish_step(&mut self, wait: Wait) -> bool {
        let missing = self.awaited_in_neighbours();
        if self.now < wait.deadline && (!missing.is_empty() || self.has_nothing_to_go_on()) {
            return false;
        }
        if missing.is_empty() && self.now >= wait.deadline {
            self.clock.discount(self.now.since(wait.since));
        }
        self.end_wait(wait, missing);
        self.absorb_until(self.step);
        self.answer_those_who_passed();
        let due = self
            .config
            .schedule
            .in_neighbours(self.config.id, self.step);
        self.appetite.due |= !due.is_empty();
        self.step += 1;
        self.split_done = false;
        if self.step.is_multiple_of(self.config.schedule.period()) {
            self.finish_round();
        }
        self.phase = Phase::BeforeStep;
        true
    }

    /// In-neighbours that had no parcel for this step learn that we went on: the word of an Ack is all they get.
    fn answer_those_who_passed(&mut self) {
        let schedule = &self.config.schedule;
        for from in schedule.in_neighbours(self.config.id, self.step) {
            if let Some(peer) = self.peers.get_mut(from) {
                peer.ack_owed |= peer.mutual;
            }
        }
    }

    /// The neighbours the policy waits for in this step.
    fn awaited_in_neighbours(&self) -> Vec<NodeId> {
        let schedule = &self.config.schedule;
        let (candidates, lag) = match self.config.policy {
            WaitPolicy::Async => return Vec::new(),
            WaitPolicy::Sync => (schedule.in_neighbours(self.config.id, self.step), 0),
            WaitPolicy::Bounded { staleness } => (
                schedule.all_in_neighbours(self.config.id),
                staleness.saturating_mul(schedule.period()),
            ),
        };
        let Some(horizon) = self.step.checked_sub(lag) else {
            return Vec::new();
        };
        let is_behind = |peer: &Peer| {
            let Some(step) = schedule.last_use(peer.id, self.config.id, horizon) else {
                return false;
            };
            peer.is_active()
                && peer
                    .incoming
                    .as_ref()
                    .is_some_and(|link| !link.is_settled_for(step))
        };
        candidates
            .iter()
            .copied()
            .filter(|from| self.peers.get(from).is_some_and(is_behind))
            .collect()
    }

    /// A node that did not train and was sent nothing would only spin: it lets time pass instead, as long as someone
    /// could still send it something.
    fn has_nothing_to_go_on(&self) -> bool {
        if self.tally.trained {
            return false;
        }
        let due = self
            .config
            .schedule
            .in_neighbours(self.config.id, self.step);
        let due = || due.iter().filter_map(|from| self.peers.get(from));
        if due().all(|peer| peer.incoming.as_ref().is_none_or(InLink::is_complete)) {
            return false;
        }
        if !due().any(Peer::is_active)
            && self
                .peers
                .values()
                .any(|peer| peer.is_active() && peer.passed > self.step)
        {
            // Nothing can come, and the others are getting ahead.
            return false;
        }
        match self.config.policy {
            // In step with its neighbours, word that no parcel is coming is enough; otherwise only mass is.
            WaitPolicy::Sync => !self.appetite.heard_in_step && !self.has_due_parcel(),
            WaitPolicy::Bounded { .. } | WaitPolicy::Async => !self.appetite.fed_in_step,
        }
    }

    /// Whether a parcel of this step or an earlier one is queued.
    fn has_due_parcel(&self) -> bool {
        let oldest = |peer: &Peer| peer.incoming.as_ref().and_then(InLink::oldest_step);
        self.peers
            .values()
            .filter_map(oldest)
            .any(|step| step <= self.step)
    }

    /// Books the time of a wait; neighbours that let it run out are suspended.
    fn end_wait(&mut self, wait: Wait, missing: Vec<NodeId>) {
        let waited = self.now.since(wait.since);
        self.tally.waited += waited;
        if missing.is_empty() {
            return;
        }
        for &peer in &missing {
            self.suspend(peer, Suspension::Late);
        }
        self.report(Event::DeadlineMissed {
            step: self.step,
            missing,
            waited,
        });
    }

    /// Absorbs what has arrived, unless the order of absorption has to wait for its step.
    pub(super) fn absorb_on_arrival(&mut self) {
        match self.phase {
            Phase::Gathering { .. } => {}
            Phase::Draining { .. } | Phase::Drained => self.absorb_until(u64::MAX),
            _ if self.config.policy == WaitPolicy::Sync => {}
            _ => self.absorb_until(u64::MAX),
        }
    }

    /// Absorbs every queued parcel of `step` or before, by ascending neighbour and number.
    pub(super) fn absorb_until(&mut self, step: u64) {
        let peers: Vec<NodeId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.absorb_from(peer, step);
        }
    }

    pub(super) fn absorb_from(&mut self, from: NodeId, step: u64) {
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        let Some(link) = &mut peer.incoming else {
            return;
        };
        while link.oldest_step().is_some_and(|oldest| oldest <= step) {
            let Some(parcel) = link.pop() else {
                break;
            };
            peer.ack_owed = true;
            self.appetite.feed();
            self.tally.absorbed += 1;
            // The sum cannot overflow: parcels that would exceed the swarm's whole mass are never queued.
            if let Ok(Some(distance)) = self.push_sum.absorb(parcel.mass, &parcel.payload) {
                self.tally.apart += distance.apart;
                self.tally.own += distance.own;
            }
        }
    }

    fn finish_round(&mut self) {
        let took = self.clock.finish(self.now);
        let RoundTally {
            waited,
            absorbed,
            apart,
            own,
            ..
        } = self.tally;
        let disagreement = (apart / own).sqrt();
        self.report(Event::RoundFinished(RoundReport {
            round: self.round() - 1,
            step: self.step,
            mass: self.mass(),
            stationary_weight: self
                .config
                .schedule
                .stationary_weight(self.config.id, self.step),
            disagreement: disagreement.is_finite().then_some(disagreement),
            absorbed,
            waited,
            took,
        }));
    }
}
