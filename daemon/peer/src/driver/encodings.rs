//! Warnings of a codec that the present plan does not suit.

use super::Driver;
use crate::encodings;
use crate::events::Event;

impl Driver<'_> {
    /// Warns the user if some parcels of the present plan will be sent in a finer codec, or if peers may drift apart.
    pub(super) fn tell_encodings(&mut self) {
        let config = &self.parts.config;
        let momentum = self.parts.momentum.taken().momentum;
        let (schedule, codec) = (&config.schedule, config.chosen_codec(self.node.dimension()).codec);
        let objection = encodings::objection(&schedule.encodings_of(config.id, codec), codec);
        for message in objection.into_iter().chain(encodings::drift(schedule, codec, momentum)) {
            self.member.log.tell(Event::Warning { message });
        }
    }
}
