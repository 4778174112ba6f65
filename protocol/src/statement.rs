//! Signed statements of a node about itself, which others must remember and no other node can make in its place.
//!
//! A node informs its neighbours of its present life, and, when it leaves, of the ends of its links. Others act upon
//! both long after, and pass them on. So each such statement carries a signature over everything that it is about, the
//! generation included. A statement about a third node without that node's signature is not accepted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::identity::{Generation, Incarnation};
use crate::schedule::NodeId;

/// 64 bytes of a signature, as ed25519 makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature([[u8; 32]; 2]);

impl From<[u8; 64]> for Signature {
    fn from(bytes: [u8; 64]) -> Self {
        let mut halves = [[0; 32]; 2];
        halves[0].copy_from_slice(&bytes[..32]);
        halves[1].copy_from_slice(&bytes[32..]);
        Self(halves)
    }
}

impl AsRef<[u8]> for Signature {
    fn as_ref(&self) -> &[u8] {
        self.0.as_flattened()
    }
}

/// 128 bits of a message authentication code that one node makes and checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mac([u8; 16]);

impl From<[u8; 16]> for Mac {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl Mac {
    /// Compares in constant time, so that a code cannot be found byte by byte.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

/// Signs with the key of one node of a plan, and knows the public keys of all.
pub trait Keys: fmt::Debug + Send + Sync {
    /// The node's own signature.
    fn sign(&self, statement: &[u8]) -> Signature;

    /// Returns `true` if this is the signature of `node` under exactly these bytes.
    fn is_signed(&self, node: NodeId, statement: &[u8], signature: &Signature) -> bool;

    /// A code that the node alone can make under exactly these bytes, with a secret derived from its key: every later
    /// process of the node makes the same.
    fn mac(&self, statement: &[u8]) -> Mac;
}

/// No keys at all: signs nothing and accepts everything. For swarms without dishonest members, such as simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKeys;

impl Keys for NoKeys {
    fn sign(&self, _: &[u8]) -> Signature {
        Signature::default()
    }

    fn is_signed(&self, _: NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }

    fn mac(&self, _: &[u8]) -> Mac {
        Mac::default()
    }
}

/// One life of a node, signed by the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIdentity {
    /// The life.
    pub identity: Incarnation,
    /// The node's signature.
    pub signature: Signature,
}

impl SignedIdentity {
    /// The statement of `node` about itself in this generation.
    pub fn sign(node: NodeId, generation: &Generation, identity: Incarnation, keys: &dyn Keys) -> Self {
        Self { identity, signature: keys.sign(&life(node, generation, identity)) }
    }

    /// A life without a signature: enough among nodes with [`NoKeys`].
    pub fn unsigned(identity: Incarnation) -> Self {
        Self { identity, signature: Signature::default() }
    }

    /// Returns `true` if `node` signed it for this generation.
    pub fn is_of(&self, node: NodeId, generation: &Generation, keys: &dyn Keys) -> bool {
        keys.is_signed(node, &life(node, generation, self.identity), &self.signature)
    }
}

/// A node's own statement of the process it runs in.
///
/// A key belongs to one process at a time. Each states that it is there, and all nodes pass on the newest statement of
/// every node. A process that receives a statement of another one with its own key names that one in its next
/// statement. The nonce of a process is unknown before it has started, so a process that finds itself named knows that
/// both are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatement {
    /// The ledger it takes part in.
    pub generation: Generation,
    /// The node.
    pub node: NodeId,
    /// The process: [`Incarnation::boot_nonce`].
    pub boot_nonce: u64,
    /// Of two statements of a node the one with the larger number is newer, and of the same number the one of the
    /// larger nonce.
    pub number: u64,
    /// The time that the process had run, in ms.
    pub age_ms: u64,
    /// Another process with the same key of which this one has a statement.
    pub other: Option<OtherProcess>,
    /// The node's signature under all of the above.
    pub signature: Signature,
}

/// The statement of a process about another one with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// The other process.
    pub boot_nonce: u64,
    /// The one of the two that has to end.
    pub fate: Fate,
}

/// The one of two processes with one key that has to end: the younger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// The other one may be gone already.
    Unknown,
    /// Both are alive, and the other one ends.
    OtherEnds,
    /// Both are alive, and the one that makes the statement ends.
    ThisEnds,
}

impl ProcessStatement {
    /// Adds the node's signature; the keys are those of the node.
    #[must_use]
    pub fn signed(mut self, keys: &dyn Keys) -> Self {
        self.signature = keys.sign(&self.statement());
        self
    }

    /// Returns `true` if the node signed it.
    pub fn is_signed(&self, keys: &dyn Keys) -> bool {
        keys.is_signed(self.node, &self.statement(), &self.signature)
    }

    fn statement(&self) -> Vec<u8> {
        let Self { generation, node, boot_nonce, number, age_ms, other, signature: _ } = self;
        encode(b"mingle 2026 process of a node\0", &(generation, node, boot_nonce, number, age_ms, other))
    }
}

fn life(node: NodeId, generation: &Generation, identity: Incarnation) -> Vec<u8> {
    encode(b"mingle 2026 life of a node\0", &(node, generation, identity))
}

/// The bytes that are signed: the kind of the statement, and its content.
pub(crate) fn encode(kind: &[u8], content: &impl Serialize) -> Vec<u8> {
    // Numbers, hashes and lists of them: postcard can write all of them.
    let content = postcard::to_stdvec(content).unwrap_or_default();
    [kind, &content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Sent;
    use crate::message::LeaveCertificate;

    /// Keys that anybody can make: enough to test what is signed.
    #[derive(Debug)]
    struct Hashes(NodeId);

    fn hash(node: NodeId, statement: &[u8]) -> Signature {
        let hash = *blake3::Hasher::new().update(&node.0.to_le_bytes()).update(statement).finalize().as_bytes();
        Signature([hash, hash])
    }

    impl Keys for Hashes {
        fn sign(&self, statement: &[u8]) -> Signature {
            hash(self.0, statement)
        }

        fn is_signed(&self, node: NodeId, statement: &[u8], signature: &Signature) -> bool {
            hash(node, statement) == *signature
        }

        fn mac(&self, _: &[u8]) -> Mac {
            Mac::default()
        }
    }

    const GENERATION: Generation = Generation { counter: 3, plan_hash: [7; 32] };

    #[test]
    fn a_life_is_signed_with_its_node_its_generation_and_its_numbers() {
        let (node, keys) = (NodeId(2), Hashes(NodeId(2)));
        let identity = Incarnation { incarnation: 4, boot_nonce: 5 };
        let life = SignedIdentity::sign(node, &GENERATION, identity, &keys);
        assert!(life.is_of(node, &GENERATION, &keys));
        assert!(!life.is_of(NodeId(1), &GENERATION, &keys));
        assert!(!life.is_of(node, &Generation { counter: 4, ..GENERATION }, &keys));
        for other in [Incarnation { incarnation: 5, ..identity }, Incarnation { boot_nonce: 6, ..identity }] {
            assert!(!SignedIdentity { identity: other, ..life }.is_of(node, &GENERATION, &keys));
        }
    }

    #[test]
    fn a_process_statement_is_signed_as_a_whole() {
        let keys = Hashes(NodeId(1));
        let other = Some(OtherProcess { boot_nonce: 9, fate: Fate::Unknown });
        let (node, signature) = (NodeId(1), Signature::default());
        let said =
            ProcessStatement { generation: GENERATION, node, boot_nonce: 5, number: 2, age_ms: 7, other, signature };
        assert!(!said.is_signed(&keys));
        let said = said.signed(&keys);
        assert!(said.is_signed(&keys));
        let ends = Some(OtherProcess { boot_nonce: 9, fate: Fate::OtherEnds });
        let changed = [
            ProcessStatement { generation: Generation { counter: 4, ..GENERATION }, ..said },
            ProcessStatement { node: NodeId(2), ..said },
            ProcessStatement { boot_nonce: 6, ..said },
            ProcessStatement { number: 3, ..said },
            ProcessStatement { age_ms: 8, ..said },
            ProcessStatement { other: None, ..said },
            ProcessStatement { other: ends, ..said },
        ];
        assert!(changed.iter().all(|statement| !statement.is_signed(&keys)));
    }

    #[test]
    fn a_certificate_is_signed_as_a_whole() {
        let keys = Hashes(NodeId(1));
        let certificate = LeaveCertificate {
            generation: GENERATION,
            leaver: NodeId(1),
            incarnation: 1,
            ends: Vec::new(),
            evidence: Vec::new(),
            signature: Signature::default(),
        };
        assert!(!certificate.is_signed(&keys));
        let certificate = certificate.signed(&keys);
        assert!(certificate.is_signed(&keys));
        assert!(!LeaveCertificate { incarnation: 2, ..certificate.clone() }.is_signed(&keys));
        let then = (GENERATION, NodeId(1), 1_u64, Vec::<crate::message::LinkEnd>::new());
        assert_eq!(
            certificate.statement(),
            encode(b"mingle 2026 leave certificate\0", &then),
            "as earlier releases signed it"
        );
        let evidence = vec![(NodeId(3), Sent::default())];
        assert!(!LeaveCertificate { evidence: evidence.clone(), ..certificate.clone() }.is_signed(&keys));
        let with_evidence = LeaveCertificate { evidence, ..certificate.clone() }.signed(&keys);
        assert!(with_evidence.is_signed(&keys));
        assert!(!LeaveCertificate { evidence: Vec::new(), ..with_evidence }.is_signed(&keys));
        assert!(!LeaveCertificate { leaver: NodeId(2), ..certificate }.is_signed(&keys));
    }
}
