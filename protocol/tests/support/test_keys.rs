//! Keys for tests: a signature that each node makes for itself, at any time the same, and that everybody can check.

use mingle_protocol::{Keys, Mac, NodeId, Signature};

#[derive(Debug)]
pub(crate) struct TestKeys(pub(crate) NodeId);

fn signature(node: NodeId, statement: &[u8]) -> Signature {
    let mut bytes = [node.0 as u8; 64];
    for (index, byte) in statement.iter().enumerate() {
        bytes[index % 61] = bytes[index % 61].rotate_left(3) ^ byte;
    }
    bytes.into()
}

impl Keys for TestKeys {
    fn sign(&self, statement: &[u8]) -> Signature {
        signature(self.0, statement)
    }

    fn is_signed(&self, node: NodeId, statement: &[u8], found: &Signature) -> bool {
        signature(node, statement) == *found
    }

    fn mac(&self, statement: &[u8]) -> Mac {
        let hash = blake3::Hasher::new().update(&self.0.0.to_le_bytes()).update(statement).finalize();
        hash.as_bytes()[..16].try_into().map_or_else(|_| Mac::default(), |bytes: [u8; 16]| bytes.into())
    }
}
