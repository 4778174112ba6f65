//! Exponential back-off for neighbours that miss deadlines again and again, and for streams on which greetings fail.
//!
//! A neighbour that lets a deadline pass is taken back as soon as it makes progress, and waited for again. A neighbour
//! with a bad link would cost all others a deadline each time. So it still gets and sends parcels, but is not waited
//! for, twice as long after each further miss. One that keeps up for as long begins anew.
//!
//! A parcel is refused if its sender and receiver do not know each other's present lives, and the greeting in answer
//! corrects that. If it does not, a stream is half dead: parcels pass and greetings do not, and the link would stay so
//! for ever. After `MOST_IN_VAIN` such messages the host is asked for new streams.

use std::time::Duration;

use super::Node;
use crate::effect::Effect;
use crate::schedule::NodeId;
use crate::time::Time;

/// After the second miss a neighbour is not waited for during this multiple of the wait.
const FIRST_PENALTY: u32 = 4;
/// The longest time for which a connected neighbour is not waited for.
const LONGEST_PENALTY: Duration = Duration::from_secs(600);
/// A miss counts as another one in a row within this multiple of the wait, beyond twice the last penalty.
const ROW: u32 = 4;
/// Refused parcels or greetings without effect before the streams are renewed.
const MOST_IN_VAIN: u32 = 16;
/// Largest power of two to which the heartbeats between two renewals grow.
const MAX_BACKOFF: u32 = 6;

/// Misses of a neighbour in a row, and the time from which it is waited for again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NeighbourPatience {
    misses: u32,
    missed_at: Time,
    penalty: Duration,
    until: Time,
}

impl NeighbourPatience {
    /// Counts a miss after a wait of this duration, and sets the back-off.
    pub(super) fn lose(&mut self, now: Time, waited: Duration) {
        let is_in_a_row = self.misses > 0 && now.since(self.missed_at) <= self.penalty * 2 + waited * ROW;
        self.misses = if is_in_a_row { self.misses.saturating_add(1) } else { 1 };
        let doublings = self.misses.checked_sub(2).map(|misses| misses.min(16));
        let penalty = doublings.map_or(Duration::ZERO, |doublings| waited * FIRST_PENALTY * (1 << doublings));
        self.penalty = penalty.min(LONGEST_PENALTY);
        self.missed_at = now;
        self.until = now + self.penalty;
    }

    /// Returns `true` if the neighbour is waited for.
    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }
}

/// Messages to a neighbour without effect on the present streams, and the back-off of renewals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renewal {
    in_vain: u32,
    renewals: u32,
    not_before: Time,
}

impl Renewal {
    /// Starts counting anew on new streams.
    pub(super) fn begin(&mut self) {
        self.in_vain = 0;
    }

    /// Resets the count and the back-off: both ends know each other.
    pub(super) fn succeed(&mut self) {
        self.in_vain = 0;
        self.renewals = 0;
    }

    /// Counts a message without effect. Returns `true` if new streams are to be opened now.
    fn fail(&mut self, now: Time, heartbeat: Duration) -> bool {
        self.in_vain = self.in_vain.saturating_add(1);
        if self.in_vain < MOST_IN_VAIN || now < self.not_before {
            return false;
        }
        self.not_before = now + heartbeat * (1 << self.renewals.min(MAX_BACKOFF));
        self.in_vain = 0;
        self.renewals = self.renewals.saturating_add(1);
        true
    }
}

impl Node {
    /// Counts a miss of a neighbour. Has no effect where messages are lost, rather than links: there every node misses
    /// a deadline now and then.
    pub(super) fn lose_patience(&mut self, with: NodeId, waited: Duration) {
        if self.config.retransmit_after.is_some() {
            return;
        }
        let now = self.now;
        self.peers.entry(with).and_modify(|peer| peer.patience.lose(now, waited));
    }

    /// Counts a message that the streams should have made needless: on streams without losses that cannot last long.
    pub(super) fn note_in_vain(&mut self, with: NodeId) {
        if self.config.retransmit_after.is_some() {
            return;
        }
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        if self.peers.get_mut(&with).is_some_and(|peer| peer.renewal.fail(now, heartbeat)) {
            self.effects.push(Effect::Renew { peer: with });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses of a neighbour that is never in time, and the total wait for it, within an hour.
    fn misses_in_an_hour(wait: Duration) -> (u32, Duration) {
        let (mut patience, mut now, mut waited) = (NeighbourPatience::default(), Time::default(), Duration::ZERO);
        let mut misses = 0;
        while now < Time::default() + Duration::from_secs(3_600) {
            now = now.max(patience.until) + wait;
            patience.lose(now, wait);
            (misses, waited) = (misses + 1, waited + wait);
        }
        (misses, waited)
    }

    #[test]
    fn a_neighbour_that_is_always_late_is_waited_for_ever_more_seldom() {
        let (misses, waited) = misses_in_an_hour(Duration::from_secs(2));
        // Penalties of 0, 8, 16, ... 512 s, then 600 s.
        assert!(misses <= 14 && waited <= Duration::from_secs(28), "{misses} misses, {waited:?}");
        let (misses, _) = misses_in_an_hour(Duration::from_secs(20));
        assert!(misses <= 12, "{misses}");
    }

    #[test]
    fn one_miss_costs_nothing_and_who_keeps_up_begins_anew() {
        let wait = Duration::from_secs(2);
        let (mut patience, mut now) = (NeighbourPatience::default(), Time::from_millis(5_000));
        patience.lose(now, wait);
        assert!(patience.is_over(now), "one hiccup is forgiven");
        now = now + Duration::from_secs(3);
        patience.lose(now, wait);
        assert!(!patience.is_over(now) && patience.is_over(now + Duration::from_secs(8)));
        now = now + Duration::from_secs(100);
        patience.lose(now, wait);
        assert!(patience.is_over(now), "the last one was long ago");
    }

    #[test]
    fn streams_are_opened_anew_after_sixteen_messages_in_vain_and_ever_more_seldom() {
        let (mut renewal, heartbeat) = (Renewal::default(), Duration::from_secs(5));
        let mut at = Vec::new();
        for second in 0..3_600 {
            for _ in 0..4 {
                if renewal.fail(Time::from_millis(1_000 * second), heartbeat) {
                    at.push(second);
                }
            }
        }
        assert_eq!(at[..5], [3, 8, 18, 38, 78], "{at:?}");
        assert!(at.len() <= 18, "{at:?}");
        renewal.succeed();
        assert!((0..16).any(|_| renewal.fail(Time::from_millis(4_000_000), heartbeat)));
    }
}
