//! The slowest at which messages may come: who sends a byte now and then holds a stream, a place and a buffer for nothing.
//!
//! What counts is the time in which this side waited for bytes of a message that has begun, and how many came of it. A stream on
//! which nothing has begun may be silent for as long as it likes: the protocol above notices that.

use std::time::Duration;

use mingle_protocol::wire::Unfinished;

/// Over the time that a message is watched. Slow radios on which anybody trains carry five times as much and more.
pub(super) const SLOWEST_BYTES_PER_SECOND: u64 = 64;
/// A link may fail, and a neighbour stand still, for so long.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// How fast the bytes of an unfinished message come.
#[derive(Debug)]
pub(super) struct Pace {
    window: Duration,
    waited: Duration,
    /// What is unfinished, as it was when the time began to count.
    began: Option<Unfinished>,
}

/// A message comes too slowly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a message came at less than {SLOWEST_BYTES_PER_SECOND} bytes a second")
    }
}

impl Pace {
    /// So many bytes in this time, or the whole message.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, waited: Duration::ZERO, began: None }
    }

    /// How long the next bytes may take; none where nothing has begun.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.began.map(|_| self.window.saturating_sub(self.waited))
    }

    /// After so long bytes have come, with which this is unfinished; `finished`: parcels and other messages that they completed.
    pub(super) fn note(
        &mut self,
        waited: Duration,
        unfinished: Option<Unfinished>,
        finished: Finished,
    ) -> Result<(), TooSlow> {
        self.waited += waited;
        let came = match (self.began, unfinished) {
            // Other messages come between the pieces of a parcel.
            (Some(Unfinished::Parcel { bytes: before }), Some(Unfinished::Parcel { bytes })) if !finished.parcel => {
                Some(bytes.saturating_sub(before))
            }
            (Some(Unfinished::Frame { bytes: before }), Some(Unfinished::Frame { bytes })) if !finished.any() => {
                Some(bytes.saturating_sub(before))
            }
            _ => None,
        };
        let enough = (SLOWEST_BYTES_PER_SECOND as f64 * self.window.as_secs_f64()) as usize;
        if came.is_none_or(|came| came >= enough) {
            (self.waited, self.began) = (Duration::ZERO, unfinished);
        }
        if self.began.is_some() && self.waited >= self.window { Err(TooSlow) } else { Ok(()) }
    }
}

/// What some bytes have completed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finished {
    pub(super) parcel: bool,
    pub(super) other: bool,
}

impl Finished {
    fn any(self) -> bool {
        self.parcel || self.other
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOTHING: Finished = Finished { parcel: false, other: false };
    const HEARTBEAT: Finished = Finished { parcel: false, other: true };

    fn parcel(bytes: usize) -> Option<Unfinished> {
        Some(Unfinished::Parcel { bytes })
    }

    /// Seconds until a parcel of which so many bytes come each second is too slow, of a day.
    fn endures(bytes_per_second: usize, finished: Finished) -> Option<usize> {
        let mut pace = Pace::new(WINDOW);
        pace.note(Duration::ZERO, parcel(0), NOTHING).unwrap();
        (1..=86_400).find(|second| pace.note(SECOND, parcel(second * bytes_per_second), finished).is_err())
    }

    #[test]
    fn a_byte_a_second_is_too_slow_and_a_slow_radio_is_not() {
        assert_eq!(endures(1, NOTHING), Some(60));
        assert_eq!(endures(63, NOTHING), Some(60));
        assert_eq!(endures(64, NOTHING), None);
        assert_eq!(endures(300, NOTHING), None);
    }

    #[test]
    fn heartbeats_between_its_bytes_do_not_keep_a_parcel_alive() {
        assert_eq!(endures(1, HEARTBEAT), Some(60));
    }

    #[test]
    fn the_next_parcel_has_time_of_its_own() {
        let mut pace = Pace::new(WINDOW);
        let finished = Finished { parcel: true, other: false };
        for _ in 0..100 {
            // A small one may be as slow as the time allows.
            pace.note(Duration::ZERO, parcel(1), finished).unwrap();
            pace.note(59 * SECOND, parcel(2), NOTHING).unwrap();
            assert_eq!(pace.patience(), Some(SECOND));
        }
    }

    #[test]
    fn a_frame_that_does_not_end_is_too_slow_and_silence_between_messages_is_not() {
        let mut pace = Pace::new(WINDOW);
        assert_eq!(pace.patience(), None);
        pace.note(86_400 * SECOND, Some(Unfinished::Frame { bytes: 1 }), HEARTBEAT).unwrap();
        pace.note(59 * SECOND, Some(Unfinished::Frame { bytes: 2 }), NOTHING).unwrap();
        assert_eq!(pace.note(SECOND, Some(Unfinished::Frame { bytes: 3 }), NOTHING), Err(TooSlow));
        pace.note(SECOND, None, HEARTBEAT).unwrap();
        assert_eq!(pace.patience(), None);
    }
}
