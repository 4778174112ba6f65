//! The parts of a step: train, wait for room, split, wait for parcels, absorb.

use std::time::Duration;

use super::mass_watch::Held;
use super::peer::Neighbour;
use super::{Node, Phase, Wait};
use crate::config::WaitPolicy;
use crate::effect::{Clipped, NodeEvent, RoundReport, Suspension};
use crate::injected_bug::InjectedBug;
use crate::link::{InLink, QueuedParcel};
use crate::mass::Mass;
use crate::payload::Payload;
use crate::schedule::{NodeId, OutShare};
use crate::time::Time;

/// Statistics of the present round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTally {
    pub(super) trained: bool,
    /// The time at which the training of this round was ordered, if that was in the round before.
    pub(super) ordered_ahead: Option<Time>,
    /// Set when a step of the round was taken only because the others are ahead.
    followed: bool,
    waited: Duration,
    absorbed: u32,
    apart: f64,
    own: f64,
    pub(super) clipped: Clipped,
    /// The weight w at the first split, with that under way, and w* there. Later in the round, whether the weight given
    /// away has been replaced depends on the policy.
    held: Option<Held>,
}

impl Node {
    /// Advances until there is something to wait for.
    pub(super) fn advance(&mut self) {
        while match self.phase {
            Phase::Gathering { give_up_at } => self.try_start(give_up_at),
            Phase::BeforeStep => self.begin_step(),
            Phase::Training { give_up_at } => self.try_go_on_untrained(give_up_at),
            Phase::Drained => false,
            Phase::AwaitingRoom(wait) => self.try_split(wait),
            Phase::AwaitingParcels(wait) => self.try_finish_step(wait),
            Phase::Draining { give_up_at, end_at } => self.try_finish_draining(give_up_at, end_at),
        } {}
    }

    /// Starts once all neighbours have greeted, or the time to wait for them is over and some have.
    fn try_start(&mut self, give_up_at: Option<Time>) -> bool {
        if !self.started {
            return false;
        }
        if self.stopping {
            return self.begin_draining();
        }
        let greeted = self.peers.values().filter(|peer| peer.mutual || peer.left).count();
        let is_to_come = |peer: &Neighbour| !peer.mutual && !peer.left && !peer.is_gone;
        let waited_enough = give_up_at.is_some_and(|at| self.now >= at) || !self.peers.values().any(is_to_come);
        if greeted < self.peers.len() && !(waited_enough && greeted > 0) {
            return false;
        }
        self.anchor_beliefs();
        if self.config.identity.incarnation > 1 && !self.resumed {
            self.step = self.catch_up_step();
        }
        self.report(NodeEvent::Started { step: self.step });
        self.peers.values_mut().for_each(|peer| peer.ack_owed = true);
        self.clock.start(self.now, false);
        // A record that holds the sends of its step was written while the node waited for others.
        self.phase = if self.split_done { Phase::AwaitingParcels(self.new_wait()) } else { Phase::BeforeStep };
        self.absorb_on_arrival();
        true
    }

    fn begin_step(&mut self) -> bool {
        if let Some(step) = self.overdue_step() {
            self.report(NodeEvent::CaughtUp { from: self.step, to: step });
            self.step = step;
            self.has_skipped_steps = true;
            self.absorb_until(step);
        }
        if self.stopping || self.step >= self.last_step || self.is_left_alone() {
            return self.begin_draining();
        }
        self.split_done = false;
        self.send_gate.next_step();
        if self.step.is_multiple_of(self.config.schedule.round_length()) {
            self.clock.start(self.now, self.misses_someone());
            self.tally = RoundTally::default();
            self.take_up_held_back();
            if self.begin_training() {
                self.phase = self.training_phase();
                return false;
            }
        }
        self.phase = Phase::AwaitingRoom(self.new_wait());
        true
    }

    pub(super) fn new_wait(&self) -> Wait {
        let deadline = self.clock.deadline(self.now);
        let return_ends = self.end_of_returns(deadline.since(self.now));
        Wait { since: self.now, deadline: return_ends.map_or(deadline, |end| deadline.min(end)) }
    }

    /// The time until which a node that trains no more waits for a neighbour to come back, where none is there: so long
    /// after it heard from the last one. Each of its last rounds would else wait as long anew.
    fn end_of_returns(&self, wait: Duration) -> Option<Time> {
        if !self.is_closing() || self.peers.values().any(Neighbour::is_active) {
            return None;
        }
        self.peers.values().map(|peer| peer.heard_at + wait).max()
    }

    /// Splits once every receiver of this step has room, or time is up.
    fn try_split(&mut self, wait: Wait) -> bool {
        if self.stopping {
            return self.begin_draining();
        }
        if self.commits.is_pending() {
            return false;
        }
        let full = self.full_out_neighbours();
        if !full.is_empty() && self.now < wait.deadline {
            return false;
        }
        self.end_wait(wait, full);
        let usual = self.config.schedule.stationary_weight(self.config.id, self.step);
        let own = self.w();
        let under_way = self.under_way().to_f64();
        self.tally.held.get_or_insert(Held { own, under_way, usual });
        self.measure_credit();
        self.split();
        self.commit_if_due();
        self.phase = Phase::AwaitingParcels(self.new_wait());
        true
    }

    /// Mass that was sent and that no receiver has acknowledged.
    fn under_way(&self) -> Mass {
        let links = self.peers.values().filter_map(|peer| peer.outgoing.as_ref());
        Mass::from_units(links.map(|link| link.undelivered().units()).sum())
    }

    /// Divides the mass along this step's links and sends it. The share of a link that cannot take it is kept.
    fn split(&mut self) {
        let schedule = std::sync::Arc::clone(&self.config.schedule);
        let links = schedule.out_links(self.config.id, self.step);
        let keeps = schedule.keeps(self.config.id, self.step);
        self.split_done = true;
        self.tell_those_waited_for();
        if links.is_empty() {
            return;
        }
        self.measure_floor();
        // Parcels without weight are sent at a closed gate too: they tell their receivers that nothing is kept from them.
        let is_held_up = keeps && !self.weight_floor.is_reached() && self.is_held_up(links);
        if is_held_up {
            self.pass_over(links);
        }
        let skips = is_held_up || self.has(InjectedBug::KeepsAll);
        // Where records have no room a share is kept, as where a window is full.
        let cuts = if skips || !self.has_record_room() { Vec::new() } else { self.cut(links, keeps) };
        let outgoing = Mass::from_units(cuts.iter().map(|(_, mass)| mass.units()).sum());
        if cuts.is_empty() {
            self.send_gate.skip();
        } else if let Some(payload) = self.split_off(outgoing, &cuts) {
            self.send_gate.send();
            self.weight_floor.end_split();
            let record = self.next_record();
            for &(to, mass) in &cuts {
                self.promise(to, mass, &payload, record);
            }
            self.commit(Some(payload));
            if self.may_send(record) {
                self.send_parcels_of(record);
            }
        } else if self.push_sum.has_working_mass() {
            self.report(NodeEvent::OwnRatioUnusable { step: self.step });
        }
        // Receivers without a parcel are notified by an Ack that none is coming.
        for link in links {
            if let Some(peer) = self.peers.get_mut(&link.to) {
                peer.ack_owed |= peer.mutual;
            }
        }
    }

    /// The mass for every link that can take a parcel; empty masses are left out.
    fn cut(&self, links: &[OutShare], keeps: bool) -> Vec<(NodeId, Mass)> {
        let whole = self.mass();
        let overfills = self.has(InjectedBug::IgnoresWindow);
        let can_take = |peer: &Neighbour| peer.can_take_parcel() || (overfills && peer.is_active());
        let can_take = |link: &&OutShare| self.peers.get(&link.to).is_some_and(can_take);
        let mut cuts: Vec<(NodeId, Mass)> =
            links.iter().filter(can_take).map(|link| (link.to, whole.portion(link.share))).collect();
        if !keeps && cuts.len() == links.len() {
            // All mass goes: the units lost to rounding down go with the last parcel.
            let sent: u64 = cuts.iter().map(|(_, mass)| mass.units()).sum();
            if let Some((_, last)) = cuts.last_mut() {
                *last = Mass::from_units(last.units() + (whole.units() - sent));
            }
        }
        for (to, mass) in &mut cuts {
            // The excess is kept, like the share of a link that cannot take a parcel.
            *mass = (*mass).min(self.config.schedule.heaviest_parcel(self.config.id, *to, self.step));
            if keeps && !self.has(InjectedBug::GivesWithoutCredit) {
                *mass = (*mass).min(self.credit_of(*to));
            }
        }
        if keeps {
            self.keep_floor(&mut cuts);
            self.keep_reserve(&mut cuts);
        }
        cuts.retain(|(_, mass)| !mass.is_zero());
        cuts
    }

    pub(super) fn promise(&mut self, to: NodeId, mass: Mass, payload: &Payload, record: u64) {
        let step = self.step;
        let now = self.now;
        let after = self.config.retransmit_after;
        let boot_nonce = self.config.identity.boot_nonce;
        self.peers.entry(to).and_modify(|peer| peer.passed_over = 0);
        if let Some(link) = self.peers.get_mut(&to).and_then(|peer| peer.outgoing.as_mut()) {
            link.push(step, mass, payload.clone(), record, boot_nonce);
            link.arm(now, after);
        }
        self.note_given(to, mass);
    }

    /// Absorbs and ends the step once the wait policy is satisfied, or time is up.
    fn try_finish_step(&mut self, wait: Wait) -> bool {
        let missing = self.awaited_in_neighbours();
        if self.now < wait.deadline && (!missing.is_empty() || self.has_nothing_to_go_on(wait)) {
            return false;
        }
        if self.now < self.pace_of_the_others().min(wait.deadline) {
            return false;
        }
        if self.now < self.grace_ends(wait) && self.expects_parcels() {
            return false;
        }
        if missing.is_empty() && self.now >= wait.deadline {
            self.clock.discount(self.now.since(wait.since));
        }
        self.tally.followed |= !self.tally.trained && self.follows_the_others();
        self.end_wait(wait, missing);
        self.note_pace_beside_training();
        self.absorb_until(self.step);
        self.absorb_from_far_ahead();
        self.answer_those_who_passed();
        let has_ended = |from: &NodeId| self.peers.get(from).is_some_and(Neighbour::has_ended);
        let due = self.config.schedule.in_neighbours(self.config.id, self.step);
        self.send_gate.end_step(!due.iter().all(has_ended));
        self.end_step_of_floor();
        let (at, steps) = self.steps_now;
        self.steps_now = (self.now, if at == self.now { steps + 1 } else { 1 });
        self.step += 1;
        self.split_done = false;
        if self.step.is_multiple_of(self.config.schedule.round_length()) {
            self.finish_round();
        }
        self.phase = Phase::BeforeStep;
        true
    }

    /// Notifies in-neighbours that had no parcel for this step by an Ack, their only message of it.
    fn answer_those_who_passed(&mut self) {
        let schedule = &self.config.schedule;
        for from in schedule.in_neighbours(self.config.id, self.step) {
            if let Some(peer) = self.peers.get_mut(from) {
                peer.ack_owed |= peer.mutual;
            }
        }
    }

    /// Books the time of a wait, and suspends neighbours that let it run out.
    fn end_wait(&mut self, wait: Wait, missing: Vec<NodeId>) {
        let waited = self.now.since(wait.since);
        self.tally.waited += waited;
        if missing.is_empty() {
            return;
        }
        for &peer in &missing {
            self.lose_patience(peer, waited);
            self.suspend(peer, Suspension::Late);
        }
        self.report(NodeEvent::DeadlineMissed { step: self.step, missing, waited });
    }

    /// Absorbs parcels that have arrived, unless the order of absorption requires waiting for their step.
    pub(super) fn absorb_on_arrival(&mut self) {
        match self.phase {
            Phase::Gathering { .. } => {}
            Phase::Draining { .. } | Phase::Drained => self.absorb_until(u64::MAX),
            // Where all wait for all, parcels of earlier steps come only to a node that has gone on without their sender, which
            // may wait in turn until they are acknowledged.
            Phase::AwaitingParcels(_) if self.config.policy == WaitPolicy::Sync => {
                self.step.checked_sub(1).into_iter().for_each(|step| self.absorb_until(step));
            }
            _ if self.config.policy == WaitPolicy::Sync => {}
            // Late parcels only. Early ones wait for their step of the plan; otherwise the node would pass on what it
            // should keep.
            _ => self.passed().checked_sub(1).into_iter().for_each(|step| self.absorb_until(step)),
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
        while let Some(parcel) = self.next_parcel(from, step) {
            if parcel.is_refused {
                continue;
            }
            self.send_gate.absorb(parcel.step.min(self.step));
            self.tally.absorbed += 1;
            self.weight_floor.absorb(parcel.mass);
            if self.books_in_step() {
                self.note_received(from, parcel.mass);
            }
            let payload = if self.config.injected.is(InjectedBug::DropsNumerators) {
                Payload::new(&vec![0.0; self.push_sum.dimension()]).unwrap_or(parcel.payload)
            } else {
                parcel.payload
            };
            if let Some(distance) = self.absorb_parcel(from, parcel.step, parcel.mass, &payload) {
                self.tally.apart += distance.apart;
                self.tally.own += distance.own;
            }
        }
    }

    /// Takes the next parcel of `step` or before from the queue of a link. One of a later step is not looked at: the reference
    /// to decode it may be still to come.
    fn next_parcel(&mut self, from: NodeId, step: u64) -> Option<QueuedParcel> {
        let is_due = |link: &InLink| link.oldest_step().is_some_and(|oldest| oldest <= step);
        self.peers.get(&from)?.incoming.as_ref().filter(|link| is_due(link))?;
        self.resolve_next(from);
        let peer = self.peers.get_mut(&from)?;
        let parcel = peer.incoming.as_mut()?.pop()?;
        peer.ack_owed = true;
        self.commits.soil();
        Some(parcel)
    }

    /// The multiple of its usual weight that a node may hold because others are gone: the weight that they handed over
    /// is spread over the rest, and the share of an absent neighbour is kept.
    fn fair_share(&self) -> f64 {
        if self.peers.values().any(|peer| peer.left || peer.suspended.is_some()) {
            return f64::INFINITY;
        }
        let nodes = self.config.schedule.nodes();
        nodes as f64 / nodes.saturating_sub(self.departures.len()).max(1) as f64
    }

    fn finish_round(&mut self) {
        let fraction = self.clock.fraction_of_usual(self.now);
        if self.is_pace_setting() {
            self.clock.measure_pace(self.now);
        }
        // The others' claims determine the length of such a round, so it must not count as usual and make more of them
        // credible.
        let followed = self.tally.followed;
        let took = if followed { self.clock.elapsed(self.now) } else { self.clock.finish(self.now) };
        let RoundTally { waited, absorbed, apart, own, clipped, held, .. } = self.tally;
        let disagreement = (apart / own).sqrt();
        let stationary_weight = self.config.schedule.stationary_weight(self.config.id, self.step);
        // While a neighbour is out of reach, its parcels may still be on their way.
        let is_whole = self.peers.values().all(|peer| peer.suspended.is_none() || peer.incoming.is_none());
        let held = held.filter(|_| is_whole).unwrap_or_default();
        let alarm = self.mass_watch.end_round(held, fraction, self.fair_share());
        self.report(NodeEvent::RoundFinished(RoundReport {
            round: self.round() - 1,
            step: self.step,
            mass: self.mass(),
            stationary_weight,
            mass_share: self.mass_watch.share(),
            disagreement: disagreement.is_finite().then_some(disagreement),
            absorbed,
            clipped,
            waited,
            took,
        }));
        alarm.into_iter().for_each(|event| self.report(event));
        // A node that catches up runs through rounds in which nothing passes.
        self.report_keepers(fraction, if followed { fraction } else { 1.0 });
    }
}
