//! Slots and pauses, one after another from the beginning of a plan. Times are in microseconds.

use super::pauses::Pauses;
use super::table::SlotTable;

/// The slots of a plan, and their length.
#[derive(Clone, Debug)]
pub(super) struct SlotLayout {
    pub(super) table: SlotTable,
    pub(super) slot: i64,
}

impl SlotLayout {
    /// Rounds that beacons may put the next slots off where rounds differ, and that a pause may last.
    pub(super) const MOST_ROUNDS_LATER: i64 = 8;

    /// The start of a step's slots with these pauses.
    pub(super) fn place(&self, step: u64, pauses: Pauses) -> i128 {
        let round = step / self.table.round_steps();
        let slots = i128::from(self.table.before(step)) * i128::from(self.slot);
        let rounds = (i128::from(round) + 1) * i128::from(pauses.round);
        slots + rounds + i128::from(step - round) * i128::from(pauses.step)
    }

    /// The length of a period.
    pub(super) fn period(&self, pauses: Pauses) -> i64 {
        let steps = self.table.rounds() * self.table.round_steps();
        let length = self.place(steps, pauses) - self.place(0, pauses);
        length.min(i128::from(i64::MAX / 8)) as i64
    }

    /// The mean length of a round.
    pub(super) fn mean_round(&self, pauses: Pauses) -> i64 {
        (self.period(pauses) / self.table.rounds() as i64).max(1)
    }

    /// The longest pauses: as long as the slots of a mean round, and as a slot. Where rounds differ, a payload that is late
    /// cannot take the place of the next one, so the first one may be longer.
    pub(super) fn longest(&self) -> Pauses {
        let rounds = if self.table.has_equal_rounds() { 1 } else { Self::MOST_ROUNDS_LATER };
        let round = self.mean_round(Pauses::default()) * rounds;
        Pauses { round: u32::try_from(round).unwrap_or(u32::MAX), step: self.slot as u32 }
    }
}
