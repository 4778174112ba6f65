//! The audience of an event.

use super::Event;

impl Event {
    /// Returns `true` if it is kept in the event file, remembered by the bus and shown to people. Other events are for
    /// programs that follow along.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Round { .. } | Self::Lost { .. })
    }

    /// Returns `true` if neighbours can cause it as often as they like.
    pub fn is_brought_about(&self) -> bool {
        matches!(
            self,
            Self::Suspended { .. }
                | Self::Resumed { .. }
                | Self::SetBack { .. }
                | Self::Skipped { .. }
                | Self::JoinRequested { .. }
        )
    }

    /// Returns `true` if it is shown to a person who follows along.
    pub fn is_for_people(&self) -> bool {
        !matches!(self, Self::Round { .. })
    }

    /// Returns `true` if the peer's host shows it. A failure is shown once, at the end of the process.
    pub fn is_said(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}
