//! Searches for peers, and the schedule of their attempts. The time is an argument, so that tests need not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

/// First pause between attempts to reach a peer; it doubles up to [`LONGEST_PAUSE`] while nothing new is learned of it.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Time for which the known addresses of a peer are tried before relays and the Kademlia table are used.
const DIRECT_FIRST: Duration = Duration::from_secs(4);
/// Time without a peer found after which the table is queried if members can be asked, as they know before it does.
const MEMBERS_FIRST: Duration = Duration::from_secs(60);
/// Time after which the table is queried if no member has reported addresses within `MEMBERS_FIRST`.
const MEMBERS_SILENT: Duration = Duration::from_secs(10);
/// Time after which the table is queried if there are no members, or if a connection to this peer was requested.
const BRIEFLY: Duration = Duration::from_millis(500);
/// Time for which QUIC is tried alone: a concurrent attempt over TCP is as much work for both sides, and mostly in
/// vain.
const QUIC_FIRST: Duration = Duration::from_secs(3);
/// Pause between two queries to the table for the same peer.
const TABLE_PAUSE: Duration = Duration::from_secs(5);

/// The kind of addresses to dial next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// QUIC addresses, if there are any.
    Quic,
    /// The other addresses, beside a dial under way.
    Others,
    /// All addresses, once no dial is under way.
    All,
}

/// All searches under way.
pub(super) struct Searches {
    under_way: BTreeMap<PeerId, PeerSearch>,
    /// Time at which a peer was last found.
    found_at: Instant,
    /// Time at which a member last reported addresses.
    told_at: Option<Instant>,
}

struct PeerSearch {
    began: Instant,
    /// Time since which its addresses are tried.
    dialled: Option<Instant>,
    /// The last attempt since something new was learned.
    tried: Option<Attempt>,
    /// Set when a connection to this peer was requested.
    is_urgent: bool,
    next: Instant,
    pause: Duration,
    table_asked: Option<Instant>,
}

impl Searches {
    pub(super) fn new(now: Instant) -> Self {
        Self { under_way: BTreeMap::new(), found_at: now, told_at: None }
    }

    /// Searches for these peers from now on, and for no others.
    pub(super) fn follow(&mut self, now: Instant, missing: &BTreeSet<PeerId>) {
        let before = self.under_way.len();
        self.under_way.retain(|peer, _| missing.contains(peer));
        if self.under_way.len() < before {
            self.found_at = now;
        }
        for peer in missing {
            self.under_way.entry(*peer).or_insert(PeerSearch {
                began: now,
                dialled: None,
                tried: None,
                is_urgent: false,
                next: now,
                pause: FIRST_PAUSE,
                table_asked: None,
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    pub(super) fn includes(&self, peer: &PeerId) -> bool {
        self.under_way.contains_key(peer)
    }

    /// Resets the back-off of a peer of which something new was learned.
    pub(super) fn hurry(&mut self, now: Instant, peer: &PeerId) {
        if let Some(search) = self.under_way.get_mut(peer) {
            search.next = now;
            search.pause = FIRST_PAUSE;
            search.tried = None;
        }
    }

    /// Marks the search for a peer as urgent, as its connection was requested.
    pub(super) fn press(&mut self, now: Instant, peer: &PeerId) {
        if let Some(search) = self.under_way.get_mut(peer) {
            search.is_urgent = true;
        }
        self.hurry(now, peer);
    }

    /// After a failed attempt over QUIC, makes the next one, which is of another kind, due at once.
    pub(super) fn note_failure(&mut self, now: Instant, peer: &PeerId) {
        if let Some(search) = self.under_way.get_mut(peer).filter(|search| search.tried == Some(Attempt::Quic)) {
            search.next = now;
        }
    }

    /// Records that a member has reported addresses.
    pub(super) fn note_told(&mut self, now: Instant) {
        self.told_at = Some(now);
    }

    /// The kind of the next attempt to reach this peer.
    pub(super) fn attempt(&self, peer: &PeerId) -> Attempt {
        match self.under_way.get(peer).and_then(|search| search.tried) {
            None => Attempt::Quic,
            Some(Attempt::Quic) => Attempt::Others,
            Some(Attempt::Others | Attempt::All) => Attempt::All,
        }
    }

    /// Records that addresses of this peer are dialled.
    pub(super) fn note_dial(&mut self, now: Instant, peer: &PeerId, attempt: Attempt) {
        if let Some(search) = self.under_way.get_mut(peer) {
            search.dialled.get_or_insert(now);
            search.tried = Some(attempt);
            if attempt == Attempt::Quic {
                search.next = now + QUIC_FIRST;
            }
        }
    }

    /// Time of the earliest next attempt.
    pub(super) fn next(&self) -> Option<Instant> {
        self.under_way.values().map(|search| search.next).min()
    }

    /// The peers due now; schedules their next attempts.
    pub(super) fn due(&mut self, now: Instant) -> Vec<PeerId> {
        let due = self.under_way.iter_mut().filter(|(_, search)| search.next <= now);
        due.map(|(peer, search)| {
            search.next = now + search.pause;
            search.pause = (search.pause * 2).min(LONGEST_PAUSE);
            *peer
        })
        .collect()
    }

    /// Returns `true` if addresses of this peer have been tried for `DIRECT_FIRST` without success.
    pub(super) fn is_unreachable(&self, now: Instant, peer: &PeerId) -> bool {
        let dialled = self.under_way.get(peer).and_then(|search| search.dialled);
        dialled.is_some_and(|since| now - since >= DIRECT_FIRST)
    }

    pub(super) fn any_unreachable(&self, now: Instant) -> bool {
        self.under_way.keys().any(|peer| self.is_unreachable(now, peer))
    }

    /// The peers to query the table for now, at most `most`; with members to ask, the table is the last resort.
    pub(super) fn for_the_table(&mut self, now: Instant, most: usize, has_members: bool) -> Vec<PeerId> {
        let members_help = self.told_at.is_some_and(|at| now - at < MEMBERS_FIRST);
        let patience = if members_help { MEMBERS_FIRST } else { MEMBERS_SILENT };
        let found_at = self.found_at;
        let due = self.under_way.iter_mut().filter(|(_, search)| {
            let patience = if search.is_urgent || !has_members { BRIEFLY } else { patience };
            let patience = if search.dialled.is_some() { patience.max(DIRECT_FIRST) } else { patience };
            let was_asked = search.table_asked.is_some_and(|at| now - at < TABLE_PAUSE);
            !was_asked && now - search.began.max(found_at) >= patience
        });
        due.take(most)
            .map(|(peer, search)| {
                search.table_asked = Some(now);
                *peer
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_tried_less_and_less_often_until_something_new_is_heard_of_it() {
        let (began, peer) = (Instant::now(), PeerId::random());
        let mut searches = Searches::new(began);
        searches.follow(began, &[peer].into());
        let is_due = |ms: &u64| !searches.due(began + Duration::from_millis(*ms)).is_empty();
        let tried: Vec<u64> = (0..200).map(|tenth| 100 * tenth).filter(is_due).collect();
        assert_eq!(tried, [0, 200, 600, 1400, 3000, 6200, 11_200, 16_200]);
        let now = began + Duration::from_secs(20);
        searches.hurry(now, &peer);
        assert_eq!(searches.due(now), [peer]);
        searches.follow(now, &BTreeSet::new());
        assert!(searches.is_empty() && searches.next().is_none());
    }

    #[test]
    fn the_table_is_asked_soon_where_no_member_helps_and_late_where_members_do() {
        let [near, far, other] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let mut now = Instant::now();
        let mut searches = Searches::new(now);
        searches.follow(now, &[near, far].into());
        searches.press(now, &near);
        assert!(searches.for_the_table(now, 4, true).is_empty());
        now += BRIEFLY;
        assert_eq!(searches.for_the_table(now, 4, true), [near]);
        assert!(searches.for_the_table(now, 4, true).is_empty(), "once");
        assert_eq!(searches.for_the_table(now, 4, false), [far], "there is nobody else to ask");

        searches.follow(now, &[other].into());
        now += MEMBERS_SILENT - Duration::from_secs(1);
        assert!(searches.for_the_table(now, 4, true).is_empty(), "members are asked first");
        now += Duration::from_secs(1);
        assert_eq!(searches.for_the_table(now, 4, true), [other]);

        searches.note_told(now);
        searches.follow(now, &[far].into());
        now += MEMBERS_FIRST - Duration::from_secs(1);
        searches.note_told(now);
        assert!(searches.for_the_table(now, 4, true).is_empty(), "members know who comes");
        now += Duration::from_secs(1);
        assert_eq!(searches.for_the_table(now, 4, true), [far]);
    }

    #[test]
    fn tcp_is_tried_once_quic_has_failed_or_taken_too_long() {
        let (mut now, peer) = (Instant::now(), PeerId::random());
        let mut searches = Searches::new(now);
        searches.follow(now, &[peer].into());
        assert_eq!((searches.due(now), searches.attempt(&peer)), (vec![peer], Attempt::Quic));
        searches.note_dial(now, &peer, Attempt::Quic);
        now += QUIC_FIRST - Duration::from_millis(1);
        assert!(searches.due(now).is_empty());
        now += Duration::from_millis(1);
        assert_eq!((searches.due(now), searches.attempt(&peer)), (vec![peer], Attempt::Others));
        searches.note_dial(now, &peer, Attempt::Others);
        assert_eq!(searches.attempt(&peer), Attempt::All);
        searches.hurry(now, &peer);
        searches.note_dial(now, &peer, Attempt::Quic);
        searches.note_failure(now, &peer);
        assert_eq!((searches.due(now), searches.attempt(&peer)), (vec![peer], Attempt::Others));
    }

    #[test]
    fn a_peer_is_unreachable_once_its_addresses_have_been_tried_for_a_while() {
        let (mut now, peer) = (Instant::now(), PeerId::random());
        let mut searches = Searches::new(now);
        searches.follow(now, &[peer].into());
        now += DIRECT_FIRST;
        assert!(!searches.any_unreachable(now), "no address is known");
        searches.note_dial(now, &peer, Attempt::Quic);
        assert!(!searches.is_unreachable(now, &peer));
        now += DIRECT_FIRST;
        assert!(searches.is_unreachable(now, &peer) && searches.any_unreachable(now));
    }
}
