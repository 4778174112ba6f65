//! An event as a line of JSON.

use serde::{Deserialize, Serialize};

use super::Event;

/// The version of the event objects.
pub const SCHEMA: &str = "mingle.event/1";

/// One line of the event stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventLine {
    /// The version of the format.
    pub schema: String,
    /// Milliseconds since the process started.
    pub at_ms: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl EventLine {
    /// A line for this event.
    pub fn now(at_ms: u64, event: Event) -> Self {
        Self { schema: SCHEMA.to_owned(), at_ms, event }
    }
}
