//! A ticket: one text token to paste, which lets a peer join. It begins with mingle2.

use std::fmt;
use std::io::{BufRead, Read};
use std::str::FromStr;

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::Home;
use serde::{Deserialize, Serialize};

use crate::invite::SecretInvite;
use crate::membership::Membership;
use crate::swarm::SwarmIdentity;
use crate::token_text;

const PREFIX: &str = "mingle2";
/// Most addresses in a ticket.
const MAX_ADDRESSES: usize = 16;
/// Longest ticket on standard input, in bytes.
const MAX_TICKET_BYTES: u64 = 64 << 10;

/// An invitation, with the swarm and the addresses needed to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The swarm to join.
    pub swarm: SwarmIdentity,
    /// The invitation with its secret.
    pub invite: SecretInvite,
    /// Addresses of members that are up.
    pub bootstrap: Vec<Multiaddr>,
}

impl Ticket {
    /// A ticket with as many of these addresses as fit.
    pub fn new(swarm: SwarmIdentity, invite: SecretInvite, mut bootstrap: Vec<Multiaddr>) -> Self {
        bootstrap.truncate(MAX_ADDRESSES);
        Self { swarm, invite, bootstrap }
    }

    /// The membership of the peer `local` that brings this ticket; the operator and its delegate need no invitation.
    ///
    /// # Errors
    /// The home belongs to another swarm, or its membership cannot be read.
    pub fn membership(self, local: PeerId, home: &Home) -> Result<Membership> {
        let Self { swarm, invite, bootstrap } = self;
        let may_sign = swarm.role_of(&local).is_some();
        let membership =
            if may_sign { Membership::founder(swarm) } else { Membership::invited(swarm, invite, bootstrap) };
        membership.check(home)?;
        Ok(membership)
    }
}

impl Ticket {
    /// The ticket in an argument, or on the first line of standard input where that is `-`.
    ///
    /// # Errors
    /// Standard input cannot be read, or it is no ticket.
    pub fn of_argument(argument: &str) -> Result<Self> {
        if argument != "-" {
            return argument.parse();
        }
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_TICKET_BYTES).read_line(&mut line);
        read.context(ErrorKind::BadInput, "cannot read a ticket from standard input")?;
        line.parse()
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        f.write_str(&token_text::write(PREFIX, &bytes))
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::BadInput, format!("this is not a ticket: {why}"))
                .hint("paste the whole word that `mingle invite` printed; it begins with mingle2")
        };
        let text = text.trim();
        let body = text.strip_prefix(PREFIX).ok_or_else(|| wrong("it does not begin with mingle2"))?;
        let bytes = token_text::read(body).map_err(wrong)?;
        let mut ticket: Self = postcard::from_bytes(&bytes).map_err(|_| wrong("another release of mingle made it"))?;
        if ticket.bootstrap.len() > MAX_ADDRESSES {
            return Err(wrong("it has too many addresses"));
        }
        ticket.swarm.clone().checked()?;
        ticket.invite.check(&ticket.swarm)?;
        ticket.swarm.learn(&ticket.invite.invite.authority);
        Ok(ticket)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::swarm::Signer;
    use libp2p::identity::Keypair;
    use std::time::Duration;

    fn ticket() -> Ticket {
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), operator).unwrap();
        let invite = SecretInvite::sign(&signer, 2, Duration::from_secs(3600)).unwrap();
        Ticket::new(swarm, invite, vec!["/ip4/10.0.1.5/udp/4717/quic-v1".parse().unwrap()])
    }

    #[test]
    fn a_ticket_is_one_word_and_reads_back_with_spaces_around_it_and_in_capitals() {
        let ticket = ticket();
        let text = ticket.to_string();
        assert!(text.starts_with("mingle2") && text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
        assert_eq!(format!("  {text}\n").parse::<Ticket>().unwrap(), ticket);
        let capitals = format!("mingle2{}", text[7..].to_uppercase());
        assert_eq!(capitals.parse::<Ticket>().unwrap(), ticket);
    }

    #[test]
    fn a_ticket_that_lost_or_changed_a_letter_is_refused_with_a_hint() {
        let text = ticket().to_string();
        for damaged in [&text[..text.len() - 1], &text[1..], "", "mingle1", "mingle2", "mingle2aa"] {
            assert!(damaged.parse::<Ticket>().unwrap_err().to_string().contains("not a ticket"), "{damaged}");
        }
        for at in 7..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
            assert!(String::from_utf8(changed).unwrap().parse::<Ticket>().is_err(), "at {at}");
        }
    }
}
