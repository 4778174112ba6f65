//! The connections of a listener that is open to all, and the choice of the one to close when there is no room left.
//!
//! A connection without a request yet may belong to a slow client, or to one that only occupies the place. So it is
//! never waited for: when there is no room, the longest silent one is closed, or that of the same address where this
//! holds too many. A connection with a request stays. When such connections hold all places, a few further ones are
//! accepted, on which only probes of supervisors are answered.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Limits on the connections that a listener has at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// All connections, except those for probes.
    pub connections: usize,
    /// Connections of one address, or one /64 network of IPv6, except those for probes.
    pub per_address: usize,
    /// Further connections, which may only probe whether the process lives.
    pub probes: usize,
}

/// The connections of one listener.
#[derive(Clone, Debug)]
pub struct Guests {
    limits: ConnectionLimits,
    present: Arc<Mutex<Present>>,
}

#[derive(Debug, Default)]
struct Present {
    next: u64,
    /// Connections by number, in the order of their arrival.
    guests: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    address: Option<IpAddr>,
    was_heard: bool,
    is_for_probes: bool,
    leave: Arc<Notify>,
}

/// The place of one connection; it is free again when this is dropped.
#[derive(Debug)]
pub struct Seat {
    number: u64,
    is_for_probes: bool,
    leave: Arc<Notify>,
    present: Arc<Mutex<Present>>,
}

impl Guests {
    /// A listener without connections.
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, present: Arc::default() }
    }

    /// A place for a connection from this address; `None` if connections with a request hold all places.
    pub fn seat(&self, address: Option<IpAddr>) -> Option<Arc<Seat>> {
        let address = address.map(network_of);
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let ConnectionLimits { connections, per_address, probes } = self.limits;
        let has_room = present.make_room(per_address, |guest| !guest.is_for_probes && guest.address == address)
            && present.make_room(connections, |guest| !guest.is_for_probes);
        if !has_room && !present.make_room(probes, |guest| guest.is_for_probes) {
            return None;
        }
        let number = present.next;
        let leave = Arc::new(Notify::new());
        present.next += 1;
        let is_for_probes = !has_room;
        let guest = Guest { address, was_heard: false, is_for_probes, leave: Arc::clone(&leave) };
        present.guests.insert(number, guest);
        Some(Arc::new(Seat { number, is_for_probes, leave, present: Arc::clone(&self.present) }))
    }
}

impl Present {
    /// Returns `true` if fewer than `most` of these are present, after closing the longest silent one where necessary.
    fn make_room(&mut self, most: usize, of: impl Fn(&Guest) -> bool) -> bool {
        if self.guests.values().filter(|guest| of(guest)).count() < most {
            return true;
        }
        let silent = self.guests.iter().find(|(_, guest)| of(guest) && !guest.was_heard).map(|(number, _)| *number);
        let Some(guest) = silent.and_then(|number| self.guests.remove(&number)) else { return false };
        guest.leave.notify_one();
        true
    }
}

impl Seat {
    /// Waits until the place is wanted for another connection.
    pub async fn is_wanted(&self) {
        self.leave.notified().await;
    }

    /// Notes a request, with which the connection keeps its place from now on. Returns `false`, and notes nothing, if
    /// the place is for probes and the request is none.
    pub fn hear(&self, is_probe: bool) -> bool {
        if self.is_for_probes && !is_probe {
            return false;
        }
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guest) = present.guests.get_mut(&self.number) {
            guest.was_heard = true;
        }
        true
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).guests.remove(&self.number);
    }
}

/// The address that counts for `address`: of IPv6 its /64 network, as one client has all 2^64 addresses of it.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { connections: 3, per_address: 2, probes: 1 };
    const ANA: Option<IpAddr> = address(1);
    const BEN: Option<IpAddr> = address(2);
    const CHO: Option<IpAddr> = address(3);

    const fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, last)))
    }

    /// Returns `true` if the place was taken from its connection.
    fn has_to_go(seat: &Seat) -> bool {
        !seat.present.lock().unwrap().guests.contains_key(&seat.number)
    }

    #[tokio::test]
    async fn the_longest_silent_one_goes_first_of_an_address_with_too_many_and_else_of_all() {
        let guests = Guests::new(LIMITS);
        let seats = [BEN, ANA, ANA, ANA].map(|address| guests.seat(address).unwrap());
        assert_eq!(seats.each_ref().map(|seat| has_to_go(seat)), [false, true, false, false]);
        seats[1].is_wanted().await;
        let another = guests.seat(CHO).unwrap();
        assert!(has_to_go(&seats[0]) && !another.is_for_probes, "all places are taken, by this one for longest");
        drop(seats);
        assert_eq!(guests.present.lock().unwrap().guests.len(), 1);
    }

    #[test]
    fn who_was_heard_keeps_its_place_and_probes_have_one_of_their_own() {
        let guests = Guests::new(LIMITS);
        let seats = [ANA, ANA, BEN].map(|address| guests.seat(address).unwrap());
        assert!(seats.iter().all(|seat| seat.hear(false)));
        let first = guests.seat(CHO).unwrap();
        assert!(!first.hear(false), "this place is for probes");
        let second = guests.seat(ANA).unwrap();
        assert!(has_to_go(&first), "it has asked nothing that is answered");
        assert!(second.hear(true) && guests.seat(CHO).is_none());
        assert!(!seats.iter().any(|seat| has_to_go(seat)));
        drop(second);
        drop(seats);
        assert!(guests.seat(CHO).unwrap().hear(false));
    }

    #[test]
    fn who_has_a_network_of_addresses_has_one_here() {
        for (address, network) in
            [("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("::ffff:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1")]
        {
            assert_eq!(network_of(address.parse().unwrap()).to_string(), network);
        }
    }
}
