//! Members that a follower may ask, and what became of the ones that it asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Error, ErrorKind};
use mingle_net::transport::NetworkEvent;
use tokio::time::Instant;

use crate::messages::{MAX_ADDRESSES, MAX_MEMBERS};

/// Most members that a follower knows.
const MOST: usize = 256;
/// Most failures of dials that are named at the end.
const MOST_FAILURES: usize = 16;
/// First pause before a member is asked again; it doubles up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Time after the last refusal for another member of the ticket to answer.
const OTHERS_ANSWER: Duration = Duration::from_secs(5);

/// The members.
#[derive(Debug)]
pub(super) struct Candidates {
    members: BTreeMap<PeerId, Candidate>,
    /// Peers that the addresses of the ticket name; the rest of the addresses name none.
    of_ticket: BTreeSet<PeerId>,
    nameless: usize,
    /// Addresses that have answered.
    answered: BTreeSet<String>,
    failures: BTreeSet<String>,
    /// Time of the last refusal.
    refused_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Candidate {
    addresses: Vec<Multiaddr>,
    /// Time before which it is not asked.
    not_before: Option<Instant>,
    pause: Option<Duration>,
    /// Set once it has refused this follower for good.
    refusal: Option<String>,
    /// Turn in which it was asked last.
    asked: u64,
}

impl Candidates {
    /// No members yet; those of a ticket are being dialled at these addresses.
    pub(super) fn new(dialled: &[Multiaddr]) -> Self {
        let named = dialled.iter().filter_map(|address| match address.iter().last() {
            Some(Protocol::P2p(peer)) => Some(peer),
            _ => None,
        });
        let of_ticket: BTreeSet<PeerId> = named.clone().collect();
        Self {
            members: BTreeMap::new(),
            nameless: dialled.len() - named.count(),
            of_ticket,
            answered: BTreeSet::new(),
            failures: BTreeSet::new(),
            refused_at: None,
        }
    }

    pub(super) fn note(&mut self, event: NetworkEvent) {
        match event {
            NetworkEvent::Bootstrapped { peer, address } => {
                self.answered.insert(address.to_string());
                self.learn(vec![(peer, vec![address])]);
            }
            NetworkEvent::DialFailed { attempts, .. } => {
                let failures = attempts.iter().map(ToString::to_string);
                let room = MOST_FAILURES.saturating_sub(self.failures.len());
                self.failures.extend(failures.take(room));
            }
            NetworkEvent::RoundTrip { .. } => {}
        }
    }

    /// Adds members, or addresses of known ones.
    pub(super) fn learn(&mut self, members: Vec<(PeerId, Vec<Multiaddr>)>) {
        for (peer, addresses) in members.into_iter().take(MAX_MEMBERS) {
            if self.members.len() >= MOST && !self.members.contains_key(&peer) {
                continue;
            }
            let known = &mut self.members.entry(peer).or_default().addresses;
            for address in addresses.into_iter().take(MAX_ADDRESSES) {
                if !known.contains(&address) && known.len() < 2 * MAX_ADDRESSES {
                    known.push(address);
                }
            }
        }
    }

    /// The member to ask now: of those that may be asked, the one that was not asked for longest.
    pub(super) fn next(&mut self, now: Instant) -> Option<(PeerId, Vec<Multiaddr>)> {
        let turn = self.members.values().map(|member| member.asked).max().unwrap_or(0) + 1;
        let may_be_asked =
            |member: &Candidate| member.refusal.is_none() && member.not_before.is_none_or(|before| now >= before);
        let mut open: Vec<_> = self.members.iter_mut().filter(|(_, member)| may_be_asked(member)).collect();
        open.sort_by_key(|(_, member)| member.asked);
        let (peer, member) = open.into_iter().next()?;
        member.asked = turn;
        // Whatever becomes of it, it is not asked again at once.
        let pause = member.pause.map_or(FIRST_PAUSE, |pause| (2 * pause).min(LONGEST_PAUSE));
        member.pause = Some(pause);
        member.not_before = Some(now + pause);
        Some((*peer, member.addresses.clone()))
    }

    /// Time at which a member may be asked again.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let settled_at = self.refused_at.map(|at| at + OTHERS_ANSWER);
        let open = self.members.values().filter(|member| member.refusal.is_none());
        open.filter_map(|member| member.not_before).chain(settled_at).min()
    }

    /// The member served this follower, and is to be asked again without delay.
    pub(super) fn retry_soon(&mut self, peer: PeerId) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.pause = None;
            member.not_before = None;
            member.asked = 0;
        }
    }

    /// The member served this follower and has gone, or has no place: others are asked first.
    pub(super) fn retry_later(&mut self, peer: PeerId) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.pause = Some(FIRST_PAUSE);
            member.not_before = Some(Instant::now() + FIRST_PAUSE);
        }
    }

    /// The member could not be reached.
    pub(super) fn failed(&mut self, peer: PeerId, reason: &str) {
        if self.failures.len() < MOST_FAILURES {
            self.failures.insert(format!("{peer}: {reason}"));
        }
    }

    /// The member refuses this follower for good.
    pub(super) fn refused(&mut self, peer: PeerId, reason: &str) {
        self.members.entry(peer).or_default().refusal = Some(format!("peer {peer} serves no model here: {reason}"));
        self.refused_at = Some(Instant::now());
    }

    /// The first refusal, if all members refuse, and those of the ticket have answered, or had time to.
    pub(super) fn refusal_of_all(&self, now: Instant) -> Option<String> {
        let all_refuse = self.members.values().all(|member| member.refusal.is_some());
        let all_came = self.of_ticket.iter().all(|peer| self.members.contains_key(peer));
        let none_to_come = all_came && self.answered.len() >= self.nameless
            || self.refused_at.is_some_and(|at| now >= at + OTHERS_ANSWER);
        let first = self.members.values().find_map(|member| member.refusal.clone());
        first.filter(|_| all_refuse && none_to_come)
    }

    /// The error of a follower that no member served for so long, since a model after `after` rounds.
    pub(super) fn nobody(&self, patience: Duration, after: Option<u64>) -> Error {
        let seconds = patience.as_secs_f64();
        let tried: Vec<&str> = self.failures.iter().map(String::as_str).collect();
        let tried = if tried.is_empty() { String::new() } else { format!("; tried\n  {}", tried.join("\n  ")) };
        match after {
            Some(round) => Error::new(
                ErrorKind::Unreachable,
                format!("no member of the swarm has answered for {seconds} s, and the last model is that of round {round}, not the final one{tried}"),
            )
            .hint("if the training is over, export the model of a member: mingle export; else start this again, and it goes on"),
            None => Error::new(
                ErrorKind::Unreachable,
                format!("no member of the swarm could be reached in {seconds} s{tried}"),
            )
            .hint("is a member running, and does it listen on an address that this machine can reach? Its log says where it listens; mingle invite --address ADDR puts another one into the ticket"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(peers: &[PeerId]) -> Candidates {
        let dialled = peers.iter().map(|peer| format!("/ip4/10.0.1.5/tcp/1/p2p/{peer}").parse().unwrap());
        let mut candidates = Candidates::new(&dialled.collect::<Vec<_>>());
        let address: Multiaddr = "/ip4/10.0.1.5/tcp/1".parse().unwrap();
        for (number, peer) in peers.iter().enumerate() {
            let address = format!("/ip4/10.0.1.5/tcp/{number}").parse().unwrap();
            candidates.note(NetworkEvent::Bootstrapped { peer: *peer, address });
        }
        candidates.learn(vec![(peers[0], vec![address])]);
        candidates
    }

    #[test]
    fn members_are_asked_in_turn_and_none_again_at_once() {
        let peers = [PeerId::random(), PeerId::random()];
        let mut candidates = of(&peers);
        let now = Instant::now();
        let first = candidates.next(now).unwrap().0;
        let second = candidates.next(now).unwrap().0;
        assert_ne!(first, second);
        assert!(candidates.next(now).is_none());
        let soon = candidates.next_at().unwrap();
        assert!(soon > now && soon <= now + FIRST_PAUSE);
        assert_eq!(candidates.next(soon).unwrap().0, first);
        candidates.retry_soon(first);
        assert_eq!(candidates.next(soon).unwrap().0, first, "it is asked at once");
    }

    #[test]
    fn a_follower_ends_once_all_members_refuse_it() {
        let peers = [PeerId::random(), PeerId::random()];
        let mut candidates = of(&peers);
        candidates.refused(peers[0], "it serves no followers");
        let now = Instant::now();
        assert!(candidates.refusal_of_all(now).is_none());
        candidates.refused(peers[1], "it serves no followers");
        assert!(candidates.refusal_of_all(now).unwrap().contains("it serves no followers"));
        assert!(candidates.next(now).is_none());
        // The other member of the ticket never answers.
        let mut candidates = Candidates::new(&["/ip4/10.0.1.7/tcp/1".parse().unwrap()]);
        candidates.learn(vec![(peers[0], Vec::new())]);
        candidates.refused(peers[0], "it serves no followers");
        assert!(candidates.refusal_of_all(now).is_none());
        assert!(candidates.refusal_of_all(candidates.next_at().unwrap()).is_some());
    }

    #[test]
    fn a_follower_knows_a_bounded_number_of_members_and_addresses() {
        let mut candidates = Candidates::new(&[]);
        for round in 0..100 {
            let many = (0..100).map(|port| {
                let address: Multiaddr = format!("/ip4/10.0.1.5/tcp/{}", 100 * round + port).parse().unwrap();
                (PeerId::random(), vec![address; 100])
            });
            candidates.learn(many.collect());
        }
        assert_eq!(candidates.members.len(), MOST);
        let peer = *candidates.members.keys().next().unwrap();
        for port in 0..100 {
            candidates.learn(vec![(peer, vec![format!("/ip4/10.0.1.6/tcp/{port}").parse().unwrap()])]);
        }
        assert_eq!(candidates.members[&peer].addresses.len(), 2 * MAX_ADDRESSES);
    }
}
