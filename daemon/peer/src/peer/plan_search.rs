//! State of the search for the plan among bootstrap peers, and its failure in words.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::PeerId;

use crate::error::{Error, ErrorKind};

/// State of the search for the plan.
#[derive(Default)]
pub(super) struct PlanSearch {
    /// Number of bootstrap addresses that have answered.
    pub(super) answers: usize,
    /// The peers behind them, with an address each.
    pub(super) answered: BTreeMap<PeerId, String>,
    /// Peers that refuse this peer their plan, or sent an invalid one.
    pub(super) refusals: BTreeMap<PeerId, Error>,
    /// The addresses that did not answer, with the reason.
    pub(super) failures: BTreeSet<String>,
    /// Peers that have admitted this one by its invitation.
    pub(super) admitted: BTreeSet<PeerId>,
    /// Peers about which the user was warned.
    pub(super) warned: BTreeSet<PeerId>,
}

impl PlanSearch {
    /// Records that a peer does not admit this one. Returns its refusal if all others that answer have refused, and
    /// none has admitted this peer.
    pub(super) fn refused(&mut self, peer: PeerId, refusal: Error) -> Option<Error> {
        let is_last = self.answered.keys().all(|other| *other == peer || self.refusals.contains_key(other));
        if is_last && self.admitted.is_empty() {
            return Some(refusal);
        }
        self.refusals.insert(peer, refusal);
        None
    }

    /// The error to report when the time is up.
    pub(super) fn failure(&mut self, patience: Duration) -> Error {
        if let Some((_, refusal)) = self.refusals.pop_first() {
            return refusal;
        }
        let seconds = patience.as_secs();
        if self.answered.is_empty() {
            let tried: Vec<&str> = self.failures.iter().map(String::as_str).collect();
            return Error::new(
                ErrorKind::Unreachable,
                format!("no bootstrap peer could be reached in {seconds} s; tried\n  {}", tried.join("\n  ")),
            )
            .hint("is that peer running, and does it listen on an address that this machine can reach? its log says where it listens");
        }
        let peers: Vec<String> = self.answered.iter().map(|(peer, address)| format!("{peer} at {address}")).collect();
        Error::new(ErrorKind::Unreachable, format!("no peer had a plan within {seconds} s; asked {}", peers.join(", ")))
            .hint("start one of them with --plan FILE")
    }
}
