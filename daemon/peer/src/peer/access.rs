//! The ways into a peer's process, handed from its beginning to its work.

use std::sync::Arc;

use mingle_net::transport::NetworkEvent;
use tokio::sync::mpsc;

use crate::api::{Interface, Request};
use crate::follow::serving::Followers;
use crate::membership::{MembershipService, Wanted};
use crate::stop::StopRequests;
use crate::timeline::Timeline;

/// Parameters of the streams of a plan.
pub(super) struct Streams {
    /// A number that distinguishes this process from any other.
    pub(super) boot_nonce: u64,
    /// Parameters in a parcel.
    pub(super) dimension: usize,
    /// The timeline of this process.
    pub(super) timeline: Timeline,
}

/// The interfaces through which others reach this process, and the requests that only the event loop can answer.
pub(super) struct Access<'a> {
    pub(super) service: Arc<MembershipService>,
    pub(super) wanted: mpsc::Receiver<Wanted>,
    pub(super) interface: &'a Interface,
    pub(super) followers: Followers,
}

/// Sources of outside events.
pub(super) struct Incoming {
    pub(super) events: mpsc::Receiver<NetworkEvent>,
    pub(super) stop: StopRequests,
    pub(super) asked: mpsc::Receiver<Request>,
}
