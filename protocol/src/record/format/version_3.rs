//! Books of format 3: without the neighbours' statements about their ends of links. They are read, and written in the
//! present format; evidence comes with the first messages of each neighbour.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mass::Mass;
use crate::message::{Generation, LeaveCertificate, LinkEnd};
use crate::record::{Books, HostState, InBooks, OutBooks};
use crate::schedule::NodeId;
use crate::statement::{Signature, SignedIdentity};

/// [`Books`] of format 3.
#[derive(Serialize, Deserialize)]
pub(super) struct Books3 {
    number: u64,
    generation: Generation,
    task: [u8; 32],
    id: NodeId,
    incarnation: u64,
    brought: Mass,
    mass: Mass,
    step: u64,
    split_done: bool,
    neighbours: BTreeMap<NodeId, SignedIdentity>,
    incoming: BTreeMap<NodeId, InBooks>,
    outgoing: BTreeMap<NodeId, OutBooks>,
    left: Vec<Certificate3>,
    host: HostState,
}

/// [`LeaveCertificate`] of wire protocol 7. Its signature is good for the present one, without evidence.
#[derive(Serialize, Deserialize)]
struct Certificate3 {
    generation: Generation,
    leaver: NodeId,
    incarnation: u64,
    ends: Vec<LinkEnd>,
    signature: Signature,
}

impl From<Books3> for Books {
    fn from(books: Books3) -> Self {
        let Books3 { number, generation, task, id, incarnation, brought, mass, step, split_done, .. } = books;
        Self {
            number,
            generation,
            task,
            id,
            incarnation,
            brought,
            mass,
            step,
            split_done,
            neighbours: books.neighbours,
            incoming: books.incoming,
            outgoing: books.outgoing,
            left: books.left.into_iter().map(LeaveCertificate::from).collect(),
            evidence: BTreeMap::new(),
            host: books.host,
        }
    }
}

impl From<Certificate3> for LeaveCertificate {
    fn from(certificate: Certificate3) -> Self {
        let Certificate3 { generation, leaver, incarnation, ends, signature } = certificate;
        Self { generation, leaver, incarnation, ends, evidence: Vec::new(), signature }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::Record;
    use crate::record::tests::full_record;

    impl From<&Books> for Books3 {
        fn from(books: &Books) -> Self {
            let &Books { number, generation, task, id, incarnation, brought, mass, step, split_done, .. } = books;
            let old = |certificate: LeaveCertificate| Certificate3 {
                generation: certificate.generation,
                leaver: certificate.leaver,
                incarnation: certificate.incarnation,
                ends: certificate.ends,
                signature: certificate.signature,
            };
            Self {
                number,
                generation,
                task,
                id,
                incarnation,
                brought,
                mass,
                step,
                split_done,
                neighbours: books.neighbours.clone(),
                incoming: books.incoming.clone(),
                outgoing: books.outgoing.clone(),
                left: books.left.iter().cloned().map(old).collect(),
                host: books.host.clone(),
            }
        }
    }

    #[test]
    fn all_that_format_3_could_say_is_found_again() {
        let mut record = full_record();
        let end = LinkEnd { from: NodeId(5), sender_incarnation: 3, applied: 300, rejected: Default::default() };
        record.books.left.push(LeaveCertificate {
            generation: record.books.generation,
            leaver: NodeId(9),
            incarnation: 2,
            ends: vec![end],
            evidence: Vec::new(),
            signature: Signature::from([4; 64]),
        });
        let mut bytes = Vec::new();
        record.encode(&mut bytes).unwrap();
        let (now, then) = (postcard::to_stdvec(&record.books), postcard::to_stdvec(&Books3::from(&record.books)));
        let (now, then) = (now.unwrap(), then.unwrap());
        let mut head = bytes[..24].to_vec();
        head[8..12].copy_from_slice(&3_u32.to_le_bytes());
        head[16..20].copy_from_slice(&(then.len() as u32).to_le_bytes());
        let vectors = &bytes[24 + now.len()..bytes.len() - 32];
        let content = [&head, &then[..], vectors].concat();
        let old = [&content[..], blake3::hash(&content).as_bytes()].concat();
        assert_eq!(Record::decode(&old).unwrap(), record);

        // The books of one format under the number of another are no books.
        let content = [&bytes[..8], &3_u32.to_le_bytes(), &bytes[12..bytes.len() - 32]].concat();
        let mixed = [&content[..], blake3::hash(&content).as_bytes()].concat();
        assert!(Record::decode(&mixed).is_err());
    }
}
