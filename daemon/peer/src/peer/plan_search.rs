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

    /// The remark on a search that takes long, and will take `patience` at most. `or_else` says what is done then.
    pub(super) fn remark(&self, patience: Duration, or_else: &str) -> String {
        let limit = format!("asked again until {} s are over{or_else}", patience.as_secs());
        if let Some(refusal) = self.refusals.values().next() {
            return format!("{refusal:#}; other peers are {limit}");
        }
        if self.answered.is_empty() {
            return format!(
                "no bootstrap peer has answered yet: is one running, and does it listen on an address that this machine can reach? \
                 They are {limit}"
            );
        }
        let peers: Vec<String> = self.answered.keys().map(ToString::to_string).collect();
        format!("{} has no plan yet: start it with --plan FILE; it is {limit}", peers.join(", "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_search_says_what_is_missing_and_how_long_it_goes_on() {
        let limit = Duration::from_secs(30);
        let mut search = PlanSearch::default();
        let unreachable = search.remark(limit, ", then the plan of the last run is used");
        assert!(unreachable.contains("no bootstrap peer has answered yet"), "{unreachable}");
        assert!(unreachable.ends_with("until 30 s are over, then the plan of the last run is used"), "{unreachable}");

        let peer = PeerId::random();
        search.answered.insert(peer, "/ip4/127.0.0.1/tcp/1".to_owned());
        let without_plan = search.remark(limit, "");
        assert!(without_plan.contains(&format!("{peer} has no plan yet")), "{without_plan}");
        assert!(without_plan.contains("--plan FILE"), "{without_plan}");

        search.refusals.insert(peer, Error::new(ErrorKind::Refused, "it is no member"));
        assert!(search.remark(limit, "").starts_with("it is no member"), "the reason that a peer gave");
    }
}
