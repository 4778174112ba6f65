//! A receiver's part in one announced object: when to say what it lacks, and when to stop waiting.

use std::time::Duration;

use crate::geometry::Geometry;
use crate::word::{ObjectName, Word};

/// Time after the last symbol in which symbols that were sent may still come: a word on a stream can be faster.
const SETTLE: Duration = Duration::from_millis(10);
/// Time without any sign of the object after which it is wanted by stream.
const PATIENCE: Duration = Duration::from_secs(5);

/// An object that a header has announced, and that is not complete. Times are since any fixed point.
#[derive(Clone, Debug)]
pub struct ObjectReception {
    object: ObjectName,
    geometry: Geometry,
    /// Symbols that have come.
    taken: u64,
    /// The last sign of the object: a symbol, or a word of the sender.
    sign_at: Duration,
    /// The question that is still to be answered.
    asked: Option<(u16, bool)>,
    /// Set once the object is wanted by stream.
    has_given_up: bool,
}

impl ObjectReception {
    /// A reception that begins now.
    pub fn new(object: ObjectName, geometry: Geometry, now: Duration) -> Self {
        Self { object, geometry, taken: 0, sign_at: now, asked: None, has_given_up: false }
    }

    /// The object.
    pub fn object(&self) -> ObjectName {
        self.object
    }

    /// Takes a word of the sender.
    pub fn hear(&mut self, word: &Word, now: Duration) {
        match word {
            Word::Sent { object, pass, last } if *object == self.object => {
                self.asked = Some((*pass, *last));
                self.sign_at = now;
            }
            Word::Coming { object } if *object == self.object => self.sign_at = now,
            _ => {}
        }
    }

    /// The word to say now, if any; `missing` is the state of the object in the store, `None` if no symbol has come.
    pub fn poll(&mut self, missing: Option<(&[u16], u64)>, now: Duration) -> Option<Word> {
        let taken = missing.map_or(0, |(_, taken)| taken);
        if taken != self.taken {
            self.taken = taken;
            self.sign_at = now;
        }
        let silence = now.saturating_sub(self.sign_at);
        if self.has_given_up {
            return None;
        }
        if silence >= PATIENCE {
            return Some(self.give_up());
        }
        let (pass, is_last) = self.asked.filter(|_| silence >= SETTLE)?;
        if is_last {
            return Some(self.give_up());
        }
        self.asked = None;
        let missing = missing.map_or_else(|| self.geometry.all_missing(), |(missing, _)| missing.to_vec());
        Some(Word::Lacks { object: self.object, pass, missing })
    }

    /// Wants the object by stream. Returns the word that says so.
    pub fn give_up(&mut self) -> Word {
        self.has_given_up = true;
        Word::Rest { object: self.object }
    }

    /// Returns `true` once the object is wanted by stream.
    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// The time at which to ask again, unless something comes before.
    pub fn wake_at(&self) -> Duration {
        self.sign_at + if self.asked.is_some() { SETTLE } else { PATIENCE }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const OBJECT: ObjectName = ObjectName { key: 1, object: 2 };
    const MS: Duration = Duration::from_millis(1);

    fn reception() -> ObjectReception {
        ObjectReception::new(OBJECT, Geometry::new(10_000, 1166).unwrap(), Duration::ZERO)
    }

    #[test]
    fn a_question_is_answered_once_and_not_while_symbols_still_come() {
        let mut reception = reception();
        reception.hear(&Word::Sent { object: OBJECT, pass: 0, last: false }, MS);
        assert_eq!(reception.poll(Some((&[3], 6)), 12 * MS), None, "a symbol came just before");
        let answer = reception.poll(Some((&[3], 6)), 22 * MS);
        assert_eq!(answer, Some(Word::Lacks { object: OBJECT, pass: 0, missing: vec![3] }));
        assert_eq!(reception.poll(Some((&[3], 6)), 40 * MS), None);
    }

    #[test]
    fn an_object_of_which_nothing_came_is_missing_as_a_whole() {
        let mut reception = reception();
        reception.hear(&Word::Sent { object: OBJECT, pass: 0, last: false }, MS);
        assert_eq!(reception.poll(None, 20 * MS), Some(Word::Lacks { object: OBJECT, pass: 0, missing: vec![9] }));
    }

    #[test]
    fn silence_and_the_last_question_end_the_wait_once() {
        let mut silent = reception();
        assert_eq!(silent.poll(None, 4_999 * MS), None);
        silent.hear(&Word::Coming { object: OBJECT }, 4_999 * MS);
        assert_eq!(silent.poll(None, 9_998 * MS), None);
        assert_eq!(silent.poll(None, 9_999 * MS), Some(Word::Rest { object: OBJECT }));
        assert_eq!(silent.poll(None, 60_000 * MS), None);

        let mut last = reception();
        last.hear(&Word::Sent { object: OBJECT, pass: 7, last: true }, MS);
        assert_eq!(last.poll(Some((&[1], 8)), 30 * MS), None, "a symbol came");
        assert_eq!(last.poll(Some((&[1], 8)), 40 * MS), Some(Word::Rest { object: OBJECT }));
    }
}
