//! Whom an event is for.

use super::Event;

impl Event {
    /// Whether it is kept in the event file and told to people; the others are for programs that follow along.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Round { .. } | Self::Lost { .. })
    }

    /// Whether neighbours can bring it about as often as they like.
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

    /// Whether a person who follows along wants to see it.
    pub fn is_for_people(&self) -> bool {
        !matches!(self, Self::Round { .. })
    }

    /// Whether those who started the peer hear of it here; a failure is said once, at the end of the process.
    pub fn is_said(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}
