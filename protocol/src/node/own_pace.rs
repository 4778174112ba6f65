//! How long a round's training may take at a site that is slower than its neighbours.
//!
//! A site that needs ten times as long for its local steps would make every other one wait ten times as long, or go on without its
//! parcels. Local steps are what it can do less of. Once its training is over, a node sees when the parcels of its neighbours for
//! the round came, and so how long they need for their own training and a parcel's way. Where it needs more than [`FAR_SLOWER`] times
//! as long, two limits hold from then on:
//!
//! - its host begins no local step after [`TIMES`] as long as the others need; a change of fewer steps counts as `step_guard` says;
//! - the node mixes on after [`GOES_ON`] as long, where a single local step takes longer than that: the change is that of the round in
//!   which it comes. Until then the node follows: it begins no step of mixing before most of the others have.
//!
//! A round that takes far longer than those before, or than the first ones of the others, ends after [`HELD_UP`] as long in the same
//! way: whatever holds up one site for a while holds up no other.
//!
//! The upper median over the neighbours of a step is taken, so that one that claims to be fast does not cut the training of a node that
//! hears two others. A synchronous swarm, whose runs are the same to the bit, is left alone.

use std::time::Duration;

use super::Node;
use crate::config::WaitPolicy;
use crate::effect::Event;
use crate::latest::Latest;
use crate::peer::Peer;
use crate::time::Time;

/// Only a site that needs more than so many times as long as the others is cut: less is what machines differ by from round to round.
const FAR_SLOWER: f64 = 2.0;
/// Local steps begin within so many times the time of the others.
const TIMES: f64 = 1.25;
/// The node mixes on after so many times the time of the others.
const GOES_ON: f64 = 1.5;
/// Training is never cut below this: shorter rounds differ by what else a machine does.
const SHORTEST: Duration = Duration::from_millis(50);
/// The node mixes on after so many times the time of the others where its own is usually like theirs or not known, and not before
/// [`SHORTEST_HOLD_UP`].
const HELD_UP: f64 = 4.0;
const SHORTEST_HOLD_UP: Duration = Duration::from_millis(500);
/// Rounds that are looked at first, and rounds that are remembered.
const ROUNDS_TO_MEASURE: usize = 3;
const REMEMBERED: usize = 9;

/// How long training takes here and elsewhere: medians over the latest rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct OthersPace {
    /// From the beginning of a round until the parcels of the others came.
    others: Latest<Duration, REMEMBERED>,
    /// What all local steps of the round take this node.
    own: Latest<Duration, REMEMBERED>,
    /// That this node is far slower was said.
    is_told: bool,
}

impl OthersPace {
    /// The time that the others need, where this node needs far longer.
    fn pace_to_keep(&self) -> Option<Duration> {
        let (own, others) = (self.own.median(Ord::cmp)?, self.others.median(Ord::cmp)?);
        let is_known = self.own.len() >= ROUNDS_TO_MEASURE && self.others.len() >= ROUNDS_TO_MEASURE;
        (is_known && own > others.mul_f64(FAR_SLOWER)).then_some(others)
    }
}

impl Node {
    /// How long the training of the present round may take: as the configuration says, or else as the others need.
    pub(super) fn time_box(&mut self) -> Option<Duration> {
        if self.config.time_box.is_some() {
            return self.config.time_box;
        }
        let others = self.others_pace.pace_to_keep().filter(|_| self.keeps_up())?;
        if !std::mem::replace(&mut self.others_pace.is_told, true) {
            let own = self.others_pace.own.median(Ord::cmp).unwrap_or_default();
            self.report(Event::FarSlower { round: self.round(), own, others });
        }
        Some(others.mul_f64(TIMES).max(SHORTEST))
    }

    /// When the node mixes on without the training that it waits for, so that it holds nobody up; `None` where most of the others are not
    /// there either: then it waits as long as the configuration lets it.
    pub(super) fn keeps_up_until(&self) -> Option<Time> {
        if !self.keeps_up() || self.is_closing() {
            return None;
        }
        let began = self.clock.started();
        if self.is_beside_training() {
            return self.others_came().unwrap_or(Some(began));
        }
        let came = self.others_came().flatten()?;
        if let Some(others) = self.others_pace.pace_to_keep() {
            return Some(began + others.mul_f64(GOES_ON).max(SHORTEST));
        }
        let others = if came > began { came.since(began) } else { self.others_pace.others.median(Ord::cmp)? };
        Some(began + others.mul_f64(HELD_UP).max(SHORTEST_HOLD_UP))
    }

    /// The wait for the training of this round is over: neighbours whose parcels of the round came since it began show how long they need.
    /// Those who are ahead wait for the parcel with which this node began the round: the first that came of them since then shows it. Those
    /// who are still to come need at least as long as this took.
    pub(super) fn note_pace_of_others(&mut self) {
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

    /// A step is over of a round in which this node did not train, since an earlier training is still under way: then nobody waited for it,
    /// and the parcels show best how long the others need.
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

    /// A training that was ordered then has come, of so many local steps.
    pub(super) fn note_own_pace(&mut self, ordered: Time, steps: u32) {
        if steps > 0 {
            let whole = f64::from(self.config.schedule.local_steps()) / f64::from(steps);
            self.others_pace.own.push(self.now.since(ordered).mul_f64(whole));
        }
    }

    /// Whether a round waits for a training of an earlier one until most of the others are ahead: a node that goes on beside its training follows them,
    /// or nobody's rounds would be trained where that is true of all.
    pub(super) fn follows_beside_training(&self) -> bool {
        self.keeps_up() && self.others_came().is_some()
    }

    fn keeps_up(&self) -> bool {
        self.config.keeps_up && self.config.policy != WaitPolicy::Sync
    }

    /// The first step of the present round in which the node is sent anything.
    fn listening_step(&self) -> u64 {
        let schedule = &self.config.schedule;
        let first = self.round() * schedule.round_length();
        let mut steps = first..first + schedule.round_length();
        steps.find(|step| !schedule.in_neighbours(self.config.id, *step).is_empty()).unwrap_or(first)
    }

    /// When the parcels of the [listening step](Self::listening_step) had come from most of the neighbours that send one and keep up:
    /// `Some(None)` while they have not, `None` where there is no such neighbour.
    fn others_came(&self) -> Option<Option<Time>> {
        let step = self.listening_step();
        self.others(|peer| peer.arrivals.first_of(step))
    }

    /// The upper median of moments of those neighbours; one without a moment is later than all.
    fn others(&self, moment: impl Fn(&Peer) -> Option<Time>) -> Option<Option<Time>> {
        let due = self.config.schedule.in_neighbours(self.config.id, self.listening_step());
        let active = due.iter().filter_map(|from| self.peers.get(from)).filter(|peer| peer.is_active());
        let mut moments: Vec<Option<Time>> = active.map(moment).collect();
        moments.sort_unstable_by_key(|at| at.unwrap_or(Time(u64::MAX)));
        moments.get(moments.len() / 2).copied()
    }
}
