//! The faults that a simulation can inject, and their names in journals and logs.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::misconduct::Misconduct;
use crate::schedule::NodeId;

/// A fault, or an action of the operator or planner. Written in a journal as one key that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A process is killed. It loses what it held, except for what is on its disk.
    Crash(NodeId),
    /// A crashed node starts again: from its disk, or without its state where nodes keep none.
    Restart(NodeId),
    /// A process stands still for a while, with everything that reaches it waiting.
    #[serde(rename = "pause_us")]
    Pause(NodeId, #[serde(with = "micros")] Duration),
    /// A disk takes nothing any more.
    FillDisk(NodeId),
    /// It takes the writes that waited, and goes on.
    FreeDisk(NodeId),
    /// Writes to a disk take this many times as long as usual from now on.
    SlowDisk(NodeId, u32),
    /// A copy of a disk is put aside.
    BackUpDisk(NodeId),
    /// The copy is put back; only a crashed node notices.
    RestoreDisk(NodeId),
    /// A disk loses all it holds; only a crashed node notices.
    WipeDisk(NodeId),
    /// A bit on a disk is flipped, drawn from a seed; only a crashed node notices.
    FlipBit(NodeId, u64),
    /// A file on a disk is cut off at a length drawn from a seed; only a crashed node notices.
    TruncateSlot(NodeId, u64),
    /// Sectors of the last write to a disk were never written, though the disk reported them; only a crashed node
    /// notices.
    LoseSectors(NodeId, u64),
    /// The planner makes a plan for a new generation, with members and links drawn from a seed, and hands it to one
    /// member.
    Replan(u64),
    /// The planner makes a plan for a new generation of so many members, the first of all nodes, with links drawn from
    /// a seed.
    Resize(u32, u64),
    /// The processes of nodes that are not members any more end, and the newest plan is handed to a member again.
    DismissRemoved,
    /// A node is asked to hand over its mass and leave for good.
    Leave(NodeId),
    /// The next write of a node to its disk may or may not survive, and which is unknown: the process ends.
    FailSync(NodeId),
    /// A member sends arbitrary messages from now on: impossible numbers, forged certificates, garbage.
    Corrupt(NodeId),
    /// A member attacks the others inside the bounds from now on.
    Besiege(NodeId, Misconduct),
    /// The planner begins a new generation without a member and without all that attack, with links drawn from a seed.
    Expel(NodeId, u64),
    /// Messages of the first node do not reach the second any more, and neither of them is notified.
    Mute(NodeId, NodeId),
    /// Two nodes lose each other.
    LinkDown(NodeId, NodeId),
    /// They find each other again, and messages arrive in both directions.
    LinkUp(NodeId, NodeId),
    /// A node is asked to stop.
    Stop(NodeId),
}

impl Fault {
    /// The nodes it concerns.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (first, second) = match *self {
            Self::Replan(_) | Self::Resize(..) | Self::DismissRemoved => (None, None),
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
            | Self::FlipBit(id, _)
            | Self::TruncateSlot(id, _)
            | Self::LoseSectors(id, _)
            | Self::Leave(id)
            | Self::FailSync(id)
            | Self::Corrupt(id)
            | Self::Besiege(id, _)
            | Self::Expel(id, _)
            | Self::Stop(id) => (Some(id), None),
        };
        first.into_iter().chain(second)
    }

    /// Returns `true` if a disk is full, slow, empty, old or spoiled from here on, or fails its next write.
    pub fn harms_disk(&self) -> bool {
        matches!(
            self,
            Self::FillDisk(_)
                | Self::SlowDisk(..)
                | Self::RestoreDisk(_)
                | Self::WipeDisk(_)
                | Self::FlipBit(..)
                | Self::TruncateSlot(..)
                | Self::LoseSectors(..)
                | Self::FailSync(_)
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
            Self::FlipBit(id, _) => write!(f, "a bit on the disk of node {id} flips"),
            Self::TruncateSlot(id, _) => write!(f, "a record file of node {id} is cut off"),
            Self::LoseSectors(id, _) => write!(f, "sectors of the last record of node {id} were never written"),
            Self::Replan(_) => f.write_str("a plan with other members begins a new generation"),
            Self::Resize(members, _) => write!(f, "a plan of {members} members begins a new generation"),
            Self::DismissRemoved => f.write_str("those who are not members any more are told so"),
            Self::Leave(id) => write!(f, "node {id} is asked to leave"),
            Self::FailSync(id) => write!(f, "a write of node {id} fails, and whether it is on disk is unknown"),
            Self::Corrupt(id) => write!(f, "node {id} becomes hostile"),
            Self::Besiege(id, attack) => write!(f, "node {id} {attack}"),
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
