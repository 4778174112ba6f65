//! What a fault is about, and what it is called.

use std::fmt;

use super::swarm::Fault;
use crate::schedule::NodeId;

impl Fault {
    /// The nodes it concerns.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (first, second) = match *self {
            Self::Replan(_) | Self::Rewire(_) | Self::DismissRemoved => (None, None),
            Self::LinkDown(a, b) | Self::LinkUp(a, b) | Self::Mute(a, b) => (Some(a), Some(b)),
            Self::Crash(id)
            | Self::Restart(id)
            | Self::Pause(id, _)
            | Self::FillDisk(id)
            | Self::FreeDisk(id)
            | Self::SlowDisk(id, _)
            | Self::BackUpDisk(id)
            | Self::RestoreDisk(id)
            | Self::WipeDisk(id)
            | Self::Leave(id)
            | Self::FailSync(id)
            | Self::Corrupt(id)
            | Self::Expel(id, _)
            | Self::Stop(id) => (Some(id), None),
        };
        first.into_iter().chain(second)
    }

    /// Whether a disk is full, slow, empty or old from here on.
    pub fn harms_disk(&self) -> bool {
        matches!(
            self,
            Self::FillDisk(_) | Self::SlowDisk(..) | Self::RestoreDisk(_) | Self::WipeDisk(_) | Self::FailSync(_)
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(id) => write!(f, "node {id} is killed"),
            Self::Restart(id) => write!(f, "node {id} starts again"),
            Self::Pause(id, span) => write!(f, "node {id} stands still for {:.3} s", span.as_secs_f64()),
            Self::FillDisk(id) => write!(f, "the disk of node {id} is full"),
            Self::FreeDisk(id) => write!(f, "the disk of node {id} has room"),
            Self::SlowDisk(id, times) => write!(f, "the disk of node {id} takes {times} times as long"),
            Self::BackUpDisk(id) => write!(f, "the disk of node {id} is copied"),
            Self::RestoreDisk(id) => write!(f, "the disk of node {id} becomes the copy"),
            Self::WipeDisk(id) => write!(f, "the disk of node {id} is wiped"),
            Self::Replan(_) => f.write_str("a plan with other members begins a new generation"),
            Self::Rewire(_) => f.write_str("a plan with other links replaces the present one"),
            Self::DismissRemoved => f.write_str("those who are not members any more are told so"),
            Self::Leave(id) => write!(f, "node {id} is asked to leave"),
            Self::FailSync(id) => write!(f, "a write of node {id} fails, and whether it is on disk is unknown"),
            Self::Corrupt(id) => write!(f, "node {id} becomes hostile"),
            Self::Expel(id, _) => write!(f, "a plan without node {id} begins a new generation"),
            Self::Mute(a, b) => write!(f, "what node {a} sends does not reach node {b}"),
            Self::LinkDown(a, b) => write!(f, "nodes {a} and {b} lose each other"),
            Self::LinkUp(a, b) => write!(f, "nodes {a} and {b} find each other"),
            Self::Stop(id) => write!(f, "node {id} is asked to stop"),
        }
    }
}

/// Spans as whole microseconds.
pub(super) mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::sim) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        u64::try_from(span.as_micros()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub(in crate::sim) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}
