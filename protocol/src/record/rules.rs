//! The invariants of the books of a record, checked before they are used.
//!
//! A node relies on these rules when it goes on from a record: no arithmetic on its numbers overflows, every outbox
//! holds exactly the parcels that are sent and not confirmed, and every parcel names a record that can hold its
//! payload. The sum of the masses is not checked here: that is for [`audit`](crate::audit()), which can name where it
//! is wrong.

use super::error::RecordError;
use super::limits::most_host_bytes;
use super::{Books, InBooks, OutBooks, Owed};
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::schedule::{MAX_NODES, MAX_PERIOD, NodeId};
use crate::window::WINDOW;

/// Returns the first broken rule, in books of a record of so many coordinates that has a payload or none.
pub(super) fn check(books: &Books, has_payload: bool, dimension: usize) -> Result<(), RecordError> {
    check_node(books.id)?;
    check_mass(books.brought)?;
    check_mass(books.mass)?;
    let most = most_host_bytes(dimension);
    if books.host.len() > most {
        return Err(RecordError::HostTooLong { bytes: books.host.len(), most });
    }
    check_left(books)?;
    books.evidence.keys().try_for_each(|&neighbour| check_end(books.id, neighbour))?;
    for (&from, link) in &books.incoming {
        check_end(books.id, from)?;
        check_incoming(from, link)?;
    }
    for (&to, link) in &books.outgoing {
        check_end(books.id, to)?;
        check_outgoing(to, link)?;
        check_outbox(books, to, link)?;
        let own = link.outbox.iter().find(|parcel| parcel.record == books.number);
        if let Some(&Owed { seq, record, .. }) = own.filter(|_| !has_payload) {
            return Err(RecordError::NoPayload { to, seq, record });
        }
    }
    Ok(())
}

fn check_node(id: NodeId) -> Result<(), RecordError> {
    if id.index() < MAX_NODES { Ok(()) } else { Err(RecordError::NotANode { id }) }
}

fn check_end(own: NodeId, other: NodeId) -> Result<(), RecordError> {
    check_node(other)?;
    if own == other { Err(RecordError::SelfLink { id: own }) } else { Ok(()) }
}

fn check_mass(mass: Mass) -> Result<(), RecordError> {
    const MOST: u64 = MAX_NODES as u64 * UNITS_PER_ONE;
    if mass.units() <= MOST { Ok(()) } else { Err(RecordError::Overweight { units: mass.units() }) }
}

fn check_incoming(from: NodeId, link: &InBooks) -> Result<(), RecordError> {
    let &InBooks { base, applied, rejected, .. } = link;
    if base > applied {
        return Err(RecordError::AppliedBeforeBase { from, base, applied });
    }
    if rejected.is_sound() { Ok(()) } else { Err(RecordError::Rejections { from }) }
}

/// The certificates must ascend, be of this generation, and of nodes that a plan can have.
fn check_left(books: &Books) -> Result<(), RecordError> {
    let mut before = None;
    for certificate in &books.left {
        let leaver = certificate.leaver;
        check_node(leaver)?;
        let is_next = before < Some(leaver) && certificate.generation == books.generation;
        let is_ascending = certificate.ends.is_sorted_by(|a, b| a.from < b.from)
            && certificate.evidence.is_sorted_by(|a, b| a.0 < b.0);
        if !is_next || !is_ascending {
            return Err(RecordError::Certificate { leaver });
        }
        before = Some(leaver);
    }
    Ok(())
}

fn check_outgoing(to: NodeId, link: &OutBooks) -> Result<(), RecordError> {
    let &OutBooks { base, acked, next_seq, .. } = link;
    if base > acked || acked >= next_seq {
        return Err(RecordError::AckedOutOfRange { to, base, acked, next_seq });
    }
    let parcels = link.outbox.len();
    let expected = next_seq - 1 - acked;
    if parcels as u64 != expected {
        return Err(RecordError::OutboxLength { to, parcels, expected });
    }
    if parcels > WINDOW {
        return Err(RecordError::WindowExceeded { to, parcels });
    }
    Ok(())
}

fn check_outbox(books: &Books, to: NodeId, link: &OutBooks) -> Result<(), RecordError> {
    let mut before: Option<&Owed> = None;
    for (parcel, expected) in link.outbox.iter().zip(link.acked + 1..) {
        let &Owed { seq, step, mass, record, .. } = parcel;
        check_mass(mass)?;
        if seq != expected {
            return Err(RecordError::OutboxGap { to, seq, expected });
        }
        // A node that leaves may use a link before its step.
        if step > books.step.saturating_add(MAX_PERIOD as u64) || before.is_some_and(|before| step <= before.step) {
            return Err(RecordError::OutboxStep { to, seq, step });
        }
        // One payload a record, and a link takes one parcel of it.
        if record > books.number || before.is_some_and(|before| record <= before.record) {
            return Err(RecordError::OutboxRecord { to, seq, record });
        }
        before = Some(parcel);
    }
    Ok(())
}
