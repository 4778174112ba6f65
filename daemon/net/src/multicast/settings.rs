//! Settings of payloads by multicast.

use std::time::Duration;

use mingle_multicast::{AirRate, MulticastOptions, PayloadMedium, SlotChoice, SlotLength, SlotTable};
use mingle_protocol::NodeId;

use super::PACKET_BYTES;

/// The longest round in slots.
const LONGEST_ROUND: Duration = Duration::from_secs(600);

/// Settings of payloads by multicast.
#[derive(Clone, Debug, Default)]
pub struct MulticastSettings {
    /// The group, and the interface.
    pub options: MulticastOptions,
    /// The rate of packets; `None` adapts it to what receivers lose.
    pub rate: Option<AirRate>,
    /// The slots in which payloads are sent; `None` sends them when they are ready.
    pub slots: Option<SlotSettings>,
    /// The reason why there are none, where it is to be said.
    pub no_slots: Option<String>,
}

/// Slots of one node of a plan.
#[derive(Clone, Debug)]
pub struct SlotSettings {
    /// The slots of each step.
    pub table: SlotTable,
    /// Nodes of the plan.
    pub nodes: usize,
    /// This node.
    pub node: NodeId,
    /// Length of a slot.
    pub length: SlotLength,
}

/// The slots that a plan has for a node.
#[derive(Clone, Debug)]
pub struct PlannedSlots {
    /// The slots of each step; `None` if the plan is not for a shared channel.
    pub table: Option<SlotTable>,
    /// Nodes of the plan.
    pub nodes: usize,
    /// This node.
    pub node: NodeId,
    /// Bytes of the longest payload that any node sends as a rule.
    pub payload_bytes: usize,
}

impl MulticastSettings {
    /// The settings of a medium; `None` for unicast.
    pub fn of(medium: &PayloadMedium, rate: Option<AirRate>) -> Option<Self> {
        match medium {
            PayloadMedium::Unicast => None,
            PayloadMedium::Multicast(options) => Some(Self { options: options.clone(), rate, ..Self::default() }),
        }
    }

    /// The same with the slots of a plan, if they are to be kept and can be.
    #[must_use]
    pub fn with_slots(self, choice: SlotChoice, planned: PlannedSlots) -> Self {
        if choice == SlotChoice::Off {
            return self;
        }
        match self.slots_of(planned) {
            Ok(slots) => Self { slots: Some(slots), ..self },
            Err(reason) => Self { no_slots: (choice == SlotChoice::On).then_some(reason), ..self },
        }
    }

    fn slots_of(&self, planned: PlannedSlots) -> Result<SlotSettings, String> {
        let PlannedSlots { table, nodes, node, payload_bytes } = planned;
        let rate = self.rate.ok_or("no --air-rate is given, from which their length follows")?;
        let table = table.ok_or("the plan is not made for a shared channel (plan make --medium broadcast)")?;
        let length = SlotLength::of(payload_bytes, PACKET_BYTES, rate);
        let round = length.slot().as_secs_f64() * table.total() as f64 / table.rounds() as f64;
        if round > LONGEST_ROUND.as_secs_f64() {
            return Err(format!("a round would take {round:.0} s at {rate}, and more than 600 s serve no one"));
        }
        Ok(SlotSettings { table, nodes, node, length })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_multicast::StepSlots;

    use super::*;

    fn planned(has_table: bool, payload_bytes: usize) -> PlannedSlots {
        let step = StepSlots { slots: 2, own: vec![(1, 0)], last_busy: Some(1), quiet: Vec::new() };
        let table = SlotTable::new(1, vec![step]).filter(|_| has_table);
        PlannedSlots { table, nodes: 2, node: NodeId(0), payload_bytes }
    }

    fn settings(rate: Option<&str>) -> MulticastSettings {
        MulticastSettings { rate: rate.map(|rate| rate.parse().unwrap()), ..MulticastSettings::default() }
    }

    #[test]
    fn slots_are_kept_where_the_plan_has_some_and_the_rate_is_given() {
        let with = |choice| settings(Some("10mbit")).with_slots(choice, planned(true, 100_000));
        assert!(with(SlotChoice::Auto).slots.is_some() && with(SlotChoice::On).slots.is_some());
        assert!(with(SlotChoice::Off).slots.is_none());
    }

    #[test]
    fn who_asks_for_slots_learns_why_there_are_none_and_others_do_not() {
        let cases = [
            (None, planned(true, 100), "no --air-rate"),
            (Some("1mbit"), planned(false, 100), "not made for a shared channel"),
            (Some("10kbit"), planned(true, 1_000_000), "a round would take"),
        ];
        for (rate, planned, reason) in cases {
            let on = settings(rate).with_slots(SlotChoice::On, planned.clone());
            assert!(on.slots.is_none() && on.no_slots.unwrap().contains(reason), "{reason}");
            assert_eq!(settings(rate).with_slots(SlotChoice::Auto, planned).no_slots, None);
        }
    }
}
