//! The codec under the present plan, and warnings where that or overlap does not suit it.

use super::Driver;
use crate::encodings;
use crate::events::{CodecInUse, Event};
use crate::overlap;

impl Driver<'_> {
    /// Tells the user the codec under the present plan. Warns if some parcels will be sent in a finer one, or if peers may
    /// drift apart, or if the plan does not bear overlap.
    pub(super) fn tell_encodings(&mut self) {
        let config = &self.parts.config;
        let momentum = self.parts.momentum.taken().momentum;
        let schedule = &config.schedule;
        let chosen = config.chosen_codec(self.node.dimension());
        let codec = chosen.codec;
        self.member.log.tell(Event::Codec(CodecInUse { codec: codec.to_string(), reason: chosen.reason() }));
        let objection = encodings::objection(&schedule.encodings_of(config.id, codec), codec);
        let drift = encodings::drift(schedule, codec, momentum);
        for message in [objection, drift, overlap::objection(schedule, config.overlap)].into_iter().flatten() {
            self.member.log.tell(Event::Warning { message });
        }
    }
}
