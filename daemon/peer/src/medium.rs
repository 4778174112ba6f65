//! The medium of payloads: checks before a peer starts, its settings under a plan, and the time that a plan takes on it.

use mingle_net::multicast::{
    AirForecast, AirRate, MulticastSettings, PayloadMedium, PlannedSlots, SlotChoice, SlotTable, StepSlots,
    interface_address,
};
use mingle_planner::{Medium, NodeSlots, Plan};
use mingle_protocol::CodecChoice;

use crate::error::{Context, Error, ErrorKind, Result};
use crate::place::Place;
use crate::plan;

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

/// Checks that `--air-rate` is for a plan of this medium.
///
/// # Errors
/// Links have lines of their own.
pub fn check_shared(medium: Medium) -> Result {
    if medium == Medium::Broadcast {
        return Ok(());
    }
    let message = "--air-rate is the rate of a shared channel, and the plan is for separate links";
    Err(Error::new(ErrorKind::BadInput, message).hint("leave it away, or make the plan with --medium broadcast"))
}

/// The forecast of a plan on the air, for models of `dimension` parameters.
///
/// # Errors
/// As [`check_shared`].
pub fn air_forecast(plan: &Plan, rate: AirRate, codec: CodecChoice, dimension: usize) -> Result<AirForecast> {
    check_shared(plan.medium())?;
    let schedule = plan::schedule(plan)?;
    let payload_bytes = schedule.encodings(codec.under(&schedule, dimension).codec).longest(dimension);
    let forecast = plan.forecast();
    let slots = forecast.slots_per_period as f64 * plan.round_length() as f64 / plan.steps().len() as f64;
    Ok(AirForecast::new(payload_bytes, rate, slots, forecast.slots_to_1e_2.map(|slots| slots as f64)))
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
        let payload_bytes = encodings.longest(dimension);
        let slots = PlannedSlots { table, nodes: plan.plan.node_count(), node: *node, payload_bytes };
        self.settings.clone().with_slots(self.slots, slots)
    }
}
