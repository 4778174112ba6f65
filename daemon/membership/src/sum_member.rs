//! A member of a plan as a member of masked sums: the identity of its home signs its keys, and the operating system draws
//! them.

use std::collections::BTreeMap;
use std::fmt;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use mingle_home::identity::public_key;
use mingle_masking::{SignerError, SumMember, SumSigner};
use mingle_protocol::NodeId;

/// This peer as a member of the sums of a plan with these members, at the work that `context` is the hash of. `None` where
/// a member's identity is not an Ed25519 key.
pub fn sum_member(own: &Keypair, members: &BTreeMap<NodeId, PeerId>, context: [u8; 32]) -> Option<SumMember> {
    let identity = |peer| Some(public_key(peer)?.try_into_ed25519().ok()?.to_bytes());
    let identities = members.values().map(identity).collect::<Option<_>>()?;
    Some(SumMember { context, identities, signer: Box::new(HomeSigner(own.clone())) })
}

/// The identity of this peer's home, and the randomness of the operating system.
struct HomeSigner(Keypair);

impl SumSigner for HomeSigner {
    fn sign(&self, statement: &[u8]) -> Result<[u8; 64], SignerError> {
        let signature = self.0.sign(statement).map_err(|error| SignerError(error.to_string()))?;
        signature.try_into().map_err(|_| SignerError("the identity is not an Ed25519 key".to_owned()))
    }

    fn fresh_secret(&self) -> Result<[u8; 32], SignerError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| SignerError(error.to_string()))?;
        Ok(secret)
    }
}

impl fmt::Debug for HomeSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HomeSigner").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_masking::{Roster, SumKey};

    use super::*;

    #[test]
    fn keys_that_homes_sign_are_those_of_their_peer_ids_and_never_come_twice() {
        let keypairs = [(); 3].map(|()| Keypair::generate_ed25519());
        let peers = keypairs.iter().map(|keypair| keypair.public().to_peer_id());
        let members: BTreeMap<NodeId, PeerId> = (0..).map(NodeId).zip(peers).collect();
        let key = |me: usize| {
            let member = sum_member(&keypairs[me], &members, [1; 32]).unwrap();
            let roster = Roster::new(&member.context, 0, member.identities).unwrap();
            SumKey::draw(roster, me, member.signer.as_ref()).unwrap()
        };
        let keys = [0, 1, 2].map(key);
        let announced = keys.each_ref().map(SumKey::announcement);
        assert!(keys.into_iter().all(|key| key.agree(&announced, None).is_ok()));
        assert_ne!(key(0).announcement().key, announced[0].key);
        let ecdsa: PeerId = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N".parse().unwrap();
        assert!(sum_member(&keypairs[0], &BTreeMap::from([(NodeId(0), ecdsa)]), [1; 32]).is_none());
    }
}
