//! The protection of this peer's sums: masked under keys that its identity signs, unless the user or the number of
//! members rules that out.

use std::fmt;
use std::sync::Arc;

use libp2p::identity::Keypair;
use mingle_home::identity::public_key;
use mingle_protocol::NodeId;
use mingle_solving::{Problem, SignerError, SumMember, SumPolicy, SumProtection, SumSigner, Sums};

use super::Explain;
use crate::error::{Error, ErrorKind, Result};
use crate::place::Place;

/// The sums of a problem along a plan, and their protection.
///
/// # Errors
/// The plan has fewer members than the user wants, or one whose identity is not an Ed25519 key.
pub(crate) fn of_plan(
    policy: SumPolicy,
    keypair: &Keypair,
    place: &Place,
    problem: &Problem,
) -> Result<(SumProtection, Sums)> {
    let nodes = place.schedule.nodes();
    let protection = policy.protection(nodes).map_err(Explain::explain)?;
    if protection != SumProtection::Masked {
        return Ok((protection, Sums::Plain));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"mingle masked sums of a plan 1").update(&problem.hash).update(place.hash.as_bytes());
    let member = SumMember {
        context: *hasher.finalize().as_bytes(),
        identities: (0..nodes).map(|node| identity(place, node)).collect::<Result<Arc<[_]>>>()?,
        signer: Box::new(HomeSigner(keypair.clone())),
    };
    Ok((protection, Sums::Masked(Arc::new(member))))
}

/// The Ed25519 key of a member, which its PeerId contains.
fn identity(place: &Place, node: usize) -> Result<[u8; 32]> {
    let peer = u32::try_from(node).ok().and_then(|node| place.peers.get(&NodeId(node)));
    let key = peer.and_then(public_key).and_then(|key| key.try_into_ed25519().ok());
    key.map(|key| key.to_bytes()).ok_or_else(|| {
        Error::new(ErrorKind::Refused, format!("node {node} of the plan has no Ed25519 identity to mask sums with"))
    })
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
