//! Time limit of a round's training at a site that is slower than its neighbours.
//!
//! A site that needs ten times as long for its local steps would make every other one wait ten times as long, or go on
//! without its parcels. It can do fewer local steps instead. Once its training is over, a node knows when its
//! neighbours' parcels of the round came, and so how long their training and a parcel's transfer take. Where it needs
//! more than [`FAR_SLOWER`] times as long, and longer than [`SHORTEST`], two limits hold from then on:
//!
//! - its host begins no local step after [`TIMES`] as long as the others need; a change of fewer steps counts as
//!   described in `step_guard`;
//! - the node mixes on after [`GOES_ON`] as long, where a single local step takes longer than that: the change joins
//!   the round in which it comes. Until then the node follows: it begins no step of mixing before most of the others
//!   have.
//!
//! A round that takes far longer than those before, or than the first ones of the others, ends after [`HELD_UP`] as
//! long in the same way: an interruption of one site does not hold up others.
//!
//! Where a node sends before it receives, as at the end of a tree, its receivers wait for it. They report by an Ack that
//! they have come to the step, which counts like a parcel.
//!
//! The upper median over the neighbours of a step is used, so that one false claim to be fast does not cut the training
//! of a node that receives from two others. A synchronous swarm, whose runs are the same to the bit, has no such limit.

use std::time::Duration;

use super::Node;
use super::peer::Neighbour;
use crate::config::WaitPolicy;
use crate::effect::NodeEvent;
use crate::latest::Latest;
use crate::node_id::NodeId;
use crate::time::Time;

/// Ratio of a site's training time to the others' above which it is cut; machines differ by less from round to round.
const FAR_SLOWER: f64 = 2.0;
/// Local steps begin within this multiple of the others' time.
const TIMES: f64 = 1.25;
/// The node mixes on after this multiple of the others' time.
const GOES_ON: f64 = 1.5;
/// Shortest limit of training: below it, other load on a machine makes rounds differ. A node that needs less is not slow.
const SHORTEST: Duration = Duration::from_millis(50);
/// The node mixes on after this multiple of the others' time where its own is usually similar or not known, and not
/// before [`SHORTEST_HOLD_UP`].
const HELD_UP: f64 = 4.0;
const SHORTEST_HOLD_UP: Duration = Duration::from_millis(500);
/// Rounds that are needed for a median, and rounds that are remembered.
const ROUNDS_TO_MEASURE: usize = 3;
const REMEMBERED: usize = 9;

/// Durations of training here and at the others: medians over the latest rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct OthersPace {
    /// From the beginning of a round until the parcels of the others came.
    others: Latest<Duration, REMEMBERED>,
    /// Time that this node needs for all local steps of a round.
    own: Latest<Duration, REMEMBERED>,
    /// Set when the event that this node is far slower was reported.
    is_told: bool,
}

impl OthersPace {
    /// The time that the others need, if this node needs far longer.
    fn pace_to_keep(&self) -> Option<Duration> {
        let own = self.own.median(Ord::cmp)?;
        let others = self.others.median(Ord::cmp)?;
        let is_known = self.own.len() >= ROUNDS_TO_MEASURE && self.others.len() >= ROUNDS_TO_MEASURE;
        (is_known && own > others.mul_f64(FAR_SLOWER).max(SHORTEST)).then_some(others)
    }
}

impl Node {
    /// Time limit of the present round's training: as configured, or else derived from the others' time.
    pub(super) fn time_box(&mut self) -> Option<Duration> {
        if self.config.time_box.is_some() {
            return self.config.time_box;
        }
        let others = self.others_pace.pace_to_keep().filter(|_| self.keeps_up())?;
        if !std::mem::replace(&mut self.others_pace.is_told, true) {
            let own = self.others_pace.own.median(Ord::cmp).unwrap_or_default();
            self.report(NodeEvent::FarSlower { round: self.round(), own, others });
        }
        Some(others.mul_f64(TIMES).max(SHORTEST))
    }

    /// The time at which the node mixes on without the training that it waits for, so that it holds up no other. `None`
    /// where most of the others are not there either: then it waits as long as the configuration allows.
    pub(super) fn keeps_up_until(&self) -> Option<Time> {
        if !self.keeps_up() || self.is_closing() {
            return None;
        }
        if self.is_beside_training() {
            return self.others_came().unwrap_or_else(|| Some(self.clock.started()));
        }
        let began = self.tally.ordered_ahead.unwrap_or_else(|| self.clock.started());
        let came = self.others_came().flatten()?;
        if let Some(others) = self.others_pace.pace_to_keep() {
            return Some(began + others.mul_f64(GOES_ON).max(SHORTEST));
        }
        let shows_training = came > began && self.tally.ordered_ahead.is_none();
        let others = if shows_training { came.since(began) } else { self.others_pace.others.median(Ord::cmp)? };
        Some(began + others.mul_f64(HELD_UP).max(SHORTEST_HOLD_UP))
    }

    /// Records the others' pace once the wait for this round's training is over: the arrival of their parcels of the
    /// round since it began. A neighbour that is ahead waits for the parcel with which this node began the round, so
    /// its first parcel since then counts. A neighbour still to come needs at least as long as this wait took. Rounds that
    /// were trained while the one before was mixed do not count: neighbours may have been ready before they began.
    pub(super) fn note_pace_of_others(&mut self) {
        if self.tally.ordered_ahead.is_some() {
            return;
        }
        let began = self.clock.started();
        let came = self.others_came().map(|came| match came {
            Some(at) if at <= began => self.others(|peer| peer.arrivals.first_after(began)).flatten(),
            Some(at) => Some(at),
            None => Some(self.now),
        });
        if let Some(Some(at)) = came {
            self.others_pace.others.push(at.since(began));
        }
    }

    /// Records the others' pace at the end of a step in a round in which this node did not train, since an earlier
    /// training is still under way. No neighbour waited for it then, so the parcels are the best measure of the others'
    /// time.
    pub(super) fn note_pace_beside_training(&mut self) {
        let began = self.clock.started();
        if self.step == self.listening_step()
            && self.is_beside_training()
            && let Some(Some(at)) = self.others_came()
            && at > began
        {
            self.others_pace.others.push(at.since(began));
        }
    }

    /// Records the time of a training that was ordered at `ordered` and took this number of local steps.
    pub(super) fn note_own_pace(&mut self, ordered: Time, steps: u32) {
        if steps > 0 {
            let whole = f64::from(self.config.schedule.local_steps()) / f64::from(steps);
            self.others_pace.own.push(self.now.since(ordered).mul_f64(whole));
        }
    }

    /// Returns `true` if a round waits for an earlier round's training until most of the others are ahead. A node that
    /// goes on beside its training follows the others; if all nodes did so without a wait, no round would be trained.
    pub(super) fn follows_beside_training(&self) -> bool {
        self.keeps_up() && self.others_came().is_some()
    }

    pub(super) fn keeps_up(&self) -> bool {
        self.config.keeps_up && self.config.policy != WaitPolicy::Sync
    }

    /// The first step of the present round in which the node has a neighbour.
    fn listening_step(&self) -> u64 {
        let schedule = &self.config.schedule;
        let first = self.round() * schedule.round_length();
        let mut steps = first..first + schedule.round_length();
        steps.find(|step| self.heard_in(*step).next().is_some()).unwrap_or(first)
    }

    /// The neighbours that send in a step, or, where none does, those that receive: at the end of a tree they wait for
    /// this node before they send anything, and report that by an Ack.
    fn heard_in(&self, step: u64) -> impl Iterator<Item = NodeId> {
        let schedule = &self.config.schedule;
        let senders = schedule.in_neighbours(self.config.id, step);
        let receivers = if senders.is_empty() { schedule.out_links(self.config.id, step) } else { &[] };
        senders.iter().copied().chain(receivers.iter().map(|link| link.to))
    }

    /// Owes an Ack to each in-neighbour that receives nothing in this step, and whose parcel of it is missing: it learns
    /// that this node has come to the step, and waits for it.
    pub(super) fn tell_those_waited_for(&mut self) {
        if self.config.policy == WaitPolicy::Sync {
            return;
        }
        let schedule = &self.config.schedule;
        let step = self.step;
        let is_missing = |peer: &&mut Neighbour| {
            peer.is_active() && peer.incoming.as_ref().is_some_and(|link| !link.is_settled_for(step))
        };
        for from in schedule.in_neighbours(self.config.id, step) {
            if schedule.in_neighbours(*from, step).is_empty()
                && let Some(peer) = self.peers.get_mut(from).filter(is_missing)
            {
                peer.ack_owed = true;
            }
        }
    }

    /// The time at which the parcels of the [listening step](Self::listening_step) had come from most of the neighbours
    /// that send one and keep up. `Some(None)` while they have not; `None` if there is no such neighbour.
    fn others_came(&self) -> Option<Option<Time>> {
        let step = self.listening_step();
        self.others(|peer| peer.arrivals.first_of(step))
    }

    /// The upper median of the neighbours' times; a neighbour without one counts as later than all.
    fn others(&self, moment: impl Fn(&Neighbour) -> Option<Time>) -> Option<Option<Time>> {
        let due = self.heard_in(self.listening_step());
        let active = due.filter_map(|from| self.peers.get(&from)).filter(|peer| peer.is_active());
        let mut moments: Vec<Option<Time>> = active.map(moment).collect();
        moments.sort_unstable_by_key(|at| at.unwrap_or(Time(u64::MAX)));
        moments.get(moments.len() / 2).copied()
    }
}
