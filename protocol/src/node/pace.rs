//! The neighbours that a step waits for, when a node lets time pass, and when it gives up its place and catches up.

use super::peer::Neighbour;
use super::{Node, Wait};
use crate::config::WaitPolicy;
use crate::effect::Suspension;
use crate::injected_bug::InjectedBug;
use crate::link::{InLink, WINDOW};
use crate::schedule::NodeId;
use crate::time::Time;

/// Periods that a node makes up for by running through them without waits, since the parcels are there already.
const WITHIN_REACH: u64 = 28;

/// A parcel is acknowledged with the record that its receiver writes at its next split, and so a round later at the
/// earliest.
const ROUNDS_TO_ACKNOWLEDGE: u64 = 2;

/// Most steps that a node takes at one instant.
const MOST_STEPS_AT_ONCE: u32 = 4_096;

impl Node {
    /// Returns `true` if the node waits for this neighbour: it is active and not backed off. In a synchronous swarm
    /// back-off does not count.
    fn is_waited_for(&self, peer: &Neighbour) -> bool {
        let has_patience = self.config.policy == WaitPolicy::Sync || peer.patience.is_over(self.now);
        peer.is_active() && has_patience && !self.is_far_behind(peer)
    }

    /// Returns `true` if this node has skipped steps, and a neighbour that has not is further behind than waits allow, by its
    /// own words: it cannot be here in time.
    fn is_far_behind(&self, peer: &Neighbour) -> bool {
        self.has_skipped_steps && peer.steps_passed().saturating_add(self.longest_lead_in_steps()) < self.step
    }

    /// Receivers of this step that have a full window, or have not acknowledged parcels from long ago. Under every
    /// policy a node that is ahead of them waits, since a round in which nothing is sent is no round of the plan.
    pub(super) fn full_out_neighbours(&self) -> Vec<NodeId> {
        let horizon = self.unacknowledged_horizon();
        let is_full = |peer: &Neighbour| {
            self.is_waited_for(peer)
                && peer.outgoing.as_ref().is_some_and(|link| {
                    let is_behind = link.oldest_step().zip(horizon).is_some_and(|(oldest, horizon)| oldest < horizon);
                    link.is_open() && (is_behind || !link.has_room())
                })
        };
        let links = self.config.schedule.out_links(self.config.id, self.step);
        links.iter().map(|link| link.to).filter(|to| self.peers.get(to).is_some_and(is_full)).collect()
    }

    /// The step before which every parcel has to be acknowledged for the present one to be sent; `None` where only the
    /// window is a bound.
    fn unacknowledged_horizon(&self) -> Option<u64> {
        let WaitPolicy::Bounded { staleness } = self.config.policy else {
            return None;
        };
        let rounds = staleness.max(ROUNDS_TO_ACKNOWLEDGE);
        self.step.checked_sub(rounds.saturating_mul(self.config.schedule.round_length()))
    }

    /// Returns `true` if an in-neighbour that keeps up has yet to send its parcel of this very step. Policies that let
    /// neighbours lag still give them the [grace](Self::grace_ends) of usual rounds: on healthy links every parcel is
    /// absorbed in its step of the plan.
    pub(super) fn expects_parcels(&self) -> bool {
        if self.is_left_behind() {
            return false;
        }
        let is_expected = |peer: &Neighbour| {
            self.is_waited_for(peer) && peer.incoming.as_ref().is_some_and(|link| !link.is_settled_for(self.step))
        };
        let due = self.config.schedule.in_neighbours(self.config.id, self.step);
        due.iter().any(|from| self.peers.get(from).is_some_and(is_expected))
    }

    /// The end of the time that neighbours get which may lag under the policy.
    pub(super) fn grace_ends(&self, wait: Wait) -> Time {
        if self.config.policy == WaitPolicy::Sync {
            wait.since
        } else {
            self.clock.grace(wait.since).min(wait.deadline)
        }
    }

    /// The in-neighbours that the policy waits for in this step.
    pub(super) fn awaited_in_neighbours(&self) -> Vec<NodeId> {
        let schedule = &self.config.schedule;
        let (candidates, lag) = match self.config.policy {
            WaitPolicy::Async => return Vec::new(),
            WaitPolicy::Sync => (schedule.in_neighbours(self.config.id, self.step), 0),
            WaitPolicy::Bounded { staleness } => {
                // A node that trains on while the others close would leave them a model that they never mix.
                let staleness = if self.is_closing() { 0 } else { staleness };
                (schedule.all_in_neighbours(self.config.id), staleness.saturating_mul(schedule.round_length()))
            }
        };
        let Some(horizon) = self.step.checked_sub(lag).filter(|_| !self.is_left_behind()) else {
            return Vec::new();
        };
        let is_behind = |peer: &Neighbour| {
            let Some(step) = schedule.last_use(peer.id, self.config.id, horizon) else {
                return false;
            };
            self.is_waited_for(peer) && peer.incoming.as_ref().is_some_and(|link| !link.is_settled_for(step))
        };
        candidates.iter().copied().filter(|from| self.peers.get(from).is_some_and(is_behind)).collect()
    }

    /// Returns `true` if the node did not train and was sent nothing. It then lets time pass instead of spinning, as
    /// long as another node could still send it something.
    pub(super) fn has_nothing_to_go_on(&self, wait: Wait) -> bool {
        // However far ahead others claim to be, a node takes its time.
        if self.steps_now.0 == self.now && self.steps_now.1 >= MOST_STEPS_AT_ONCE {
            return true;
        }
        if self.tally.trained {
            return false;
        }
        let is_complete = |from: &NodeId| {
            self.peers.get(from).is_none_or(|peer| peer.incoming.as_ref().is_none_or(InLink::is_complete))
        };
        let due = self.config.schedule.in_neighbours(self.config.id, self.step);
        if due.iter().all(is_complete) {
            // Once no more parcels will ever come, it passes on what it still holds as fast as the others take it.
            let all = self.config.schedule.all_in_neighbours(self.config.id);
            return all.iter().all(is_complete) && !self.send_gate.sent_in_step && !self.is_left_alone();
        }
        if self.follows_the_others() || self.is_told_of_all(due) {
            return false;
        }
        let is_settled = self.are_settled(due);
        let due = || due.iter().filter_map(|from| self.peers.get(from));
        match self.config.policy {
            // In step with its neighbours, a message that no parcel is coming is enough. Otherwise only mass is, which a node
            // that is behind had before, or the end of a usual step.
            WaitPolicy::Sync => !self.send_gate.heard_in_step && !self.has_due_parcel(),
            WaitPolicy::Bounded { .. } | WaitPolicy::Async => {
                let is_over = is_settled && self.now >= self.usual_step_ends(wait);
                !is_over && !self.send_gate.absorbed_in_step && !self.has_any_brought(due())
            }
        }
    }

    /// The end of a step of the usual length.
    pub(super) fn usual_step_ends(&self, wait: Wait) -> Time {
        self.clock.usual_step(wait.since, self.config.schedule.round_length()).min(wait.deadline)
    }

    /// Returns `true` if in a tree nothing more comes in this step from those that send in it. They wait for this node in
    /// turn: if all waited for weight, a round in which a branch has none would take a deadline on each level.
    fn is_told_of_all(&self, due: &[NodeId]) -> bool {
        self.config.schedule.hands_ratios_down() && !due.is_empty() && self.are_settled(due)
    }

    /// Returns `true` if nothing more comes from these neighbours in this step.
    fn are_settled(&self, neighbours: &[NodeId]) -> bool {
        let is_settled = |from: &NodeId| {
            self.peers
                .get(from)
                .and_then(|peer| peer.incoming.as_ref())
                .is_none_or(|link| link.is_settled_for(self.step))
        };
        neighbours.iter().all(is_settled)
    }

    /// Returns `true` if nothing can come in this step, and the others are getting ahead.
    pub(super) fn follows_the_others(&self) -> bool {
        let due = self.config.schedule.in_neighbours(self.config.id, self.step);
        let is_to_come = |peer: &Neighbour| peer.is_active() || self.is_only_late(peer);
        let is_to_come = |from: &NodeId| self.peers.get(from).is_some_and(is_to_come);
        let witnessed = self.witnessed();
        let is_ahead = |peer: &Neighbour| peer.is_active() && self.credible(peer, witnessed) > self.step;
        !due.iter().any(is_to_come) && self.peers.values().any(is_ahead)
    }

    /// Returns `true` if a neighbour in a tree is late and not out of reach: it is in an earlier round. Nodes below this one
    /// are ahead of it in every round, and wait for it. If it followed them, all of these would run through rounds with
    /// nothing to mix, and the late neighbour would wait for its deadlines in the same rounds later.
    fn is_only_late(&self, peer: &Neighbour) -> bool {
        let is_late = peer.suspended == Some(Suspension::Late) && peer.link_up && peer.mutual && !peer.left;
        is_late && self.config.schedule.hands_ratios_down()
    }

    /// The time at which the others, as far as this node knows, end the round that it could end now. The node keeps to
    /// the pace of the swarm as long as it misses an in-neighbour that it has met.
    ///
    /// A round is one round of the whole swarm, not of its fastest part. A node that is cut off with a few others would
    /// run through rounds as fast as it can train, with next to nothing to mix in. Those that it leaves behind would
    /// have to jump after it, and the swarm would never do the training that they skip. Every part of a strongly
    /// connected plan that falls off has a node that misses an in-neighbour, and the rest of it waits for that one.
    pub(super) fn pace_of_the_others(&self) -> Time {
        let ends_round = (self.step + 1).is_multiple_of(self.config.schedule.round_length());
        if self.config.policy == WaitPolicy::Async || !ends_round || self.has(InjectedBug::NeverPaces) {
            return self.now;
        }
        // Neighbours that are only late are given the time of a usual round.
        let is_late = |peer: &Neighbour| {
            let is_there = !self.is_waited_for(peer) && peer.link_up && !peer.leaving;
            is_there && peer.incoming.as_ref().is_some_and(|link| !link.is_settled_for(self.step))
        };
        let senders = self.config.schedule.all_in_neighbours(self.config.id);
        let is_any_late = senders.iter().any(|from| self.peers.get(from).is_some_and(is_late));
        let usual = is_any_late.then(|| self.clock.usual_end());
        let paced = self.clock.paced_end().filter(|_| self.misses_someone());
        usual.max(paced).unwrap_or(self.now)
    }

    /// Returns `true` if an in-neighbour is missing: this process has met it, it has rounds left, and it is out of
    /// reach, has stopped for now, or is backed off. One that has let a deadline pass only now is not missed yet.
    pub(super) fn misses_someone(&self) -> bool {
        let is_missed = |peer: &Neighbour| {
            if peer.left || !peer.was_met {
                return false;
            }
            if peer.leaving {
                // A neighbour that stops in good order before the end goes on when it is started again.
                return peer.passed < self.last_step;
            }
            let is_not_waited_for = peer.suspended.is_none() && !self.is_waited_for(peer);
            let has_more_to_send = peer.incoming.as_ref().is_some_and(|link| !link.is_complete());
            has_more_to_send && (self.is_out_of_reach(peer) || is_not_waited_for)
        };
        let senders = self.config.schedule.all_in_neighbours(self.config.id);
        self.config.policy != WaitPolicy::Async
            && senders.iter().any(|from| self.peers.get(from).is_some_and(is_missed))
    }

    fn is_out_of_reach(&self, peer: &Neighbour) -> bool {
        // Where messages are lost a neighbour falls silent often, and returns by itself.
        let loses_messages = self.config.retransmit_after.is_some();
        !peer.link_up || (peer.suspended >= Some(Suspension::Silent) && !loses_messages)
    }

    /// Returns `true` if the round that ends now measures the swarm's pace: none is missing, and this node has not
    /// fallen behind.
    pub(super) fn is_pace_setting(&self) -> bool {
        let lag = match self.config.policy {
            WaitPolicy::Sync => 1,
            WaitPolicy::Bounded { staleness } => staleness,
            WaitPolicy::Async => return false,
        };
        let lag = lag.saturating_add(2).saturating_mul(self.config.schedule.round_length());
        let senders = self.config.schedule.all_in_neighbours(self.config.id);
        let is_late = |peer: &Neighbour| peer.was_met && peer.suspended.is_some() && !peer.leaving && !peer.left;
        let is_any_late = senders.iter().any(|from| self.peers.get(from).is_some_and(is_late));
        !is_any_late && !self.misses_someone() && self.furthest() <= self.passed().saturating_add(lag)
    }

    /// Steps by which one of two neighbours gets ahead of the other, at the most, where neither lets a deadline pass. No
    /// limit where a plan averages exactly: it does so only if all wait for all.
    pub(super) fn longest_lead_in_steps(&self) -> u64 {
        if self.config.schedule.hands_ratios_down() {
            return u64::MAX;
        }
        let staleness = if let WaitPolicy::Bounded { staleness } = self.config.policy { staleness } else { 0 };
        let periods = staleness.max(WINDOW as u64).saturating_add(ROUNDS_TO_ACKNOWLEDGE);
        periods.saturating_mul(self.config.schedule.period())
    }

    /// Returns `true` if most neighbours are further ahead than waits allow: the node makes up for the steps between without
    /// waits for the others that are left behind, since each would hold up the rest for as long as all do.
    fn is_left_behind(&self) -> bool {
        self.witnessed_by_neighbours() > self.step.saturating_add(self.longest_lead_in_steps())
    }

    /// Returns `true` if a parcel of this step or an earlier one is queued.
    pub(super) fn has_due_parcel(&self) -> bool {
        let oldest = |peer: &Neighbour| peer.incoming.as_ref().and_then(InLink::oldest_step);
        self.peers.values().filter_map(oldest).any(|step| step <= self.step)
    }

    /// The start of the first round that no neighbour has entered yet, as far as their claims are credible.
    pub(super) fn catch_up_step(&self) -> u64 {
        let ahead = self.furthest();
        let round_length = self.config.schedule.round_length();
        ahead.div_ceil(round_length).saturating_mul(round_length).min(self.last_step)
    }

    /// The step at which a node that has fallen far behind goes on. Otherwise its neighbours would wait for it in vain
    /// in every step, and it would hold their parcels for steps it will not reach for a long time. `None` while it
    /// keeps up.
    ///
    /// Without faults no node jumps: a receiver of ours cannot be further ahead than the staleness allows, nor in a
    /// synchronous swarm a sender further than its window, unless they have gone on without us. An asynchronous node
    /// jumps only to the end, once all others have got there; so does any node for which they cannot be waiting.
    pub(super) fn overdue_step(&self) -> Option<u64> {
        let (allowed, is_bound_to_us): (u64, fn(&Neighbour) -> bool) = match self.config.policy {
            WaitPolicy::Sync => (WINDOW as u64, |_| true),
            WaitPolicy::Bounded { staleness } => (staleness.max(WINDOW as u64), |peer| peer.outgoing.is_some()),
            WaitPolicy::Async => return self.everyone_is_done().then_some(self.last_step),
        };
        let slack = allowed.saturating_add(WITHIN_REACH).saturating_mul(self.config.schedule.period());
        let horizon = self.step.saturating_add(slack);
        let witnessed = self.witnessed();
        let is_beyond = |peer: &Neighbour| is_bound_to_us(peer) && self.credible(peer, witnessed) > horizon;
        let left_behind = self.peers.values().any(is_beyond);
        (left_behind || self.everyone_is_done()).then(|| self.catch_up_step()).filter(|step| *step > self.step)
    }

    /// Returns `true` if some neighbour has reached the end without this node, and every active one has.
    ///
    /// A neighbour has passed a step once its parcels of the step are sent, which is before it waits for others.
    pub(super) fn everyone_is_done(&self) -> bool {
        let schedule = &self.config.schedule;
        let lead = match self.config.policy {
            WaitPolicy::Async => 0,
            WaitPolicy::Sync => schedule.period(),
            WaitPolicy::Bounded { staleness } => {
                staleness.saturating_mul(schedule.round_length()).saturating_add(schedule.period())
            }
        };
        let witnessed = self.witnessed();
        let is_done = |peer: &&Neighbour| self.credible(peer, witnessed) >= self.last_step;
        self.step.saturating_add(lead) < self.last_step
            && self.peers.values().any(|peer| is_done(&peer))
            && !self.peers.values().any(|peer| peer.is_active() && !is_done(&peer))
    }

    /// Returns `true` if a neighbour has done all rounds, and every other one too, or it has left or is out of reach: no
    /// node would mix what is learnt now.
    pub(super) fn others_are_through(&self) -> bool {
        if self.others_have_gone() {
            return true;
        }
        let is_last_period = self.step.saturating_add(self.config.schedule.period()) >= self.last_step;
        if self.config.policy == WaitPolicy::Sync && is_last_period {
            // The neighbours have sent their last parcels, and wait for those of this node.
            return false;
        }
        let witnessed = self.witnessed();
        let is_through = |peer: &Neighbour| self.credible(peer, witnessed) >= self.last_step;
        let is_gone = |peer: &Neighbour| peer.left || self.is_out_of_reach(peer);
        self.peers.values().any(is_through) && self.peers.values().all(|peer| is_gone(peer) || is_through(peer))
    }

    /// Returns `true` if a neighbour has ended after its last round, and every other one too, or it has left or is out of
    /// reach: none waits for a last parcel. A neighbour's own word that it takes part no more needs no witness.
    pub(super) fn others_have_gone(&self) -> bool {
        let has_ended = |peer: &Neighbour| peer.leaving && peer.passed >= self.last_step;
        let is_gone = |peer: &Neighbour| peer.left || self.is_out_of_reach(peer);
        self.peers.values().any(has_ended) && self.peers.values().all(|peer| is_gone(peer) || has_ended(peer))
    }

    /// Returns `true` if a neighbour has sent its parcels of the present step, and so waits for this node, or soon
    /// will.
    pub(super) fn is_awaited(&self) -> bool {
        let witnessed = self.witnessed();
        let active = || self.peers.values().filter(|peer| peer.is_active());
        active().any(|peer| self.credible(peer, witnessed) > self.step) || self.has_any_brought(active())
    }

    /// Returns `true` if no node will ever send or take mass again, and there is none to train on or nothing to train.
    pub(super) fn is_left_alone(&self) -> bool {
        let no_input = self.peers.values().all(|peer| peer.incoming.as_ref().is_none_or(InLink::is_complete));
        let no_output = self.peers.values().all(|peer| peer.outgoing.as_ref().is_none_or(|link| !link.is_open()));
        let trains = self.config.schedule.local_steps() > 0;
        no_input && (!self.push_sum.has_working_mass() || (no_output && !trains))
    }
}
