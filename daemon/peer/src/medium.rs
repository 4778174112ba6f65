//! The medium of payloads: checks before a peer starts, and its traffic for people.

use mingle_net::multicast::{
    AirRate, MulticastSettings, PayloadMedium, PlannedSlots, SlotChoice, SlotTable, StepSlots, interface_address,
};
use mingle_planner::NodeSlots;
use mingle_protocol::CodecChoice;

use crate::error::{Context, Error, ErrorKind, Result};
use crate::place::Place;

/// Checks that the interface of a medium is one of this machine; payloads go by stream where it does not serve.
///
/// # Errors
/// No interface has the name or address and an IPv4 address. Slots are asked for without multicast or a rate.
pub fn check(medium: &PayloadMedium, rate: Option<AirRate>, slots: SlotChoice) -> Result {
    if slots == SlotChoice::On && (*medium == PayloadMedium::Unicast || rate.is_none()) {
        let message = "--slots on needs --medium multicast and --air-rate: the length of a slot follows from the rate";
        return Err(Error::new(ErrorKind::BadInput, message));
    }
    if let PayloadMedium::Multicast(options) = medium
        && let Some(name) = &options.interface
    {
        interface_address(name).context(ErrorKind::BadInput, format!("--medium {medium}"))?;
    }
    Ok(())
}

/// The medium of a peer's payloads, under whatever plan it has.
pub(crate) struct PeerMedium {
    pub(crate) settings: MulticastSettings,
    pub(crate) slots: SlotChoice,
    pub(crate) codec: CodecChoice,
}

impl PeerMedium {
    /// The settings under a plan, for models of `dimension` parameters.
    pub(crate) fn under(&self, place: &Place, dimension: usize) -> MulticastSettings {
        if self.slots == SlotChoice::Off || self.settings.rate.is_none() {
            return self.settings.clone();
        }
        let Place { plan, node, schedule, .. } = place;
        let neighbours = schedule.all_out_neighbours(*node).iter().chain(schedule.all_in_neighbours(*node));
        let neighbours: Vec<usize> = neighbours.map(|node| node.index()).collect();
        let step = |NodeSlots { count, own, last_busy, quiet }| StepSlots { slots: count, own, last_busy, quiet };
        let steps = plan.plan.slots_of_node(node.index(), &neighbours).into_iter().map(step).collect();
        let table = SlotTable::new(plan.plan.round_length(), steps);
        let table = table.map(|table| table.of_equal_rounds(plan.plan.has_equal_rounds()));
        let encodings = schedule.encodings(self.codec.under(schedule, dimension).codec);
        let payload_bytes = encodings.parcels().keys().map(|codec| codec.encoded_len(dimension)).max().unwrap_or(0);
        let slots = PlannedSlots { table, nodes: plan.plan.node_count(), node: *node, payload_bytes };
        self.settings.clone().with_slots(self.slots, slots)
    }
}
