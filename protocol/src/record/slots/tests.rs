#![allow(clippy::unwrap_used)]
use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::payload::Payload;
use crate::record::tests::{books, full_record, owing, record};
use crate::record::{Record, RecordError, recover, survey};
use crate::schedule::NodeId;

/// A disk: the result of reading each slot.
type Disk = Vec<Result<Record, RecordError>>;

fn contents(disk: &Disk) -> Vec<SlotContent> {
    disk.iter().map(|read| read.as_ref().map(Record::outline).map_err(Clone::clone).into()).collect()
}

#[test]
fn a_spoiled_slot_is_taken_first_then_an_empty_one_then_the_oldest_record() {
    let mut disk: Disk =
        vec![Ok(record(7)), Ok(record(3)), Err(RecordError::Empty), Err(RecordError::Torn), Ok(record(5))];
    let taken = |disk: &Disk, number| {
        let contents = contents(disk);
        let survey = survey(&contents).unwrap();
        SlotMap::found(&contents, survey.as_ref()).claim(&books(number)).unwrap()
    };
    for (number, slot) in [(8, 3), (9, 2), (10, 1), (11, 4), (12, 0)] {
        assert_eq!(taken(&disk, number), slot, "record {number}");
        disk[slot] = Ok(record(number));
    }
}

#[test]
fn a_write_that_failed_is_made_good_by_the_next() {
    let mut slots = SlotMap::new(3);
    let slot = slots.claim(&books(1)).unwrap();
    assert_eq!(slots.claim(&books(1)), Ok(slot));
    slots.complete(slot, &books(1));
    let failed = slots.claim(&books(2)).unwrap();
    assert_ne!(failed, slot);
    assert_eq!(slots.claim(&books(3)), Ok(failed));
}

#[test]
fn records_that_could_not_be_recovered_are_refused() {
    let mut slots = SlotMap::new(3);
    assert_eq!(slots.claim(&full_record().books), Err(SlotError::NotHeld { number: 9, record: 5 }));
    let slot = slots.claim(&books(4)).unwrap();
    slots.complete(slot, &books(4));
    for number in [3, 4] {
        assert_eq!(slots.claim(&books(number)), Err(SlotError::NotNewer { number, newest: 4 }));
    }
    let mut owing_all = books(5);
    owing_all.outgoing.insert(NodeId(1), owing(0, &[4, 5]));
    let slot = slots.claim(&owing_all).unwrap();
    slots.complete(slot, &owing_all);
    owing_all.number = 6;
    owing_all.outgoing.insert(NodeId(1), owing(0, &[4, 5, 6]));
    let slot = slots.claim(&owing_all).unwrap();
    slots.complete(slot, &owing_all);
    owing_all.number = 7;
    assert_eq!(slots.claim(&owing_all), Err(SlotError::NoneFree { slots: 3 }));
}

#[test]
fn a_host_that_gave_up_what_its_slots_hold_may_overwrite_all_but_must_count_on() {
    let contents = contents(&vec![Ok(full_record()), Ok(record(8))]);
    let mut slots = SlotMap::found(&contents, None);
    assert_eq!(slots.highest(), Some(9));
    assert_eq!(slots.claim(&books(9)), Err(SlotError::NotNewer { number: 9, newest: 9 }));
    let slot = slots.claim(&books(10)).unwrap();
    slots.complete(slot, &books(10));
    assert_eq!(slots.claim(&books(11)), Ok(1 - slot));
}

/// A node that commits a record a step while its receivers confirm at random, and is killed at random.
struct Life {
    rng: ChaCha8Rng,
    disk: Disk,
    slots: SlotMap,
    /// The durable record's number, and per link its first outstanding parcel and the records of all of them.
    durable: (u64, Vec<(u64, VecDeque<u64>)>),
}

impl Life {
    fn new(seed: u64, links: usize) -> Self {
        let count = SlotMap::worst_case(links);
        let disk = (0..count).map(|_| Err(RecordError::Empty)).collect();
        let durable = (0, vec![(0, VecDeque::new()); links]);
        Self { rng: ChaCha8Rng::seed_from_u64(seed), disk, slots: SlotMap::new(count), durable }
    }

    /// The next record: some parcels confirmed, one more on each link that has room and is not skipped.
    fn next(&mut self) -> (u64, Vec<(u64, VecDeque<u64>)>, Record) {
        let (number, mut links) = self.durable.clone();
        let number = number + 1;
        let mut next = record(number);
        next.books.step = 1000 * number;
        for (index, (acked, owed)) in links.iter_mut().enumerate() {
            while !owed.is_empty() && self.rng.random_bool(0.2) {
                owed.pop_front();
                *acked += 1;
            }
            if owed.len() < WINDOW && self.rng.random_bool(0.8) {
                owed.push_back(number);
            }
            next.books.outgoing.insert(NodeId(index as u32 + 1), owing(*acked, owed.make_contiguous()));
        }
        (number, links, next)
    }

    fn commit(&mut self) {
        let (number, links, next) = self.next();
        let slot = self.slots.claim(&next.books).unwrap();
        match self.rng.random_range(0..10) {
            // Killed before the write, in the middle of it, and after it but before its completion was reported.
            0 => {}
            1 => self.disk[slot] = Err(RecordError::Torn),
            _ => {
                self.slots.complete(slot, &next.books);
                self.disk[slot] = Ok(next);
                self.durable = (number, links);
                if self.rng.random_bool(0.9) {
                    return;
                }
            }
        }
        self.restart();
    }

    /// Reads all slots; they must hold the durable record and all that it owes.
    fn restart(&mut self) {
        let contents = contents(&self.disk);
        let survey = survey(&contents).unwrap();
        let recovered = recover(self.disk.clone()).unwrap();
        assert_eq!(recovered.as_ref().map_or(0, |recovered| recovered.record.books.number), self.durable.0);
        let owed: BTreeMap<u64, Payload> = self
            .durable
            .1
            .iter()
            .flat_map(|(_, owed)| owed)
            .map(|&number| (number, record(number).payload.unwrap()))
            .collect();
        assert_eq!(recovered.map_or_else(BTreeMap::new, |recovered| recovered.payloads), owed);
        self.slots = SlotMap::found(&contents, survey.as_ref());
    }
}

#[test]
fn wherever_a_node_is_killed_its_last_record_and_all_it_owes_are_found_in_the_worst_number_of_slots() {
    for seed in 0..if cfg!(miri) { 1 } else { 40 } {
        for links in [0, 1, 2, 5] {
            println!("seed {seed}, {links} links");
            let mut life = Life::new(seed, links);
            for _ in 0..if cfg!(miri) { 5 } else { 200 } {
                life.commit();
            }
        }
    }
}

#[test]
fn the_worst_number_of_slots_is_enough_and_needed() {
    const LINKS: u32 = 3;
    // Each link is filled with parcels of steps that no other link has; then nothing moves, and records go on.
    let fill = |slots: usize| -> Result<(), SlotError> {
        let mut slots = SlotMap::new(slots);
        let mut owed = BTreeMap::new();
        for number in 1..=LINKS as u64 * WINDOW as u64 + 5 {
            let link = NodeId(1 + (number as u32 - 1) / WINDOW as u32);
            if link.0 <= LINKS {
                owed.entry(link).or_insert_with(Vec::new).push(number);
            }
            let outgoing = owed.iter().map(|(to, owed)| (*to, owing(0, owed))).collect();
            let next = Books { outgoing, ..books(number) };
            let slot = slots.claim(&next)?;
            slots.complete(slot, &next);
        }
        Ok(())
    };
    let most = SlotMap::worst_case(LINKS as usize);
    assert_eq!(fill(most), Ok(()));
    assert_eq!(fill(most - 1), Err(SlotError::NoneFree { slots: most - 1 }));
}
