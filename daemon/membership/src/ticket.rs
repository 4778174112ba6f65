//! What one person gives another so that a peer can join: one word to paste.
//!
//! ```text
//!   mingle1 + base32( postcard(ticket) + first 4 bytes of its BLAKE3 )
//! ```

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::Home;
use serde::{Deserialize, Serialize};

use crate::invite::SecretInvite;
use crate::membership::Membership;
use crate::swarm::Swarm;

const PREFIX: &str = "mingle1";
const CHECKSUM_BYTES: usize = 4;
/// No ticket is longer, and no longer text is looked at.
const MAX_CHARACTERS: usize = 8192;
/// Addresses in a ticket.
const MAX_ADDRESSES: usize = 16;

/// An invitation with what is needed to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Where to.
    pub swarm: Swarm,
    /// What lets the bearer in.
    pub invite: SecretInvite,
    /// Members that are up.
    pub bootstrap: Vec<Multiaddr>,
}

impl Ticket {
    /// A ticket with as many of these addresses as fit.
    pub fn new(swarm: Swarm, invite: SecretInvite, mut bootstrap: Vec<Multiaddr>) -> Self {
        bootstrap.truncate(MAX_ADDRESSES);
        Self { swarm, invite, bootstrap }
    }

    /// What the peer `local` that brings this ticket knows of the swarm: the operator's own needs no invitation.
    ///
    /// # Errors
    /// The home belongs to another swarm, or the operator's key is none.
    pub fn membership(self, local: PeerId, home: &Home) -> Result<Membership> {
        let Self { swarm, invite, bootstrap } = self;
        let is_operator = swarm.operator()? == local;
        let membership =
            if is_operator { Membership::founder(swarm) } else { Membership::invited(swarm, invite, bootstrap) };
        membership.check(home)?;
        Ok(membership)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        let checksum = blake3::hash(&bytes);
        bytes.extend(&checksum.as_bytes()[..CHECKSUM_BYTES]);
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::BadInput, format!("this is not a ticket: {why}"))
                .hint("paste the whole word that `mingle invite` printed; it begins with mingle1")
        };
        let text = text.trim();
        let body = text.strip_prefix(PREFIX).ok_or_else(|| wrong("it does not begin with mingle1"))?;
        if body.len() > MAX_CHARACTERS {
            return Err(wrong("it is too long"));
        }
        let bytes = BASE32_NOPAD
            .decode(body.to_uppercase().as_bytes())
            .map_err(|_| wrong("some of it is missing, or changed on the way"))?;
        let split = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or_else(|| wrong("it is too short"))?;
        let (bytes, checksum) = bytes.split_at(split);
        if blake3::hash(bytes).as_bytes()[..CHECKSUM_BYTES] != *checksum {
            return Err(wrong("some of it is missing, or changed on the way"));
        }
        let ticket: Self = postcard::from_bytes(bytes).map_err(|_| wrong("another release of mingle made it"))?;
        if ticket.bootstrap.len() > MAX_ADDRESSES {
            return Err(wrong("it has too many addresses"));
        }
        ticket.swarm.clone().checked()?;
        ticket.invite.check(&ticket.swarm)?;
        Ok(ticket)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use libp2p::identity::Keypair;
    use std::time::Duration;

    fn ticket() -> Ticket {
        let operator = Keypair::generate_ed25519();
        let swarm = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        let invite = SecretInvite::sign(&swarm, 2, Duration::from_secs(3600), &operator).unwrap();
        Ticket::new(swarm, invite, vec!["/ip4/10.0.1.5/udp/4717/quic-v1".parse().unwrap()])
    }

    #[test]
    fn a_ticket_is_one_word_and_reads_back_with_spaces_around_it_and_in_capitals() {
        let ticket = ticket();
        let text = ticket.to_string();
        assert!(text.starts_with("mingle1") && text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
        assert_eq!(format!("  {text}\n").parse::<Ticket>().unwrap(), ticket);
        let capitals = format!("mingle1{}", text[7..].to_uppercase());
        assert_eq!(capitals.parse::<Ticket>().unwrap(), ticket);
    }

    #[test]
    fn a_ticket_that_lost_or_changed_a_letter_is_refused_with_a_hint() {
        let text = ticket().to_string();
        for damaged in [&text[..text.len() - 1], &text[1..], "", "mingle1", "mingle1aa"] {
            assert!(damaged.parse::<Ticket>().unwrap_err().to_string().contains("not a ticket"), "{damaged}");
        }
        for at in 7..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
            assert!(String::from_utf8(changed).unwrap().parse::<Ticket>().is_err(), "at {at}");
        }
    }
}
