//! Changes that a lying member makes to what it sends and passes on.

use std::time::Duration;

use mingle_protocol::collective::{OperationMessage, SequenceMessage};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

/// Attempts that a lying member begins at most.
const MOST_ATTEMPTS: u32 = 3;

/// A member that lies.
pub(super) struct Liar {
    pub(super) node: usize,
    /// The share of its messages that it changes.
    share: f64,
    attempts: u32,
    pub(super) lies: u64,
}

/// A lie about the message itself, beside what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distortion {
    /// The message was changed, or left as it is.
    Said,
    /// It claims to be of a later attempt.
    LaterAttempt,
    /// Its bytes are rubbish.
    Rubbish,
    /// It is not sent.
    Withheld,
}

impl Liar {
    pub(super) fn new(node: usize, share: f64) -> Self {
        Self { node, share, attempts: 0, lies: 0 }
    }

    /// Changes a message, or decides what to make of its envelope.
    pub(super) fn lie(&mut self, message: &mut SequenceMessage, dice: &mut ChaCha8Rng) -> Distortion {
        if !dice.random_bool(self.share) {
            return Distortion::Said;
        }
        self.lies += 1;
        match dice.random_range(0..12) {
            0 if self.attempts < MOST_ATTEMPTS => {
                self.attempts += 1;
                Distortion::LaterAttempt
            }
            1 => Distortion::Rubbish,
            2 => Distortion::Withheld,
            _ => {
                change(&mut message.payload, dice);
                Distortion::Said
            }
        }
    }
}

fn change(payload: &mut OperationMessage, dice: &mut ChaCha8Rng) {
    match payload {
        OperationMessage::Partial(partial) => change_value(&mut partial.values, dice),
        OperationMessage::ModularPartial(partial) => {
            let at = dice.random_range(0..partial.words.len().max(1));
            if let Some(word) = partial.words.get_mut(at) {
                *word = word.wrapping_add(dice.next_u64());
            }
        }
        OperationMessage::Extremum(flood) => {
            let at = dice.random_range(0..flood.values.len().max(1));
            if let Some((value, _)) = flood.values.get_mut(at) {
                *value += 1.0;
            }
        }
        OperationMessage::Share(share) => change_value(&mut share.values, dice),
        OperationMessage::Exchange(_) | OperationMessage::Pull(_) => {}
    }
}

/// A row of another member, a round to go back to or a scale becomes another one.
fn change_value(values: &mut [f64], dice: &mut ChaCha8Rng) {
    let at = dice.random_range(0..values.len().max(1));
    let other = values.get((at + 1) % values.len().max(1)).copied().unwrap_or_default();
    if let Some(value) = values.get_mut(at) {
        *value = [*value + 1.0, *value - 1.0, other][dice.random_range(0..3)];
    }
}

/// The member around which sums are gathered. It may keep a sum of changes to itself, so that all sum them once more.
pub(super) struct Withholder {
    pub(super) root: usize,
    /// The length of a change: other sums are passed on.
    dimension: usize,
    /// The time that it stays away afterwards, and the sums of changes that it had before; none while it is honest.
    next: Option<(Duration, u64)>,
    /// The last sum that it passed on: some may not have it yet.
    passed_on: u64,
}

impl Withholder {
    pub(super) fn new(root: usize, dimension: usize) -> Self {
        Self { root, dimension, next: None, passed_on: 0 }
    }

    /// The next sum after so many is kept back.
    pub(super) fn begin(&mut self, away: Duration, sums: u64) {
        self.next = Some((away, sums));
    }

    pub(super) fn withholds(&mut self, from: usize, message: &SequenceMessage) -> bool {
        let is_sum = match &message.payload {
            OperationMessage::ModularPartial(partial) => partial.is_whole && partial.words.len() > self.dimension,
            _ => false,
        };
        if from != self.root || !is_sum {
            return false;
        }
        if self.next.is_none() {
            self.passed_on = message.operation;
        }
        message.operation > self.passed_on
    }

    /// Once it has the sum: the time that it stays away.
    pub(super) fn end(&mut self, sums: u64) -> Option<Duration> {
        let (away, _) = self.next.take_if(|(_, before)| sums > *before)?;
        Some(away)
    }
}
