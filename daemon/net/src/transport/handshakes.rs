//! Limits on concurrent handshakes. The peer is unknown until a handshake is over, and over QUIC even the source
//! address of a first packet may be forged. So addresses from which members came before have a share of their own, and
//! all others share the rest.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use libp2p::PeerId;
use libp2p::swarm::ConnectionId;

use crate::known_peers::KnownPeers;

/// Most handshakes at a time from all addresses where no member was seen. A flood of as many a second fills this limit;
/// newcomers, and members that come from a new address, then succeed in a fraction of their attempts.
const MOST_FROM_ELSEWHERE: usize = 1024;
/// Most handshakes of one address, with or without a member; and of all relayed ones, as relays know the peers behind
/// them.
const MOST_PER_ADDRESS: usize = 128;
/// Addresses remembered of one member, and of all.
const MOST_ADDRESSES_PER_MEMBER: usize = 8;
const MOST_ADDRESSES: usize = 16_384;

/// The incoming handshakes under way, and the addresses where members were seen.
pub(super) struct Handshakes {
    known: KnownPeers,
    pending: HashMap<ConnectionId, HandshakeOrigin>,
    /// Number of pending handshakes from addresses where no member was seen.
    elsewhere: usize,
    per_address: BTreeMap<Option<IpAddr>, usize>,
    /// The known peer last connected from or at an address.
    seen: BTreeMap<IpAddr, PeerId>,
}

#[derive(Clone, Copy, Debug)]
struct HandshakeOrigin {
    /// `None` through a relay.
    address: Option<IpAddr>,
    is_elsewhere: bool,
}

/// The limit that a refused handshake would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooMany {
    Elsewhere,
    Address(IpAddr),
    Relayed,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere => {
                write!(f, "at most {MOST_FROM_ELSEWHERE} handshakes at a time from where no member was seen")
            }
            Self::Address(address) => write!(f, "at most {MOST_PER_ADDRESS} handshakes at a time from {address}"),
            Self::Relayed => write!(f, "at most {MOST_PER_ADDRESS} handshakes at a time through relays"),
        }
    }
}

impl std::error::Error for TooMany {}

impl Handshakes {
    pub(super) fn new(known: KnownPeers) -> Self {
        Self { known, pending: HashMap::new(), elsewhere: 0, per_address: BTreeMap::new(), seen: BTreeMap::new() }
    }

    /// Begins a handshake from this address, or through a relay if `None`.
    ///
    /// # Errors
    /// Too many handshakes are under way.
    pub(super) fn begin(&mut self, id: ConnectionId, from: Option<IpAddr>) -> Result<(), TooMany> {
        if self.per_address.get(&from).is_some_and(|count| *count >= MOST_PER_ADDRESS) {
            return Err(from.map_or(TooMany::Relayed, TooMany::Address));
        }
        let is_elsewhere = from.is_some_and(|address| !self.is_of_member(&address));
        if is_elsewhere && self.elsewhere >= MOST_FROM_ELSEWHERE {
            return Err(TooMany::Elsewhere);
        }
        self.pending.insert(id, HandshakeOrigin { address: from, is_elsewhere });
        self.elsewhere += usize::from(is_elsewhere);
        *self.per_address.entry(from).or_default() += 1;
        Ok(())
    }

    /// Ends a handshake, whatever its outcome.
    pub(super) fn end(&mut self, id: ConnectionId) {
        let Some(HandshakeOrigin { address, is_elsewhere }) = self.pending.remove(&id) else { return };
        self.elsewhere -= usize::from(is_elsewhere);
        if let Some(count) = self.per_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&address);
            }
        }
    }

    /// Records the address of a connected peer, which has proven it.
    pub(super) fn note_connected(&mut self, peer: PeerId, address: IpAddr) {
        if !self.known.contains(&peer) || self.seen.get(&address) == Some(&peer) {
            return;
        }
        let of_peer = |(seen, by): (&IpAddr, &PeerId)| (*by == peer).then_some(*seen);
        let earlier: Vec<IpAddr> = self.seen.iter().filter_map(of_peer).collect();
        if earlier.len() >= MOST_ADDRESSES_PER_MEMBER {
            self.seen.remove(&earlier[0]);
        }
        if self.seen.len() >= MOST_ADDRESSES {
            self.seen.retain(|_, by| self.known.contains(by));
        }
        if self.seen.len() < MOST_ADDRESSES {
            self.seen.insert(address, peer);
        }
    }

    /// Returns `true` if a peer that is known now was seen at this address.
    fn is_of_member(&self, address: &IpAddr) -> bool {
        self.seen.get(address).is_some_and(|peer| self.known.contains(peer))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(number: usize) -> IpAddr {
        IpAddr::from(u32::try_from(0x0a00_0000 + number).unwrap().to_be_bytes())
    }

    fn id(number: usize) -> ConnectionId {
        ConnectionId::new_unchecked(number)
    }

    /// Begins handshakes from forged addresses until one is refused.
    fn flooded(handshakes: &mut Handshakes) -> usize {
        let mut begun = 0;
        while handshakes.begin(id(begun), Some(address(begun))) != Err(TooMany::Elsewhere) {
            begun += 1;
        }
        begun
    }

    #[test]
    fn members_begin_handshakes_from_where_they_were_while_made_up_addresses_take_all_other_places() {
        let (known, member) = (KnownPeers::default(), PeerId::random());
        known.replace([member].into());
        let mut handshakes = Handshakes::new(known.clone());
        let home: IpAddr = "192.0.2.7".parse().unwrap();
        handshakes.note_connected(PeerId::random(), "192.0.2.8".parse().unwrap());
        handshakes.note_connected(member, home);
        assert_eq!(flooded(&mut handshakes), MOST_FROM_ELSEWHERE);
        assert_eq!(
            handshakes.begin(id(5000), Some("192.0.2.8".parse().unwrap())),
            Err(TooMany::Elsewhere),
            "a stranger's"
        );
        for number in 0..MOST_PER_ADDRESS {
            assert_eq!(handshakes.begin(id(6000 + number), Some(home)), Ok(()));
        }
        assert_eq!(handshakes.begin(id(7000), Some(home)), Err(TooMany::Address(home)));
        assert_eq!(handshakes.begin(id(7001), None), Ok(()), "through a relay");
        handshakes.end(id(6000));
        assert_eq!(handshakes.begin(id(7002), Some(home)), Ok(()));
        known.replace([].into());
        handshakes.end(id(7002));
        assert_eq!(handshakes.begin(id(7003), Some(home)), Err(TooMany::Elsewhere), "it was planned out");
        // A handshake that ends makes room in the share in which it began.
        (0..8000).for_each(|number| handshakes.end(id(number)));
        assert_eq!((handshakes.elsewhere, handshakes.per_address.len()), (0, 0));
        assert_eq!(flooded(&mut handshakes), MOST_FROM_ELSEWHERE);
    }

    #[test]
    fn one_address_takes_few_of_the_places() {
        let mut handshakes = Handshakes::new(KnownPeers::default());
        let flooding = Some(address(1));
        for number in 0..MOST_PER_ADDRESS {
            assert_eq!(handshakes.begin(id(number), flooding), Ok(()));
        }
        assert_eq!(handshakes.begin(id(100), flooding), Err(TooMany::Address(address(1))));
        assert_eq!(handshakes.begin(id(101), Some(address(2))), Ok(()));
    }

    #[test]
    fn a_member_that_moves_about_is_remembered_at_few_addresses() {
        let (known, member) = (KnownPeers::default(), PeerId::random());
        known.replace([member].into());
        let mut handshakes = Handshakes::new(known);
        (0..100).for_each(|number| handshakes.note_connected(member, address(number)));
        assert_eq!(handshakes.seen.len(), MOST_ADDRESSES_PER_MEMBER);
        assert!(handshakes.is_of_member(&address(99)));
    }
}
