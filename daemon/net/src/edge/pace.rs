//! The minimum rate of a message: a peer that sends a byte now and then would hold a stream, a permit and a buffer.
//!
//! The rate is taken over the time in which this side waited for bytes of an unfinished message. A stream without an
//! unfinished message may be silent for any time: the protocol above notices that.

use std::time::Duration;

use mingle_protocol::wire::Unfinished;

/// Minimum rate over `WINDOW`. Slow radios on which training is feasible carry at least five times as much.
pub(super) const SLOWEST_BYTES_PER_SECOND: u64 = 64;
/// The window: a failing link, or a neighbour that stands still, is tolerated for this long.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Progress of the unfinished message on a stream.
#[derive(Debug)]
pub(super) struct MessageProgress {
    window: Duration,
    waited: Duration,
    /// The unfinished message when the window began.
    began: Option<Unfinished>,
}

/// The error of a message below the minimum rate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a message came at less than {SLOWEST_BYTES_PER_SECOND} bytes a second")
    }
}

impl MessageProgress {
    /// Requires `SLOWEST_BYTES_PER_SECOND` over `window`, or the whole message within it.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, waited: Duration::ZERO, began: None }
    }

    /// Time that the next bytes may take; `None` if no message is unfinished.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.began.map(|_| self.window.saturating_sub(self.waited))
    }

    /// Accounts for bytes that came after `waited`, leaving `unfinished` and completing `finished`.
    pub(super) fn note(
        &mut self,
        waited: Duration,
        unfinished: Option<Unfinished>,
        finished: CompletedMessages,
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
            self.waited = Duration::ZERO;
            self.began = unfinished;
        }
        if self.began.is_some() && self.waited >= self.window { Err(TooSlow) } else { Ok(()) }
    }
}

/// The kinds of message that some bytes completed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompletedMessages {
    pub(super) parcel: bool,
    pub(super) other: bool,
}

impl CompletedMessages {
    fn any(self) -> bool {
        self.parcel || self.other
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOTHING: CompletedMessages = CompletedMessages { parcel: false, other: false };
    const HEARTBEAT: CompletedMessages = CompletedMessages { parcel: false, other: true };

    fn parcel(bytes: usize) -> Option<Unfinished> {
        Some(Unfinished::Parcel { bytes })
    }

    /// Seconds until a parcel that arrives at this rate is rejected as too slow, within a day.
    fn endures(bytes_per_second: usize, finished: CompletedMessages) -> Option<usize> {
        let mut pace = MessageProgress::new(WINDOW);
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
        let mut pace = MessageProgress::new(WINDOW);
        let finished = CompletedMessages { parcel: true, other: false };
        for _ in 0..100 {
            // A small one may be as slow as the window allows.
            pace.note(Duration::ZERO, parcel(1), finished).unwrap();
            pace.note(59 * SECOND, parcel(2), NOTHING).unwrap();
            assert_eq!(pace.patience(), Some(SECOND));
        }
    }

    #[test]
    fn a_frame_that_does_not_end_is_too_slow_and_silence_between_messages_is_not() {
        let mut pace = MessageProgress::new(WINDOW);
        assert_eq!(pace.patience(), None);
        pace.note(86_400 * SECOND, Some(Unfinished::Frame { bytes: 1 }), HEARTBEAT).unwrap();
        pace.note(59 * SECOND, Some(Unfinished::Frame { bytes: 2 }), NOTHING).unwrap();
        assert_eq!(pace.note(SECOND, Some(Unfinished::Frame { bytes: 3 }), NOTHING), Err(TooSlow));
        pace.note(SECOND, None, HEARTBEAT).unwrap();
        assert_eq!(pace.patience(), None);
    }
}
