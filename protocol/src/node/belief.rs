//! The believed part of a neighbour's claims of progress.

use crate::time::Time;

/// The believed part of a neighbour's claims of progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Belief {
    /// The step last believed, and the time of that claim.
    pub(super) anchor: Option<(u64, Time)>,
    /// Steps beyond what time explains that are believed too, at most as many rounds as `progress` grants.
    pub(super) lead: u64,
    pub(super) doubted_since: Option<Time>,
    pub(super) doubt_is_told: bool,
}
