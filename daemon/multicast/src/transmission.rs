//! A sender's part in one object: the order of its symbols, and the end of the attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::geometry::Geometry;

/// Largest number of passes. What is missing then goes by stream.
pub const MAX_PASSES: u16 = 8;
/// Time that receivers have to answer after a pass. Their symbols may still be in buffers.
const ANSWER_TIME: Duration = Duration::from_millis(250);
/// Questions after one pass that no receiver answers before the attempt ends.
const MAX_QUESTIONS: u16 = 8;
/// Largest share of a pass that is expected to be lost, when the next one is sized.
const MOST_EXPECTED_LOSS: f64 = 0.5;

/// The next step of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransmissionStep {
    /// Send this symbol.
    Symbol(u32),
    /// Say to all receivers that a pass is sent.
    Ask {
        /// The pass.
        pass: u16,
        /// `true` if it was the last one.
        last: bool,
    },
    /// Nothing, unless an answer comes, before this time.
    WaitUntil(Duration),
    /// Nothing ever: each receiver has the object, or gets it by stream.
    Over,
}

/// The transmission of one object to several receivers. Times are since any fixed point.
///
/// Memory is a few bytes for each block and receiver; the symbols themselves are an [`Encoder`](crate::Encoder)'s.
#[derive(Clone, Debug)]
pub struct Transmission {
    geometry: Geometry,
    pass: u16,
    phase: Phase,
    /// The last answers of receivers that lack something.
    receivers: BTreeMap<u64, Option<Vec<u16>>>,
    /// Repair symbols of each block that are still to be sent with the object itself, before receivers are asked.
    ahead: Vec<u32>,
    answer_time: Duration,
    /// The next repair symbol of each block; past the last one it begins again.
    next_repair: Vec<u32>,
    /// Symbols of the present pass, and of all.
    sent_in_pass: u64,
    sent: u64,
    /// The largest share of a pass that a receiver lost, until it is taken.
    lost: Option<f64>,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The object itself, from this source symbol on.
    Sources {
        next: u32,
    },
    /// Repair symbols: how many of which block are still to be sent.
    Repairs {
        left: Vec<u32>,
        block: usize,
    },
    /// A question is to be put to the receivers, after so many that were not answered.
    Asking {
        questions: u16,
    },
    /// A question is being answered.
    Waiting {
        until: Duration,
        questions: u16,
    },
    Over,
}

impl Transmission {
    /// A transmission of which nothing is sent.
    pub fn new(geometry: Geometry) -> Self {
        let blocks = geometry.blocks() as usize;
        Self {
            geometry,
            pass: 0,
            phase: Phase::Sources { next: 0 },
            receivers: BTreeMap::new(),
            ahead: Vec::new(),
            answer_time: ANSWER_TIME,
            next_repair: vec![0; blocks],
            sent_in_pass: 0,
            sent: 0,
            lost: None,
        }
    }

    /// Sends repair symbols with the object itself, this share of the source symbols of each block, so that losses of that
    /// size need no second pass. Answers may take as long as a slot, for which words wait.
    pub fn in_slots(&mut self, share: f64, slot: Duration) {
        self.answer_time = ANSWER_TIME.max(slot);
        let of = |block| (f64::from(self.geometry.block_len(block)) * share.clamp(0.0, 1.0)).ceil() as u32;
        self.ahead = (0..self.geometry.blocks()).map(of).collect();
    }

    /// Adds a receiver. `false` if the attempt is over.
    pub fn add(&mut self, receiver: u64) -> bool {
        if matches!(self.phase, Phase::Over) {
            return false;
        }
        if let Phase::Waiting { .. } = self.phase {
            self.phase = Phase::Asking { questions: 0 };
        }
        self.receivers.insert(receiver, None);
        true
    }

    /// Removes a receiver: it has the object, gets it by stream, or is gone.
    pub fn remove(&mut self, receiver: u64) {
        self.receivers.remove(&receiver);
    }

    /// The receivers that do not have the object.
    pub fn receivers(&self) -> impl Iterator<Item = u64> + '_ {
        self.receivers.keys().copied()
    }

    /// Takes a receiver's answer: the symbols that each block needs after a pass. Answers of others, to earlier
    /// questions, or for another number of blocks are ignored.
    pub fn answer(&mut self, receiver: u64, pass: u16, missing: Vec<u16>) {
        let is_expected = pass == self.pass && matches!(self.phase, Phase::Waiting { .. } | Phase::Asking { .. });
        if is_expected
            && missing.len() == self.next_repair.len()
            && let Some(answer) = self.receivers.get_mut(&receiver)
        {
            *answer = Some(missing);
        }
    }

    /// The next step. Each symbol and question that it returns counts as sent.
    pub fn next(&mut self, now: Duration) -> TransmissionStep {
        loop {
            if self.receivers.is_empty() {
                self.phase = Phase::Over;
            }
            match &mut self.phase {
                Phase::Sources { next } if *next < self.geometry.sources() => {
                    let symbol = *next;
                    *next += 1;
                    return self.symbol(symbol);
                }
                Phase::Repairs { left, block } if *block < left.len() => {
                    if left[*block] == 0 {
                        *block += 1;
                        continue;
                    }
                    left[*block] -= 1;
                    let block = *block as u32;
                    let symbol = self.next_repair_of(block);
                    return self.symbol(symbol);
                }
                Phase::Sources { .. } if !self.ahead.is_empty() => {
                    self.phase = Phase::Repairs { left: std::mem::take(&mut self.ahead), block: 0 };
                }
                Phase::Sources { .. } | Phase::Repairs { .. } => self.phase = Phase::Asking { questions: 0 },
                Phase::Asking { questions } => {
                    let questions = *questions + 1;
                    return self.ask(questions, now);
                }
                Phase::Waiting { until, .. } => {
                    let until = *until;
                    self.evaluate(now);
                    if matches!(self.phase, Phase::Waiting { .. }) {
                        return TransmissionStep::WaitUntil(until);
                    }
                }
                Phase::Over => return TransmissionStep::Over,
            }
        }
    }

    /// Begins the next pass, if all answers to a question have come, or the time for them is over.
    pub fn evaluate(&mut self, now: Duration) {
        if let Phase::Waiting { until, questions } = self.phase
            && (now >= until || self.receivers.values().all(Option::is_some))
        {
            self.phase = self.phase_after_answers(questions);
        }
    }

    /// Leaves out what is left of the repair symbols ahead. `false` if there are none.
    pub fn drop_ahead(&mut self) -> bool {
        let is_ahead = self.pass == 0 && matches!(self.phase, Phase::Repairs { .. });
        if is_ahead {
            self.phase = Phase::Asking { questions: 0 };
        }
        is_ahead
    }

    /// Returns `true` if a link is one of the receivers.
    pub fn has_receiver(&self, receiver: u64) -> bool {
        self.receivers.contains_key(&receiver)
    }

    /// Returns `true` if a symbol is to be sent next.
    pub fn has_symbols(&self) -> bool {
        match &self.phase {
            Phase::Sources { next } => *next < self.geometry.sources() || !self.ahead.is_empty(),
            Phase::Repairs { left, block } => left[(*block).min(left.len())..].iter().any(|left| *left > 0),
            _ => false,
        }
    }

    /// Returns `true` if nothing more will be sent or asked.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Symbols sent in all.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Takes the largest share of the last pass that a receiver lost, once its answers were evaluated.
    pub fn take_lost(&mut self) -> Option<f64> {
        self.lost.take()
    }

    fn symbol(&mut self, symbol: u32) -> TransmissionStep {
        self.sent += 1;
        self.sent_in_pass += 1;
        TransmissionStep::Symbol(symbol)
    }

    fn next_repair_of(&mut self, block: u32) -> u32 {
        let next = &mut self.next_repair[block as usize];
        let index = *next;
        *next = (*next + 1) % self.geometry.block_len(block);
        self.geometry.repair(block, index)
    }

    fn ask(&mut self, questions: u16, now: Duration) -> TransmissionStep {
        let last = self.pass + 1 >= MAX_PASSES || questions >= MAX_QUESTIONS;
        self.phase = if last { Phase::Over } else { Phase::Waiting { until: now + self.answer_time, questions } };
        TransmissionStep::Ask { pass: self.pass, last }
    }

    /// The phase after the answers of a pass, or the time for them: the next pass, the same question, or the end.
    fn phase_after_answers(&mut self, questions: u16) -> Phase {
        let mut most = vec![0_u32; self.next_repair.len()];
        let mut lost: u64 = 0;
        for missing in self.receivers.values_mut().filter_map(Option::take) {
            lost = lost.max(missing.iter().map(|count| u64::from(*count)).sum());
            for (block, count) in missing.into_iter().enumerate() {
                let needed = u32::from(count).min(self.geometry.block_len(block as u32));
                most[block] = most[block].max(needed);
            }
        }
        if lost == 0 {
            return Phase::Asking { questions };
        }
        // Repair symbols that were sent ahead have made good for as many lost ones.
        let ahead =
            if self.pass == 0 { self.sent_in_pass.saturating_sub(u64::from(self.geometry.sources())) } else { 0 };
        let share = (lost + ahead) as f64 / self.sent_in_pass.max(1) as f64;
        self.lost = Some(share.min(1.0));
        let expected = share.min(MOST_EXPECTED_LOSS);
        let with_losses = |needed: u32| (f64::from(needed) / (1.0 - expected)).ceil() as u32;
        let left = most.into_iter().map(with_losses).collect();
        self.pass += 1;
        self.sent_in_pass = 0;
        Phase::Repairs { left, block: 0 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The steps up to the next wait, at a time.
    fn steps(transmission: &mut Transmission, now: Duration) -> Vec<TransmissionStep> {
        let mut steps = Vec::new();
        loop {
            let step = transmission.next(now);
            steps.push(step);
            if matches!(step, TransmissionStep::WaitUntil(_) | TransmissionStep::Over) {
                return steps;
            }
        }
    }

    fn of_two(bytes: usize) -> Transmission {
        let mut transmission = Transmission::new(Geometry::new(bytes, 1000).unwrap());
        [7, 8].iter().for_each(|receiver| assert!(transmission.add(*receiver)));
        transmission
    }

    #[test]
    fn repair_symbols_are_sent_for_the_receiver_that_lacks_most_of_a_block() {
        let mut transmission = of_two(10_000);
        let first = steps(&mut transmission, Duration::ZERO);
        assert_eq!(first.len(), 12);
        assert_eq!(first[10], TransmissionStep::Ask { pass: 0, last: false });
        transmission.answer(7, 0, vec![1]);
        transmission.answer(8, 0, vec![2]);
        let second = steps(&mut transmission, Duration::ZERO);
        // Two of ten are lost: of three repair symbols about two arrive.
        assert_eq!(
            second[..4],
            [
                TransmissionStep::Symbol(10),
                TransmissionStep::Symbol(11),
                TransmissionStep::Symbol(12),
                TransmissionStep::Ask { pass: 1, last: false }
            ]
        );
        assert!((transmission.take_lost().unwrap() - 0.2).abs() < 1e-9);
        transmission.remove(7);
        transmission.answer(8, 0, vec![9]);
        assert!(
            matches!(transmission.next(Duration::ZERO), TransmissionStep::WaitUntil(_)),
            "that was an answer to pass 0"
        );
        transmission.remove(8);
        assert_eq!(transmission.next(Duration::ZERO), TransmissionStep::Over);
        assert!(!transmission.add(9));
    }

    #[test]
    fn silent_receivers_are_asked_some_times_and_the_attempt_ends() {
        let mut transmission = of_two(1_000);
        let (mut now, mut questions, mut symbols) = (Duration::ZERO, 0, 0);
        loop {
            match transmission.next(now) {
                TransmissionStep::Symbol(_) => symbols += 1,
                TransmissionStep::Ask { last, .. } => {
                    questions += 1;
                    assert_eq!(last, questions == MAX_QUESTIONS);
                }
                TransmissionStep::WaitUntil(until) => now = until,
                TransmissionStep::Over => break,
            }
        }
        assert_eq!((symbols, questions), (1, MAX_QUESTIONS));
        assert!(now <= u32::from(MAX_QUESTIONS) * ANSWER_TIME);
    }

    #[test]
    fn a_receiver_that_always_lacks_all_ends_the_attempt_after_the_last_pass() {
        let mut transmission = of_two(50_000);
        let mut passes = 0;
        loop {
            match transmission.next(Duration::ZERO) {
                TransmissionStep::Ask { pass, .. } => {
                    passes += 1;
                    [7, 8].iter().for_each(|receiver| transmission.answer(*receiver, pass, vec![u16::MAX]));
                }
                TransmissionStep::Over => break,
                _ => {}
            }
        }
        assert_eq!(passes, MAX_PASSES);
        assert!(transmission.sent() <= 50 * (1 + 2 * u64::from(MAX_PASSES)), "{}", transmission.sent());
    }

    #[test]
    fn answers_for_another_number_of_blocks_are_ignored() {
        let mut transmission = of_two(1_000);
        steps(&mut transmission, Duration::ZERO);
        transmission.answer(7, 0, vec![1; 1000]);
        transmission.answer(8, 0, Vec::new());
        transmission.answer(99, 0, vec![1]);
        assert!(matches!(transmission.next(Duration::ZERO), TransmissionStep::WaitUntil(_)));
    }
}
