//! Appointment of a delegate: the swarm and its newest authority certificate, as one text token to paste.
//!
//! It holds no secret: its bearer can verify it, and only the key that it names can sign with it.

use std::fmt;
use std::str::FromStr;

use mingle_home::error::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::swarm::SwarmIdentity;
use crate::token_text;

pub(crate) const PREFIX: &str = "mingleoperator1";

/// A swarm, with the certificate of the keys that may sign for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appointment(pub SwarmIdentity);

#[derive(Serialize, Deserialize)]
struct Content {
    swarm: SwarmIdentity,
    authority: Authority,
}

impl fmt::Display for Appointment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = Content { swarm: self.0.clone(), authority: self.0.authority().clone() };
        let bytes = postcard::to_stdvec(&content).map_err(|_| fmt::Error)?;
        f.write_str(&token_text::write(PREFIX, &bytes))
    }
}

impl FromStr for Appointment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::BadInput, format!("this is not an appointment: {why}"))
                .hint(format!("paste the whole word that `mingle operator delegate` printed; it begins with {PREFIX}"))
        };
        let body = text.trim().strip_prefix(PREFIX).ok_or_else(|| wrong("it begins otherwise"))?;
        let bytes = token_text::read(body).map_err(wrong)?;
        let Content { swarm, authority }: Content =
            postcard::from_bytes(&bytes).map_err(|_| wrong("another release of mingle made it"))?;
        let mut swarm = swarm.checked()?;
        if authority != Authority::default() && !swarm.learn(&authority) {
            let message = format!("the operator of the swarm {} has not signed this appointment", swarm.name);
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        Ok(Self(swarm))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use libp2p::PeerId;
    use libp2p::identity::Keypair;

    use super::*;
    use crate::swarm::Signer;

    #[test]
    fn an_appointment_is_one_word_that_reads_back_and_cannot_be_changed() {
        let [operator, delegate, thief] = [(); 3].map(|()| Keypair::generate_ed25519());
        let id = |key: &Keypair| -> PeerId { key.public().to_peer_id() };
        let swarm = SwarmIdentity::found("ward7", id(&operator)).unwrap().recoverable_by(&id(&thief)).unwrap();
        let mut signer = Signer::new(swarm.clone(), operator).unwrap();
        signer.delegate(Some(&id(&delegate)), 1_900_000_000).unwrap();
        let appointment = Appointment(signer.swarm().clone());
        let text = appointment.to_string();
        assert_eq!(format!(" {text}\n").parse::<Appointment>().unwrap(), appointment);
        assert_eq!(appointment.0.authority().delegate_until(), Some((id(&delegate), 1_900_000_000)));
        for at in (0..text.len()).step_by(7) {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
            assert!(String::from_utf8(changed).unwrap().parse::<Appointment>().is_err(), "at {at}");
        }
        // A delegation signed by another key, behind a correct checksum.
        let forged = swarm.authority().delegate(&swarm.id(), Some(&id(&thief)), u64::MAX, &thief).unwrap();
        let bytes = postcard::to_stdvec(&Content { swarm, authority: forged }).unwrap();
        let refusal = token_text::write(PREFIX, &bytes).parse::<Appointment>().unwrap_err();
        assert!(refusal.is(ErrorKind::Integrity) && refusal.to_string().contains("has not signed"), "{refusal}");
    }
}
