//! The medium of a run, as people write it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use thiserror::Error;

/// The way of payloads.
///
/// ```
/// use mingle_multicast::PayloadMedium;
/// let medium: PayloadMedium = "multicast:239.255.7.1:7000%eth0".parse().unwrap();
/// assert_eq!(medium.to_string(), "multicast:239.255.7.1:7000%eth0");
/// assert!("multicast:10.0.0.1:7000".parse::<PayloadMedium>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PayloadMedium {
    /// Each payload on the stream of each link.
    #[default]
    Unicast,
    /// Each payload once, to a group, for all neighbours that packets reach.
    Multicast(MulticastOptions),
}

/// Options of multicast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastOptions {
    /// The group and its port; `None` for those that follow from the plan.
    pub group: Option<SocketAddrV4>,
    /// The interface: its name or its IPv4 address; `None` leaves it to the system.
    pub interface: Option<String>,
}

/// A peer's choice about the slots of its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotChoice {
    /// It does where the plan is for a shared channel and the rate is given.
    #[default]
    Auto,
    /// It does, and says why where it cannot.
    On,
    /// It sends payloads when they are ready.
    Off,
}

/// A text is no choice of slots.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no choice of slots: write auto, on or off")]
pub struct SlotChoiceError(String);

impl FromStr for SlotChoice {
    type Err = SlotChoiceError;

    fn from_str(text: &str) -> Result<Self, SlotChoiceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(SlotChoiceError(text.to_owned())),
        }
    }
}

impl fmt::Display for SlotChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

/// A text is no medium.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MediumError {
    /// Neither of the two words.
    #[error("`{0}` is no medium: write unicast, or multicast[:GROUP:PORT][%INTERFACE]")]
    Unknown(String),
    /// The group is no IPv4 address with a port.
    #[error("`{0}` is no group with its port: write an IPv4 multicast address, such as 239.255.7.1:7000")]
    Group(String),
    /// The address is not one of a group.
    #[error("{0} is not a multicast address: groups are 224.0.1.0 to 239.255.255.255, for own use 239.255.0.0/16")]
    NotAGroup(Ipv4Addr),
    /// The port is 0.
    #[error("port 0 is no port of a group: all peers need the same one")]
    NoPort,
    /// The interface has no name.
    #[error("`{0}` names no interface after its %")]
    NoInterface(String),
}

/// The group of a plan without one: one of 65,000 groups of the local scope (RFC 2365), and one of 12,000 ports.
pub fn group_of(plan_hash: &[u8; 32]) -> SocketAddrV4 {
    let [a, b, c, d, ..] = *blake3::hash(plan_hash).as_bytes();
    let port = 20_000 + u16::from_le_bytes([c, d]) % 12_000;
    SocketAddrV4::new(Ipv4Addr::new(239, 255, a, b), port)
}

impl FromStr for PayloadMedium {
    type Err = MediumError;

    fn from_str(text: &str) -> Result<Self, MediumError> {
        if text == "unicast" {
            return Ok(Self::Unicast);
        }
        let unknown = || MediumError::Unknown(text.to_owned());
        let rest = text.strip_prefix("multicast").ok_or_else(unknown)?;
        let (group, interface) = rest.split_once('%').map_or((rest, None), |(group, name)| (group, Some(name)));
        let group = match group.strip_prefix(':') {
            Some(group) => Some(self::group(group)?),
            None if group.is_empty() => None,
            None => return Err(unknown()),
        };
        if interface.is_some_and(|name| name.is_empty() || name.len() > 64) {
            return Err(MediumError::NoInterface(text.to_owned()));
        }
        Ok(Self::Multicast(MulticastOptions { group, interface: interface.map(str::to_owned) }))
    }
}

fn group(text: &str) -> Result<SocketAddrV4, MediumError> {
    let group: SocketAddrV4 = text.parse().map_err(|_| MediumError::Group(text.to_owned()))?;
    // The 256 groups below are those of routers and hosts themselves.
    if !group.ip().is_multicast() || *group.ip() < Ipv4Addr::new(224, 0, 1, 0) {
        return Err(MediumError::NotAGroup(*group.ip()));
    }
    if group.port() == 0 {
        return Err(MediumError::NoPort);
    }
    Ok(group)
}

impl fmt::Display for PayloadMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Multicast(MulticastOptions { group, interface }) = self else { return f.write_str("unicast") };
        f.write_str("multicast")?;
        group.iter().try_for_each(|group| write!(f, ":{group}"))?;
        interface.iter().try_for_each(|name| write!(f, "%{name}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn media_are_read_as_they_are_written() {
        for text in ["unicast", "multicast", "multicast%lo", "multicast:239.1.2.3:9", "multicast:224.0.1.0:1%10.0.0.1"]
        {
            assert_eq!(text.parse::<PayloadMedium>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_part_that_is_wrong() {
        let refused = |text: &str| text.parse::<PayloadMedium>().unwrap_err().to_string();
        assert!(refused("broadcast").contains("`broadcast` is no medium"));
        assert!(refused("multicasts").contains("is no medium"));
        assert!(refused("multicast:239.1.2.3").contains("`239.1.2.3` is no group with its port"));
        assert!(refused("multicast:192.168.0.1:7000").contains("192.168.0.1 is not a multicast address"));
        assert!(refused("multicast:224.0.0.251:5353").contains("224.0.0.251 is not"));
        assert!(refused("multicast:239.1.2.3:0").contains("port 0"));
        assert!(refused("multicast%").contains("names no interface"));
    }

    #[test]
    fn two_plans_have_two_groups_of_the_local_scope() {
        let groups = [[1; 32], [2; 32]].map(|hash| group_of(&hash));
        assert_ne!(groups[0], groups[1]);
        assert!(groups.iter().all(|group| group.ip().octets()[..2] == [239, 255] && group.port() >= 20_000));
    }
}
