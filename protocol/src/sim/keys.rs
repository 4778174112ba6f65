//! Keys of simulated nodes: hashes of the node and a statement, which every node could make, and none makes for
//! another.

use crate::schedule::NodeId;
use crate::statement::Mac;
use crate::statement::{Keys, Signature};

/// The keys of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedKeys {
    own: NodeId,
}

impl SimulatedKeys {
    pub(super) fn of(own: NodeId) -> Self {
        Self { own }
    }
}

impl Keys for SimulatedKeys {
    fn sign(&self, statement: &[u8]) -> Signature {
        signature(self.own, statement)
    }

    fn is_signed(&self, node: NodeId, statement: &[u8], found: &Signature) -> bool {
        signature(node, statement) == *found
    }

    fn mac(&self, statement: &[u8]) -> Mac {
        let mut bytes = [0; 16];
        hasher("mingle 2026 code of a simulated node", self.own, statement).finalize_xof().fill(&mut bytes);
        bytes.into()
    }
}

fn signature(node: NodeId, statement: &[u8]) -> Signature {
    let mut bytes = [0; 64];
    hasher("mingle 2026 signature of a simulated node", node, statement).finalize_xof().fill(&mut bytes);
    bytes.into()
}

fn hasher(purpose: &str, node: NodeId, statement: &[u8]) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key(purpose);
    hasher.update(&node.0.to_le_bytes()).update(statement);
    hasher
}
