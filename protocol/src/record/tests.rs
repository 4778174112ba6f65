//! Records for tests, and tests of their books.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::codec::Codec;
use crate::window::Rejections;

/// Books of node 0 without links.
pub(crate) fn books(number: u64) -> Books {
    Books {
        number,
        generation: Generation { counter: 3, plan_hash: [7; 32] },
        task: [8; 32],
        id: NodeId(0),
        incarnation: 2,
        brought: Mass::ONE,
        mass: Mass::ONE,
        step: 100,
        split_done: true,
        neighbours: BTreeMap::new(),
        incoming: BTreeMap::new(),
        outgoing: BTreeMap::new(),
        left: Vec::new(),
        evidence: BTreeMap::new(),
        host: b"cursor".to_vec().into(),
    }
}

/// The chain of a link at a parcel.
pub(super) fn chain(seq: u64) -> Chain {
    Chain(*blake3::hash(&seq.to_le_bytes()).as_bytes())
}

/// A link on which the parcels after `acked` are owed by these records, one after the other.
pub(crate) fn owing(acked: u64, records: &[u64]) -> OutBooks {
    let parcel = |(seq, &record): (u64, &u64)| Owed {
        seq,
        step: 10 + seq,
        mass: Mass::from_units(seq),
        chain: chain(seq),
        record,
    };
    let outbox: Vec<Owed> = (acked + 1..).zip(records).map(parcel).collect();
    OutBooks {
        receiver_incarnation: 1,
        next_seq: acked + 1 + outbox.len() as u64,
        acked,
        acked_chain: chain(acked),
        sent_total: outbox.iter().map(|parcel| u128::from(parcel.mass.units())).sum(),
        outbox,
        ..OutBooks::default()
    }
}

/// A record of node 0 with a payload, that owes nothing.
pub(crate) fn record(number: u64) -> Record {
    let payload = Payload::encoded(Codec::F16, &[number as f32, -0.5, 7.0], 0).unwrap();
    Record {
        books: books(number),
        numerator: [1.0, -0.0, 1e-40].into(),
        ratio: None,
        held_back: None,
        payload: Some(payload),
    }
}

/// A record with links both ways, a ratio and a payload.
pub(super) fn full_record() -> Record {
    let mut record = record(9);
    let incoming = InBooks {
        sender_incarnation: 4,
        base: 2,
        applied: 300,
        rejected: Rejections::default(),
        chain: chain(300),
        last_step: Some(99),
        applied_total: 1 << 70,
        applied_from_earlier_lives: 5,
    };
    record.books.incoming = [(NodeId(1), incoming), (NodeId(1000), InBooks::default())].into();
    record.books.outgoing = [(NodeId(1), owing(6, &[5, 8, 9])), (NodeId(2), owing(0, &[]))].into();
    record.ratio = Some([0.5, 2.0, -3.0].into());
    record
}

#[test]
fn a_record_owes_the_payloads_that_its_outboxes_name() {
    assert_eq!(full_record().books.owed_records(), [5, 8, 9].into());
    assert!(books(1).owed_records().is_empty());
}
