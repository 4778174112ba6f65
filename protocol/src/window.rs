//! The window of a link: how many parcels may be outstanding, and which of the latest were refused.

use serde::{Deserialize, Serialize};

/// Most parcels a sender may have outstanding on one link, and so the most a receiver ever queues.
pub const WINDOW: usize = 4;

/// Marks those of the last [`WINDOW`] parcels up to a number that the receiver did not add to its pair: they count as
/// taken, so that nothing is applied twice, and their mass goes back to the sender.
///
/// Older ones need no mark. A sender has at most a window of parcels outstanding, and its record with the newest of
/// them also shows that it has taken the older ones back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejections(u8);

const _: () = assert!(WINDOW <= 8);

impl Rejections {
    const WINDOW_MASK: u8 = ((1u16 << WINDOW) - 1) as u8;

    /// The marks up to the next number.
    pub(crate) fn next(self, is_rejected: bool) -> Self {
        Self(((self.0 << 1) | u8::from(is_rejected)) & Self::WINDOW_MASK)
    }

    /// Returns `true` if parcel `seq` was refused, where these are the marks up to `last`.
    pub fn contains(self, last: u64, seq: u64) -> bool {
        last.checked_sub(seq).is_some_and(|back| back < WINDOW as u64 && self.0 >> back & 1 == 1)
    }

    /// Returns `true` if there are no more marks than a window has parcels.
    pub(crate) fn is_sound(self) -> bool {
        self.0 & !Self::WINDOW_MASK == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_with_their_parcels_for_a_window() {
        let (mut marks, refused) = (Rejections::default(), [3, 4, 7, 12]);
        for last in 1..=20 {
            marks = marks.next(refused.contains(&last));
            for seq in 0..=25 {
                let is_recent = seq <= last && seq + WINDOW as u64 > last;
                assert_eq!(marks.contains(last, seq), is_recent && refused.contains(&seq), "{seq} at {last}");
            }
        }
        assert!(marks.is_sound() && !Rejections(1 << 7).is_sound());
    }
}
