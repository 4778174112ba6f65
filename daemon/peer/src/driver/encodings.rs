//! Check whether the plan lets this peer send in the requested codec.

use super::Driver;
use crate::encodings;
use crate::events::Event;

impl Driver<'_> {
    /// Warns the user if some parcels of the present plan will be sent in a finer codec.
    pub(super) fn tell_encodings(&mut self) {
        let config = &self.parts.config;
        let sent = config.schedule.encodings_of(config.id, config.codec);
        if let Some(message) = encodings::objection(&sent, config.codec) {
            self.member.log.tell(Event::Warning { message });
        }
    }
}
