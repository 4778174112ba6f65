//! A signed invitation: its bearer may queue for admission, for a number of peers, until a time.
//!
//! An invitation is a key pair of its own. The ticket holds the secret half. A newcomer signs its own PeerId with that,
//! and shows the public half, which the operator signed. So neither the member asked nor any peer that passes the claim
//! on can use the invitation.

use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::{Keypair, ed25519};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::swarm::{NotSigned, Signer, SwarmIdentity};
use crate::times::{beside_now, now_unix_s};

/// The public half of an invitation to a swarm, signed by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Public key; its user proves that it knows the secret half.
    pub(crate) key: [u8; 32],
    /// End of its validity, in seconds since 1970.
    pub expires_unix_s: u64,
    /// Number of peers that it admits.
    pub uses: u32,
    pub(crate) signature: Vec<u8>,
    /// Authority certificate at the time of signing.
    #[serde(default)]
    pub(crate) authority: Authority,
}

/// An invitation with its secret key. Any bearer can use it: it is a secret until it has expired or is used up.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretInvite {
    /// The public half.
    pub invite: Invite,
    pub(crate) secret: [u8; 32],
}

/// Proof that one peer, and no other, uses an invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The invitation.
    pub invite: Invite,
    /// Signature of the PeerId by the key of the invitation.
    signature: Vec<u8>,
}

impl SecretInvite {
    /// An invitation for `uses` peers that come within `lifetime`.
    ///
    /// # Errors
    /// The system gives no random numbers, or the key of the operator or its delegate cannot sign.
    pub fn sign(signer: &Signer, uses: u32, lifetime: Duration) -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        let key = public_half(secret)?;
        let expires_unix_s = now_unix_s().saturating_add(lifetime.as_secs());
        let authority = signer.swarm().authority().clone();
        let mut invite = Invite { key, expires_unix_s, uses, signature: Vec::new(), authority };
        invite.signature = signer.sign(&invite.words(signer.swarm()))?;
        Ok(Self { invite, secret })
    }

    /// Checks that the invitation is valid for this swarm.
    ///
    /// # Errors
    /// It is not an invitation to this swarm, or no longer, or its two halves do not belong together.
    pub fn check(&self, swarm: &SwarmIdentity) -> Result {
        self.invite.check(swarm)?;
        if public_half(self.secret)? != self.invite.key {
            return Err(Error::new(ErrorKind::Refused, "the key of this invitation is another one's"));
        }
        Ok(())
    }

    /// The claim of `peer`, to be shown when it asks for admission.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn claim(&self, swarm: &SwarmIdentity, peer: &PeerId) -> Result<Claim> {
        let doing = "cannot use the invitation";
        let key = Keypair::ed25519_from_bytes(self.secret).context(ErrorKind::Integrity, doing)?;
        let signature = key.sign(&claim_words(swarm, peer)).context(ErrorKind::Unexpected, doing)?;
        Ok(Claim { invite: self.invite.clone(), signature })
    }
}

impl std::fmt::Debug for SecretInvite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretInvite").field("invite", &self.invite).finish_non_exhaustive()
    }
}

impl Claim {
    /// Checks that `peer` uses a valid invitation to this swarm.
    ///
    /// # Errors
    /// The invitation is not valid, or another peer uses it.
    pub fn check(&self, swarm: &SwarmIdentity, peer: &PeerId) -> Result {
        self.invite.check(swarm)?;
        let key = ed25519::PublicKey::try_from_bytes(&self.invite.key);
        if !key.is_ok_and(|key| key.verify(&claim_words(swarm, peer), &self.signature)) {
            return Err(Error::new(ErrorKind::Refused, "this invitation was given to somebody else"));
        }
        Ok(())
    }
}

impl Invite {
    /// Id of the invitation, in hexadecimal.
    pub fn id(&self) -> String {
        hex::encode(&self.key[..16])
    }

    /// Checks that the invitation is to this swarm and has not expired.
    ///
    /// # Errors
    /// It is not to this swarm, or no longer.
    fn check(&self, swarm: &SwarmIdentity) -> Result {
        match swarm.check_signature(&self.words(swarm), &self.signature, &self.authority) {
            Ok(()) => {}
            Err(NotSigned::ByAnybody) => {
                let message = format!("this invitation is not to the swarm {}", swarm.name);
                return Err(Error::new(ErrorKind::Refused, message));
            }
            Err(why) => {
                let message = format!("this invitation to the swarm {} {why}", swarm.name);
                return Err(Error::new(ErrorKind::Refused, message)
                    .hint("ask the operator of the swarm for another: mingle invite"));
            }
        }
        if now_unix_s() > self.expires_unix_s {
            let message = format!("this invitation expired {}", beside_now(self.expires_unix_s));
            return Err(Error::new(ErrorKind::Refused, message).hint(
                "where that clock is wrong, set it, best by NTP; else ask the operator of the swarm for another: mingle invite",
            ));
        }
        Ok(())
    }

    fn words(&self, swarm: &SwarmIdentity) -> Vec<u8> {
        let mut words = b"mingle invite 2\0".to_vec();
        words.extend(swarm.id());
        words.extend(self.key);
        words.extend(self.expires_unix_s.to_le_bytes());
        words.extend(self.uses.to_le_bytes());
        words
    }
}

fn public_half(secret: [u8; 32]) -> Result<[u8; 32]> {
    let secret = ed25519::SecretKey::try_from_bytes(secret).context(ErrorKind::Integrity, "this is no key")?;
    Ok(ed25519::Keypair::from(secret).public().to_bytes())
}

fn claim_words(swarm: &SwarmIdentity, peer: &PeerId) -> Vec<u8> {
    [b"mingle claim 1\0".as_slice(), &swarm.id(), &peer.to_bytes()].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_invitation_holds_for_its_swarm_and_its_time_and_cannot_be_changed() {
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), operator.clone()).unwrap();
        let secret = SecretInvite::sign(&signer, 2, HOUR).unwrap();
        secret.check(&swarm).unwrap();
        let invite = secret.invite;
        assert!(Invite { uses: 3, ..invite.clone() }.check(&swarm).is_err());
        assert!(Invite { expires_unix_s: invite.expires_unix_s + 1, ..invite.clone() }.check(&swarm).is_err());
        let other = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        assert!(invite.check(&other).unwrap_err().to_string().contains("not to the swarm"));
        let stranger = Keypair::generate_ed25519();
        let forged = Invite { signature: stranger.sign(&invite.words(&swarm)).unwrap(), ..invite.clone() };
        assert!(forged.check(&swarm).is_err());
        let mut past = Invite { expires_unix_s: 1, ..invite };
        past.signature = operator.sign(&past.words(&swarm)).unwrap();
        let refusal = past.check(&swarm).unwrap_err();
        assert!(refusal.to_string().contains("expired 1970-01-01T00:00:01Z by a clock that shows 2"), "{refusal}");
        assert!(refusal.next_step().unwrap().contains("where that clock is wrong"), "{refusal:#}");
    }

    #[test]
    fn who_is_shown_an_invitation_cannot_use_it() {
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let (ben, eve) = (PeerId::random(), PeerId::random());
        let signer = Signer::new(swarm.clone(), operator).unwrap();
        let secret = SecretInvite::sign(&signer, 2, HOUR).unwrap();
        let claim = secret.claim(&swarm, &ben).unwrap();
        claim.check(&swarm, &ben).unwrap();
        assert!(claim.check(&swarm, &eve).unwrap_err().to_string().contains("somebody else"));
        // With a key of its own under the operator's signature, or under one of its own.
        let own = Keypair::generate_ed25519();
        let of_own = SwarmIdentity::found("ward7", own.public().to_peer_id()).unwrap();
        let own = SecretInvite::sign(&Signer::new(of_own, own).unwrap(), 2, HOUR).unwrap();
        let own_claim = own.claim(&swarm, &eve).unwrap();
        assert!(own_claim.check(&swarm, &eve).is_err());
        let forged = Claim { invite: claim.invite.clone(), ..own_claim };
        assert!(forged.check(&swarm, &eve).is_err());
        assert!(SecretInvite { invite: claim.invite, ..own }.check(&swarm).is_err());
        assert!(!format!("{secret:?}").contains("secret:"), "{secret:?}");
    }

    #[test]
    fn an_invitation_of_a_delegate_is_its_own_proof_until_the_operator_takes_the_delegation_back() {
        let [operator, delegate] = [(); 2].map(|()| Keypair::generate_ed25519());
        let told_nothing = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let mut owner = Signer::new(told_nothing.clone(), operator).unwrap();
        owner.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() + 60).unwrap();
        let signer = Signer::new(owner.swarm().clone(), delegate).unwrap();
        let ben = PeerId::random();
        let secret = SecretInvite::sign(&signer, 2, HOUR).unwrap();
        secret.check(&told_nothing).unwrap();
        secret.claim(&told_nothing, &ben).unwrap().check(&told_nothing, &ben).unwrap();
        owner.delegate(None, 0).unwrap();
        let refusal = secret.check(owner.swarm()).unwrap_err().to_string();
        assert!(refusal.contains("replaced since"), "{refusal}");
        assert!(SecretInvite::sign(&owner, 1, HOUR).unwrap().check(&told_nothing).is_ok());
    }
}
