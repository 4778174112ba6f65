//! Recovery: the survey of a node's slots when it starts again.
//!
//! The node goes on from the newest record that can be read, with the payloads that this record owes to others, which
//! are in older ones. Two things can be wrong, and they are not alike:
//!
//! - *The newest slot cannot be read.* A crash while it was written does that. Nothing of it has left the node: parcels
//!   and acknowledgements wait until their record is on the disk. The record before it is the durable state, exactly.
//!   But a crash spoils one slot only, since a spoiled one is the first to be written again ([`SlotMap`]). Two of them
//!   mean that the disk lost what was safely on it, perhaps the newest records: to go on from an older one would send
//!   mass a second time that is long with its receivers. That is [`RecoveryError::Damaged`].
//! - *A payload that is owed cannot be read.* Older records do not help: every one since the payload was written owes it
//!   too, and the ones before that are further back than a crash can throw a node. Leaving the parcel out would lose
//!   mass, going back would double it. That is [`RecoveryError::PayloadsLost`], and the host has to report it: a node
//!   that cannot account for its mass gives all of it up (rule R5), and others find from their books how much that was.
//!
//! [`SlotMap`]: super::SlotMap

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use super::error::RecordError;
use super::format::Outline;
use super::{Books, Record};
use crate::mass::Mass;
use crate::payload::Payload;
use crate::schedule::NodeId;

/// The content of one slot, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotContent {
    /// It was never written.
    Empty,
    /// The slot is missing, or its bytes are no record.
    Unreadable,
    /// A record that is whole.
    Holds(Box<Outline>),
}

impl From<Result<Outline, RecordError>> for SlotContent {
    fn from(read: Result<Outline, RecordError>) -> Self {
        match read {
            Ok(outline) => Self::Holds(Box::new(outline)),
            Err(RecordError::Empty) => Self::Empty,
            Err(_) => Self::Unreadable,
        }
    }
}

/// The slots that hold the durable state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The slot of the newest record.
    pub newest: usize,
    /// The slots of the records whose payloads it owes, by their number.
    pub payloads: BTreeMap<u64, usize>,
    /// The slot that a crash left unreadable, if any.
    pub torn: Option<usize>,
}

/// The durable state of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// The newest record.
    pub record: Record,
    /// The payloads that it owes, by the number of the record that holds each.
    pub payloads: BTreeMap<u64, Payload>,
    /// The slot that a crash left unreadable, if any.
    pub torn: Option<usize>,
}

impl Survey {
    /// Reads the durable state from the slots that it is in: each of them once, and no other.
    ///
    /// # Errors
    /// Those of `read`: a slot that was whole when it was surveyed is not any more.
    pub fn read<E>(&self, mut read: impl FnMut(usize) -> Result<Record, E>) -> Result<Recovered, E> {
        let record = read(self.newest)?;
        let mut payloads = BTreeMap::new();
        for (&number, &slot) in &self.payloads {
            let payload = if slot == self.newest { record.payload.clone() } else { read(slot)?.payload };
            // A survey names slots whose records have payloads.
            payloads.extend(payload.map(|payload| (number, payload)));
        }
        Ok(Recovered { record, payloads, torn: self.torn })
    }
}

/// Finds the durable state of a node in its slots, for hosts that do not want all of them in memory.
///
/// `None` when no record was ever completed.
///
/// # Errors
/// [`RecoveryError`] when going on could lose or double mass.
pub fn survey(slots: &[SlotContent]) -> Result<Option<Survey>, RecoveryError> {
    let unreadable: Vec<usize> = (0..slots.len()).filter(|&slot| slots[slot] == SlotContent::Unreadable).collect();
    let by_number = by_number(slots);
    let found = match by_number.last_key_value() {
        None => None,
        Some((&number, holders)) => {
            let (newest, outline) = only(number, holders)?;
            let payloads = find_payloads(&by_number, newest, outline, &unreadable)?;
            Some(Survey { newest, payloads, torn: unreadable.first().copied() })
        }
    };
    if unreadable.len() > 1 {
        let newest = found.as_ref().map(|survey| Box::new(survey.clone()));
        return Err(RecoveryError::Damaged { unreadable, newest });
    }
    Ok(found)
}

/// The records that can be read, by their number.
type ByNumber<'a> = BTreeMap<u64, Holders<'a>>;

/// The first slot with a number, and the next one if there is any.
struct Holders<'a> {
    first: (usize, &'a Outline),
    second: Option<usize>,
}

fn by_number(slots: &[SlotContent]) -> ByNumber<'_> {
    let mut by_number = ByNumber::new();
    for (slot, content) in slots.iter().enumerate() {
        if let SlotContent::Holds(outline) = content {
            by_number
                .entry(outline.books.number)
                .and_modify(|holders| holders.second = holders.second.or(Some(slot)))
                .or_insert(Holders { first: (slot, outline), second: None });
        }
    }
    by_number
}

/// The one record of a number. A second one is an error only where the number is needed.
fn only<'a>(number: u64, holders: &Holders<'a>) -> Result<(usize, &'a Outline), RecoveryError> {
    match holders.second {
        Some(second) => Err(RecoveryError::SameNumber { number, slots: [holders.first.0, second] }),
        None => Ok(holders.first),
    }
}

/// The slots of all payloads that the newest record owes.
fn find_payloads(
    by_number: &ByNumber<'_>,
    slot: usize,
    newest: &Outline,
    unreadable: &[usize],
) -> Result<BTreeMap<u64, usize>, RecoveryError> {
    let mut found = BTreeMap::new();
    for number in newest.books.owed_records() {
        if let Some(holders) = by_number.get(&number) {
            let (slot, holder) = only(number, holders)?;
            if can_hold(holder, newest) {
                found.insert(number, slot);
            }
        }
    }
    let lost: Vec<LostParcel> = newest
        .books
        .outgoing
        .iter()
        .flat_map(|(&to, link)| link.outbox.iter().map(move |parcel| (to, parcel)))
        .filter(|(_, parcel)| !found.contains_key(&parcel.record))
        .map(|(to, parcel)| LostParcel { to, seq: parcel.seq, mass: parcel.mass, record: parcel.record })
        .collect();
    if lost.is_empty() {
        return Ok(found);
    }
    let books = Box::new(newest.books.clone());
    Err(RecoveryError::PayloadsLost { slot, books, lost, unreadable: unreadable.to_vec() })
}

/// Returns `true` if the newest record can have its payloads in this one: of the same node in the same ledger.
fn can_hold(holder: &Outline, newest: &Outline) -> bool {
    let key = |outline: &Outline| {
        let Books { generation, task, id, incarnation, .. } = outline.books;
        (generation, task, id, incarnation, outline.dimension)
    };
    holder.payload.is_some() && key(holder) == key(newest)
}

/// Finds the durable state of a node in its slots, as [`Record::decode`] read them.
///
/// `None` when no record was ever completed.
///
/// # Errors
/// [`RecoveryError`] when going on could lose or double mass.
pub fn recover(slots: Vec<Result<Record, RecordError>>) -> Result<Option<Recovered>, RecoveryError> {
    let contents: Vec<SlotContent> =
        slots.iter().map(|read| read.as_ref().map(Record::outline).map_err(Clone::clone).into()).collect();
    let mut records: Vec<Option<Record>> = slots.into_iter().map(Result::ok).collect();
    // A survey names slots that could be read.
    Ok(survey(&contents)?.and_then(|survey| survey.read(|slot| records[slot].take().ok_or(())).ok()))
}

/// A parcel whose payload is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostParcel {
    /// The receiver.
    pub to: NodeId,
    /// Its number on the link.
    pub seq: u64,
    /// Its weight.
    pub mass: Mass,
    /// The record that held its payload.
    pub record: u64,
}

/// A reason why a node cannot go on from its slots as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecoveryError {
    /// Two slots hold a record of the same number: files were copied or put back.
    #[error("slots {} and {} both hold record {number}: files of different times or nodes are mixed", slots[0], slots[1])]
    SameNumber { number: u64, slots: [usize; 2] },
    /// The newest record owes payloads that are gone. To leave them out loses mass, to go back to an older record
    /// doubles it.
    #[error("{}", describe_lost(*slot, books, lost, unreadable))]
    PayloadsLost {
        /// The slot of the newest record.
        slot: usize,
        /// Its books, by which others may have dealt with this node.
        books: Box<Books>,
        /// The parcels whose payloads are gone, by receiver and number.
        lost: Vec<LostParcel>,
        /// Slots that cannot be read.
        unreadable: Vec<usize>,
    },
    /// More slots are unreadable than a crash can leave: the newest records may be among them.
    #[error("{}", describe_damage(unreadable, newest.is_some()))]
    Damaged {
        /// The slots that cannot be read.
        unreadable: Vec<usize>,
        /// The newest state that can, if there is any; it may be older than what others have seen.
        newest: Option<Box<Survey>>,
    },
}

fn describe_lost(slot: usize, books: &Books, lost: &[LostParcel], unreadable: &[usize]) -> String {
    let parcels: Vec<String> = lost
        .iter()
        .map(|parcel| {
            let LostParcel { to, seq, mass, record } = parcel;
            format!("parcel {seq} to node {to} (weight {mass}), whose payload is in record {record}")
        })
        .collect();
    let damaged = if unreadable.is_empty() { String::new() } else { format!("; unreadable: {}", Slots(unreadable)) };
    format!("record {} in slot {slot} owes {}, and that is gone{damaged}", books.number, parcels.join(" and "))
}

fn describe_damage(unreadable: &[usize], has_newest: bool) -> String {
    let consequence = if has_newest { "the newest that can be read may not be the last" } else { "no record is left" };
    format!(
        "{} cannot be read, and a crash leaves at most one such: the disk or somebody changed them, and {consequence}",
        Slots(unreadable)
    )
}

/// "slots 1, 4 and 5".
struct Slots<'a>(&'a [usize]);

impl fmt::Display for Slots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, others) = match self.0 {
            [] => return write!(f, "no slot"),
            [only] => return write!(f, "slot {only}"),
            [others @ .., last] => (last, others),
        };
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        write!(f, "slots {} and {last}", others.join(", "))
    }
}

#[cfg(test)]
mod tests;
