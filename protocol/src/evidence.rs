//! Authenticated statements of a node about its ends of the links with a neighbour, which keeps them and shows them
//! again.
//!
//! A node that started from an old copy of its records has to learn of it, and no other node may be able to convince
//! one that did not. So every statement of a node that its neighbour may hold against it carries a message
//! authentication code:
//! *I have sent you the parcels up to this one*, *I have applied yours up to this one*. The node makes it once that is
//!   on
//! its disk. The neighbour keeps the newest of both, on disk too, and a greeting shows them. A node that finds its own
//! code under a statement that it does not remember was rolled back; a statement without a code proves nothing.
//!
//! Only the node itself has to be convinced. So the key is a secret that it alone has, which is derived from its
//! identity and is the same in every process. That is one keyed hash where a signature would be two curve operations.
//! No other node can check a code, nor needs to: a node that makes wrong codes only keeps itself from finding out.
//!
//! A code is good between two lives in one generation, for one end of one link and one number.

use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::identity::Generation;
use crate::schedule::NodeId;
use crate::statement::{Keys, Mac, encode};

/// The sender's statement: "I have sent you the parcels up to this one."
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The number of the parcel.
    pub seq: u64,
    /// The chain with it.
    pub chain: Chain,
    /// The sender's code.
    pub mac: Mac,
}

/// The receiver's statement: "I have applied your parcels up to this one."
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The number of the parcel.
    pub seq: u64,
    /// The receiver's code.
    pub mac: Mac,
}

/// The newest statements of a neighbour, in its present life, to this life of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// About its parcels to the node.
    pub sent: Option<Sent>,
    /// About the node's parcels to it.
    pub applied: Option<Applied>,
}

impl Evidence {
    /// Returns `true` if there is no statement yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Keeps the statement that came with a parcel that was taken.
    pub(crate) fn note_sent(&mut self, sent: Sent) {
        self.sent = Some(sent);
    }

    /// Keeps the statement that came with an acknowledgement, if it is newer.
    pub(crate) fn note_applied(&mut self, applied: Applied) {
        if self.applied.is_none_or(|known| known.seq < applied.seq) {
            self.applied = Some(applied);
        }
    }
}

/// The two lives that a statement is between: of the node that makes it, and of the neighbour it is made to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    pub(crate) generation: Generation,
    pub(crate) own: (NodeId, u64),
    pub(crate) neighbour: (NodeId, u64),
}

impl Lives {
    /// The statement of having sent, with the code of the node that has these keys.
    pub(crate) fn sent(&self, seq: u64, chain: Chain, keys: &dyn Keys) -> Sent {
        let Self { generation, own, neighbour } = self;
        let statement = encode(b"mingle 2026 sent on a link\0", &(generation, own, neighbour, seq, chain));
        Sent { seq, chain, mac: keys.mac(&statement) }
    }

    /// The statement of having applied, with the code of the node that has these keys.
    pub(crate) fn applied(&self, seq: u64, keys: &dyn Keys) -> Applied {
        let Self { generation, own, neighbour } = self;
        let statement = encode(b"mingle 2026 applied of a link\0", &(generation, own, neighbour, seq));
        Applied { seq, mac: keys.mac(&statement) }
    }

    /// Returns `true` if the node with these keys made this statement.
    pub(crate) fn have_sent(&self, sent: &Sent, keys: &dyn Keys) -> bool {
        self.sent(sent.seq, sent.chain, keys).mac.is(&sent.mac)
    }

    /// Returns `true` if the node with these keys made this statement.
    pub(crate) fn have_applied(&self, applied: &Applied, keys: &dyn Keys) -> bool {
        self.applied(applied.seq, keys).mac.is(&applied.mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Signature;

    #[derive(Debug)]
    struct Secret([u8; 32]);

    impl Keys for Secret {
        fn sign(&self, _: &[u8]) -> Signature {
            Signature::default()
        }

        fn is_signed(&self, _: NodeId, _: &[u8], _: &Signature) -> bool {
            false
        }

        fn mac(&self, statement: &[u8]) -> Mac {
            let hash = blake3::keyed_hash(&self.0, statement);
            hash.as_bytes().first_chunk::<16>().copied().map_or_else(Mac::default, Mac::from)
        }
    }

    const LIVES: Lives = Lives {
        generation: Generation { counter: 3, plan_hash: [7; 32] },
        own: (NodeId(0), 1),
        neighbour: (NodeId(1), 2),
    };

    #[test]
    fn a_code_is_good_for_one_number_between_two_lives_in_one_generation() {
        let keys = Secret([1; 32]);
        let (sent, applied) = (LIVES.sent(5, Chain([9; 32]), &keys), LIVES.applied(5, &keys));
        assert!(LIVES.have_sent(&sent, &keys) && LIVES.have_applied(&applied, &keys));
        let others = [
            Lives { generation: Generation { counter: 4, ..LIVES.generation }, ..LIVES },
            Lives { generation: Generation { plan_hash: [8; 32], ..LIVES.generation }, ..LIVES },
            Lives { own: (NodeId(0), 2), ..LIVES },
            Lives { own: (NodeId(2), 1), ..LIVES },
            Lives { neighbour: (NodeId(1), 1), ..LIVES },
            Lives { neighbour: (NodeId(2), 2), ..LIVES },
            Lives { own: LIVES.neighbour, neighbour: LIVES.own, ..LIVES },
        ];
        assert!(others.iter().all(|lives| !lives.have_sent(&sent, &keys) && !lives.have_applied(&applied, &keys)));
        assert!(!LIVES.have_sent(&Sent { seq: 6, ..sent }, &keys));
        assert!(!LIVES.have_sent(&Sent { chain: Chain([8; 32]), ..sent }, &keys));
        assert!(!LIVES.have_applied(&Applied { seq: 6, ..applied }, &keys));
        assert!(!LIVES.have_applied(&Applied { seq: 5, mac: sent.mac }, &keys), "one end is not the other");
        let other = Secret([2; 32]);
        assert!(!LIVES.have_sent(&sent, &other) && !LIVES.have_applied(&applied, &other));
    }

    #[test]
    fn the_newest_acknowledgement_is_kept() {
        let mut evidence = Evidence::default();
        for seq in [3, 7, 5] {
            evidence.note_applied(Applied { seq, mac: Mac::from([seq as u8; 16]) });
        }
        assert_eq!(evidence.applied, Some(Applied { seq: 7, mac: Mac::from([7; 16]) }));
        assert!(!evidence.is_empty());
    }
}
