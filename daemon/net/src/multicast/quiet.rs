//! Words on a stream that wait for slots which they would disturb.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_protocol::NodeId;

use super::Multicast;

/// Longest time that words wait for slots to end, one after another: a neighbour loses patience after 5 s.
const LONGEST_QUIET: Duration = Duration::from_secs(2);

/// The words for one neighbour.
pub(crate) struct Quiet {
    multicast: Arc<Multicast>,
    neighbour: NodeId,
    since: Option<Instant>,
}

impl Quiet {
    pub(crate) fn new(multicast: &Arc<Multicast>, neighbour: NodeId) -> Self {
        Self { multicast: Arc::clone(multicast), neighbour, since: None }
    }

    /// The time until which a word would collide with a payload of a sender out of range, and waits. `None` if it does not.
    pub(crate) fn until(&mut self) -> Option<Instant> {
        let shared = self.multicast.shared();
        let now = shared.now();
        let quiet = shared.slots().and_then(|slots| slots.rhythm.quiet_for(self.neighbour.0, now));
        let Some(quiet) = quiet else {
            self.since = None;
            return None;
        };
        let present = Instant::now();
        let latest = *self.since.get_or_insert(present) + LONGEST_QUIET;
        (present < latest).then(|| (present + quiet).min(latest))
    }
}
