//! Keys with which the members of a plan sign their statements: those of their PeerIds.

use std::collections::BTreeMap;
use std::fmt;

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};
use mingle_home::identity::public_key;
use mingle_protocol::{Keys, Mac, NodeId, Signature};

/// One member's key pair, and the public keys of all.
pub struct MemberKeys {
    own: Keypair,
    /// Derived from the key pair, for codes that only this peer makes and checks.
    secret: [u8; 32],
    members: BTreeMap<NodeId, PublicKey>,
}

impl MemberKeys {
    /// The keys of these members, among which this peer has the key pair `own`.
    pub fn new(own: &Keypair, members: &BTreeMap<NodeId, PeerId>) -> Self {
        let members = members.iter().filter_map(|(node, peer)| Some((*node, public_key(peer)?))).collect();
        // Homes hold only ed25519 keys, from which a secret can be derived.
        let secret = own.derive_secret(b"mingle 2026 codes under what a member says of its links").unwrap_or_default();
        Self { own: own.clone(), secret, members }
    }
}

impl Keys for MemberKeys {
    fn sign(&self, statement: &[u8]) -> Signature {
        // ed25519 signs everything, in 64 bytes; the signature of another key would convince no member.
        let signature = self.own.sign(statement).unwrap_or_default();
        <[u8; 64]>::try_from(signature).map_or_else(|_| Signature::default(), Signature::from)
    }

    fn is_signed(&self, node: NodeId, statement: &[u8], signature: &Signature) -> bool {
        self.members.get(&node).is_some_and(|key| key.verify(statement, signature.as_ref()))
    }

    fn mac(&self, statement: &[u8]) -> Mac {
        let code = blake3::keyed_hash(&self.secret, statement);
        code.as_bytes().first_chunk::<16>().copied().map_or_else(Mac::default, Mac::from)
    }
}

impl fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberKeys").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_member_signs_for_itself_alone() {
        let [ana, ben] = [Keypair::generate_ed25519(), Keypair::generate_ed25519()];
        let members = [(NodeId(0), ana.public().to_peer_id()), (NodeId(1), ben.public().to_peer_id())].into();
        let signature = MemberKeys::new(&ben, &members).sign(b"words");
        let keys = MemberKeys::new(&ana, &members);
        assert!(keys.is_signed(NodeId(1), b"words", &signature));
        assert!(!keys.is_signed(NodeId(0), b"words", &signature));
        assert!(!keys.is_signed(NodeId(1), b"other words", &signature));
        assert!(!keys.is_signed(NodeId(2), b"words", &signature), "no member");
    }

    #[test]
    fn a_code_is_that_of_one_key_in_every_process_and_under_every_plan() {
        let [ana, ben] = [Keypair::generate_ed25519(), Keypair::generate_ed25519()];
        let members = [(NodeId(0), ana.public().to_peer_id()), (NodeId(1), ben.public().to_peer_id())].into();
        let code = MemberKeys::new(&ana, &members).mac(b"words");
        let next_process = Keypair::from_protobuf_encoding(&ana.to_protobuf_encoding().unwrap()).unwrap();
        assert_eq!(MemberKeys::new(&next_process, &BTreeMap::new()).mac(b"words"), code);
        assert_ne!(MemberKeys::new(&ana, &members).mac(b"other words"), code);
        assert_ne!(MemberKeys::new(&ben, &members).mac(b"words"), code);
    }
}
