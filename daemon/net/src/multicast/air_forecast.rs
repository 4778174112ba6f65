//! The time that a plan takes on the air.

use serde::Serialize;

use super::{AirRate, PACKET_BYTES, SlotLength};

/// The time that a plan takes on a shared channel where payloads go in its slots, without the pauses in which peers train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AirForecast {
    /// Bytes of the longest payload once references are in common, after which slots have their length; keyframes are longer,
    /// and take several.
    pub payload_bytes: usize,
    /// Length of a slot: that which peers keep at this rate.
    pub seconds_per_slot: f64,
    /// Length of a round, the mean of all rounds of a period.
    pub seconds_per_round: f64,
    /// Time until all nodes agree to 1e-2; `None` where the plan's forecast does not say.
    #[serde(rename = "seconds_to_1e-2")]
    pub seconds_to_1e_2: Option<f64>,
}

impl AirForecast {
    /// The forecast for payloads of so many bytes at a rate, in a plan with so many slots in a round, and so many until all
    /// nodes agree to 1e-2.
    pub fn new(payload_bytes: usize, rate: AirRate, slots_per_round: f64, slots_to_1e_2: Option<f64>) -> Self {
        let slot = SlotLength::of(payload_bytes, PACKET_BYTES, rate).slot().as_secs_f64();
        Self {
            payload_bytes,
            seconds_per_slot: slot,
            seconds_per_round: slots_per_round * slot,
            seconds_to_1e_2: slots_to_1e_2.map(|slots| slots * slot),
        }
    }

    /// The forecast for people.
    pub fn words(&self) -> String {
        let agreed = self.seconds_to_1e_2.map_or_else(String::new, |seconds| format!(", {seconds:.3} s to 1e-2"));
        format!(
            "{:.3} s a round{agreed}, in slots of {:.1} ms for {} bytes, without pauses for training",
            self.seconds_per_round,
            1e3 * self.seconds_per_slot,
            self.payload_bytes
        )
    }
}
