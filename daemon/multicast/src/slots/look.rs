//! Questions to a rhythm that change nothing: lengths, slots, and times in which words wait.

use std::time::Duration;

use super::rhythm::{Rhythm, micros, time};

/// Rounds after that of the last payload in which the present slot is looked for.
const ROUNDS_LOOKED_AT: u64 = 4;

impl Rhythm {
    /// The length of a slot.
    pub fn slot(&self) -> Duration {
        time(self.layout.slot)
    }

    /// The mean length of a round, with its pauses.
    pub fn round(&self) -> Duration {
        time(self.mean_round())
    }

    /// The pause before a round.
    pub fn pause(&self) -> Duration {
        time(i64::from(self.pauses().round))
    }

    /// The slot of the link to a receiver in a step.
    pub fn slot_to(&self, receiver: u32, step: u64) -> Option<u32> {
        self.layout.table.slot_to(receiver, step)
    }

    /// The time until words may be exchanged with a neighbour. `None` if they may now.
    pub fn quiet_for(&self, neighbour: u32, now: Duration) -> Option<Duration> {
        let times = self.times?;
        let steps = self.layout.table.round_steps();
        let has_equal_rounds = self.layout.table.has_equal_rounds();
        let step = if has_equal_rounds { times.step } else { self.last_step };
        let first = step - step % steps;
        let begin = self.start_by(first, times.pauses, times);
        let since = micros(now).saturating_sub(begin);
        let since = if has_equal_rounds { since.rem_euclid(self.mean_round()) } else { since };
        (first..first + steps * ROUNDS_LOOKED_AT)
            .find_map(|step| {
                let since = since - (self.start_by(step, times.pauses, times) - begin);
                let slot = u32::try_from(since.div_euclid(self.layout.slot))
                    .ok()
                    .filter(|slot| *slot < self.layout.table.slots(step))?;
                let left = self.layout.slot - since.rem_euclid(self.layout.slot);
                Some(if self.layout.table.is_quiet(neighbour, step, slot) { time(left) } else { Duration::ZERO })
            })
            .filter(|left| *left > Duration::ZERO)
    }
}
