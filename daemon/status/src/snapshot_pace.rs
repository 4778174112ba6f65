//! The pace at which a peer publishes snapshots of its state.

use std::time::{Duration, Instant};

use crate::status::PeerState;

/// Interval at which small changes, such as acknowledgements, are shown.
const SMALL_CHANGES: Duration = Duration::from_millis(250);
/// Interval at which rounds are shown: no reader needs each of a thousand in a second.
const ROUNDS: Duration = Duration::from_millis(20);

/// The largest of the changes since a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Small,
    Round,
    /// One to be shown at once.
    Large,
}

impl Change {
    /// The shortest time from one snapshot to the next.
    fn interval(self) -> Duration {
        match self {
            Self::Small => SMALL_CHANGES,
            Self::Round => ROUNDS,
            Self::Large => Duration::ZERO,
        }
    }
}

/// The changes since the last snapshot of a peer, and when the next one is due.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotPace {
    change: Change,
    /// Time and state of the last snapshot.
    shown: Option<(Instant, PeerState)>,
}

impl Default for SnapshotPace {
    fn default() -> Self {
        Self { change: Change::Large, shown: None }
    }
}

impl SnapshotPace {
    /// Notes a change that should be shown at once.
    pub fn note(&mut self) {
        self.change = Change::Large;
    }

    /// Notes a finished round, which may wait until the next ones are shown too.
    pub fn note_round(&mut self) {
        self.change = self.change.max(Change::Round);
    }

    /// Notes a snapshot.
    pub fn note_shown(&mut self, state: PeerState, now: Instant) {
        *self = Self { change: Change::Small, shown: Some((now, state)) };
    }

    /// Returns `true` if a snapshot of a peer in this state is due.
    pub fn is_due(&self, state: PeerState, now: Instant) -> bool {
        self.shown.is_none_or(|(at, _)| now.saturating_duration_since(at) >= self.change_with(state).interval())
    }

    /// The time at which a round is shown that is not shown yet; `None` if there is none.
    pub fn next_at(&self, state: PeerState) -> Option<Instant> {
        let change = self.change_with(state);
        self.shown.filter(|_| change == Change::Round).map(|(at, _)| at + change.interval())
    }

    /// The changes, with that of the state: a peer that trains waits for neighbours in each round.
    fn change_with(&self, state: PeerState) -> Change {
        match self.shown {
            Some((_, shown)) if shown == state => self.change,
            Some((_, shown)) if shown.is_under_way() && state.is_under_way() => self.change.max(Change::Round),
            _ => Change::Large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [PeerState; 2] = [PeerState::Training, PeerState::WaitingForNeighbours];

    #[test]
    fn a_thousand_rounds_in_a_second_are_shown_fifty_times_and_the_last_one_within_an_interval() {
        let mut pace = SnapshotPace::default();
        let began = Instant::now();
        let mut shown = 0;
        for millisecond in 0..1_000 {
            let now = began + Duration::from_millis(millisecond);
            pace.note_round();
            for state in STATES {
                if pace.is_due(state, now) {
                    pace.note_shown(state, now);
                    shown += 1;
                }
            }
        }
        assert_eq!(shown, 50);
        let last = began + Duration::from_millis(1_000);
        let next = pace.next_at(STATES[0]);
        assert!(next.is_some_and(|next| next <= last + ROUNDS && pace.is_due(STATES[0], next)), "{pace:?}");
    }

    #[test]
    fn large_changes_and_ends_are_shown_at_once_and_small_ones_after_a_while() {
        let mut pace = SnapshotPace::default();
        let now = Instant::now();
        assert!(pace.is_due(PeerState::Waiting, now), "there is no snapshot yet");
        pace.note_shown(PeerState::Training, now);
        assert!(!STATES.iter().any(|state| pace.is_due(*state, now)));
        assert!(pace.is_due(PeerState::Draining, now) && pace.is_due(PeerState::Waiting, now));
        assert!(pace.is_due(PeerState::Training, now + SMALL_CHANGES));
        assert_eq!(pace.next_at(PeerState::Training), None, "nothing is new");
        pace.note();
        assert!(pace.is_due(PeerState::Training, now));
    }
}
