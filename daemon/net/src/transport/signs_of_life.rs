//! Intervals at which connections show that they live, and times after which they count as dead.

use std::time::Duration;

use mingle_multicast::{AirRate, PayloadMedium, SlotChoice};

/// The pace at which idle connections show that they live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignsOfLife {
    /// A killed process is noticed within 5 s.
    #[default]
    Frequent,
    /// A killed process is noticed within 20 s. For shared channels, on which each packet disturbs others.
    Sparse,
}

impl SignsOfLife {
    /// The pace for a medium of payloads: sparse where slots may be kept.
    pub fn of(medium: &PayloadMedium, rate: Option<AirRate>, slots: SlotChoice) -> Self {
        let may_keep_slots = *medium != PayloadMedium::Unicast && rate.is_some() && slots != SlotChoice::Off;
        if may_keep_slots { Self::Sparse } else { Self::Frequent }
    }

    /// Idle time after which a QUIC connection counts as dead.
    pub(super) fn idle_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Frequent => 5,
            Self::Sparse => 20,
        })
    }

    /// Keep-alive interval of QUIC: keeps NAT mappings open, and is well inside the idle timeout.
    pub(super) fn keep_alive(self) -> Duration {
        match self {
            Self::Frequent => Duration::from_millis(1500),
            Self::Sparse => Duration::from_secs(6),
        }
    }

    /// Interval of pings, which measure the time of a round trip.
    pub(super) fn ping_interval(self) -> Duration {
        Duration::from_secs(match self {
            Self::Frequent => 3,
            Self::Sparse => 15,
        })
    }

    /// Time for the answer to a ping.
    pub(super) fn ping_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Frequent => 6,
            Self::Sparse => 10,
        })
    }
}
