//! The slots of a plan, as one node needs them.

/// Most slots in a period. A plan has at most one for each of its links.
const MAX_SLOTS: u64 = 1 << 32;

/// The slots of one step of the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSlots {
    /// Their number.
    pub slots: u32,
    /// The receivers of this node, each with the slot of the link to it, from 0.
    pub own: Vec<(u32, u32)>,
    /// The last slot in which this node transmits, or something comes for it.
    pub last_busy: Option<u32>,
    /// Neighbours, each with a slot in which no words are exchanged with it: they would collide with a payload whose sender
    /// is out of range of one of the two.
    pub quiet: Vec<(u32, u32)>,
}

/// The time from a node's last payload, out or in, to the slots of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotDistance {
    /// Slots between.
    pub(super) slots: u64,
    /// Pauses before first steps of rounds.
    pub(super) round_pauses: u64,
    /// Pauses before other steps.
    pub(super) step_pauses: u64,
}

/// The slots of all steps of a period. Steps are counted over all periods, from 0.
///
/// ```
/// use mingle_multicast::{SlotTable, StepSlots};
/// // Rounds of one step with three slots, of which this node has the second, for node 5.
/// let table = SlotTable::new(1, vec![StepSlots { slots: 3, own: vec![(5, 1)], last_busy: Some(2), quiet: Vec::new() }]).unwrap();
/// assert_eq!((table.before(7), table.slot_to(5, 7)), (21, Some(1)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTable {
    round_steps: u64,
    steps: Vec<StepSlots>,
    /// Slots of the period before each step, and at its end those of the whole.
    before: Vec<u64>,
    /// Before each step, if the node has any payload in a period.
    since_busy: Vec<Option<SlotDistance>>,
    has_equal_rounds: bool,
}

impl SlotTable {
    /// The table of a period in rounds of `round_steps` steps. `None` if it has no slots, more than 2^32, a part of a
    /// round, or a node's slot beyond those of its step.
    pub fn new(round_steps: usize, steps: Vec<StepSlots>) -> Option<Self> {
        let is_whole = round_steps > 0 && !steps.is_empty() && steps.len().is_multiple_of(round_steps);
        let is_sound = |step: &StepSlots| {
            let slots = step.own.iter().map(|(_, slot)| *slot).chain(step.last_busy);
            slots.max().is_none_or(|last| last < step.slots)
        };
        if !is_whole || !steps.iter().all(is_sound) {
            return None;
        }
        let mut before = vec![0];
        for step in &steps {
            before.push(before[before.len() - 1] + u64::from(step.slots));
        }
        let total = before[steps.len()];
        if total == 0 || total > MAX_SLOTS {
            return None;
        }
        let mut rounds = steps.chunks_exact(round_steps);
        let has_equal_rounds = rounds.next().is_some_and(|first| rounds.all(|round| round == first));
        let since_busy = distances(&steps, round_steps);
        Some(Self { round_steps: round_steps as u64, steps, before, since_busy, has_equal_rounds })
    }

    /// The same for a plan of which it is known if all rounds have the same slots for all nodes, not for this one alone.
    #[must_use]
    pub fn of_equal_rounds(mut self, are_equal: bool) -> Self {
        self.has_equal_rounds &= are_equal;
        self
    }

    /// Steps of a round.
    pub fn round_steps(&self) -> u64 {
        self.round_steps
    }

    /// Rounds of the period.
    pub fn rounds(&self) -> u64 {
        self.steps.len() as u64 / self.round_steps
    }

    /// Slots of the period.
    pub fn total(&self) -> u64 {
        self.before[self.steps.len()]
    }

    /// `true` if all rounds have the same slots.
    pub fn has_equal_rounds(&self) -> bool {
        self.has_equal_rounds
    }

    /// The slots of all steps before this one.
    pub fn before(&self, step: u64) -> u64 {
        let period = self.steps.len() as u64;
        (step / period).saturating_mul(self.total()).saturating_add(self.before[(step % period) as usize])
    }

    /// The time that a node has from its last payload of earlier steps to the slots of this one.
    pub(super) fn since_busy(&self, step: u64) -> Option<SlotDistance> {
        self.since_busy[(step % self.steps.len() as u64) as usize]
    }

    /// The number of slots of a step.
    pub(super) fn slots(&self, step: u64) -> u32 {
        self.steps[(step % self.steps.len() as u64) as usize].slots
    }

    /// Returns `true` if no words are exchanged with a neighbour in a slot.
    pub(super) fn is_quiet(&self, neighbour: u32, step: u64, slot: u32) -> bool {
        self.steps[(step % self.steps.len() as u64) as usize].quiet.contains(&(neighbour, slot))
    }

    /// The slot of the link to a receiver in a step.
    pub fn slot_to(&self, receiver: u32, step: u64) -> Option<u32> {
        let own = &self.steps[(step % self.steps.len() as u64) as usize].own;
        own.iter().find_map(|(node, slot)| (*node == receiver).then_some(*slot))
    }
}

/// Goes through the period twice, since the last payload before a step may come in the period before.
fn distances(steps: &[StepSlots], round_steps: usize) -> Vec<Option<SlotDistance>> {
    let mut since = vec![None; steps.len()];
    let mut present: Option<SlotDistance> = None;
    for (number, step) in steps.iter().enumerate().chain(steps.iter().enumerate()) {
        if let Some(distance) = &mut present {
            if number.is_multiple_of(round_steps) {
                distance.round_pauses += 1;
            } else {
                distance.step_pauses += 1;
            }
        }
        since[number] = present;
        match (step.last_busy, &mut present) {
            (Some(last), _) => {
                present = Some(SlotDistance { slots: u64::from(step.slots - 1 - last), ..SlotDistance::default() });
            }
            (None, Some(distance)) => distance.slots += u64::from(step.slots),
            (None, None) => {}
        }
    }
    since
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A step in which this node sends to node 5.
    fn step(slots: u32, own: impl Into<Option<u32>>) -> StepSlots {
        StepSlots {
            slots,
            own: own.into().into_iter().map(|slot| (5, slot)).collect(),
            last_busy: None,
            quiet: Vec::new(),
        }
    }

    #[test]
    fn slots_are_counted_over_periods() {
        let table = SlotTable::new(2, vec![step(3, 1), step(1, None), step(2, 0), step(0, None)]).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 9].map(|step| table.before(step)), [0, 3, 4, 6, 6, 15]);
        assert_eq!([0, 1, 2, 3, 4].map(|step| table.slot_to(5, step)), [Some(1), None, Some(0), None, Some(1)]);
        assert_eq!(table.slot_to(6, 0), None);
        assert_eq!((table.rounds(), table.total(), table.has_equal_rounds()), (2, 6, false));
        assert!(SlotTable::new(1, vec![step(2, 1), step(2, 1)]).unwrap().has_equal_rounds());
    }

    #[test]
    fn the_time_since_the_last_payload_counts_slots_and_pauses_over_the_end_of_the_period() {
        let with = |slots, last_busy| StepSlots { slots, own: Vec::new(), last_busy, quiet: Vec::new() };
        let table = SlotTable::new(2, vec![with(3, None), with(4, Some(1)), with(5, None), with(1, None)]).unwrap();
        let distance = |slots, round_pauses, step_pauses| Some(SlotDistance { slots, round_pauses, step_pauses });
        assert_eq!(table.since_busy(6), distance(2, 1, 0));
        assert_eq!(table.since_busy(7), distance(7, 1, 1));
        assert_eq!(table.since_busy(4), distance(8, 2, 1));
        assert_eq!(table.since_busy(5), distance(11, 2, 2));
        assert_eq!(SlotTable::new(1, vec![with(3, None)]).unwrap().since_busy(0), None);
    }

    #[test]
    fn a_period_without_slots_or_with_half_a_round_is_no_table() {
        assert_eq!(SlotTable::new(1, vec![step(0, None)]), None);
        assert_eq!(SlotTable::new(2, vec![step(1, 0)]), None);
        assert_eq!(SlotTable::new(0, vec![step(1, 0)]), None);
        assert_eq!(SlotTable::new(1, Vec::new()), None);
        assert_eq!(SlotTable::new(1, vec![step(2, 2)]), None, "the third of two slots");
        assert_eq!(SlotTable::new(1, vec![step(u32::MAX, 0), step(u32::MAX, 0)]), None);
    }
}
