#![allow(clippy::unwrap_used)]
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::record::tests::{owing, record};
use crate::schedule::NodeId;

/// Records 1 to 6, of which the last owes the payloads of 4 and 6, and no slot more than that takes.
fn written() -> Disk {
    let mut disk = Disk::default();
    disk.make_room(SlotMap::worst_case(1), 700).unwrap();
    (1..=6).for_each(|number| write(&mut disk, number));
    disk
}

fn numbered(number: u64) -> Arc<Record> {
    let mut record = record(number);
    let owed: &[u64] = match number {
        ..4 => &[],
        4..6 => &[4],
        _ => &[4, 6],
    };
    record.books.outgoing = [(NodeId(1), owing(3, owed))].into();
    Arc::new(record)
}

fn write(disk: &mut Disk, number: u64) {
    disk.begin(numbered(number)).unwrap();
    assert_eq!(disk.complete().unwrap(), Some(numbered(number)));
}

#[test]
fn a_write_that_was_cut_off_leaves_the_record_before_it_or_is_whole() {
    let (mut whole, mut torn, mut untouched) = (0, 0, 0);
    for seed in 0..200 {
        let mut disk = written();
        disk.begin(numbered(7)).unwrap();
        let arrived = disk.tear(&mut ChaCha8Rng::seed_from_u64(seed)).unwrap().is_some();
        let found = disk.recover(Injected::default()).unwrap();
        assert!(!disk.differs_from(&found), "seed {seed}");
        let found = found.unwrap();
        assert_eq!(found.record, *numbered(if arrived { 7 } else { 6 }), "seed {seed}");
        assert_eq!(found.payloads.len(), 2, "seed {seed}");
        match (arrived, found.torn) {
            (true, _) => whole += 1,
            (false, Some(_)) => torn += 1,
            (false, None) => untouched += 1,
        }
        // Whatever is there, the next record has a slot.
        write(&mut disk, 8);
    }
    assert!(whole > 20 && torn > 20 && untouched > 5, "{whole} whole, {torn} torn, {untouched} untouched");
}

/// Record `number` of a node whose parcels are acknowledged a record later.
fn acknowledged_late(number: u64) -> Arc<Record> {
    let mut record = record(number);
    record.books.outgoing = [(NodeId(1), owing(number - 2, &[number - 1, number]))].into();
    Arc::new(record)
}

#[test]
fn a_disk_of_a_large_model_makes_do_with_two_slots_and_loses_nothing_wherever_a_write_is_cut_off() {
    let (mut torn, mut scripts) = (0, 0);
    for seed in 0..100 {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let mut disk = Disk { makes_slots_as_needed: true, ..Disk::default() };
        assert_eq!(disk.make_room(SlotMap::worst_case(1), 700), Some(SlotMap::worst_case(1)));
        let mut first = numbered(1);
        Arc::make_mut(&mut first).books.outgoing = [(NodeId(1), owing(0, &[1]))].into();
        disk.begin(first).unwrap();
        disk.complete().unwrap();
        let mut number = 2;
        while number < 20 {
            disk.begin(acknowledged_late(number)).unwrap();
            if rng.random_bool(0.5) {
                assert_eq!(disk.complete().unwrap(), Some(acknowledged_late(number)), "seed {seed}");
                number += 1;
            } else {
                number += u64::from(disk.tear(rng).unwrap().is_some());
                torn += 1;
                let found = disk.recover(Injected::default()).unwrap();
                assert!(!disk.differs_from(&found), "seed {seed}, record {number}");
                scripts += u64::from(found.is_some_and(|found| found.payloads.len() == 1));
            }
            assert!(disk.files.len() <= 2, "seed {seed}, record {number}: {} slots", disk.files.len());
        }
    }
    assert!(torn > 300 && scripts > 50, "{torn} writes were cut off, {scripts} after what was acknowledged");
}

#[test]
fn damage_is_noticed_or_leaves_what_was_written() {
    for damage in [DiskDamage::FlippedBit, DiskDamage::Truncated, DiskDamage::LostSectors] {
        let (mut same, mut older, mut refused) = (0, 0, 0);
        for seed in 0..200 {
            let mut disk = written();
            disk.damage(damage, seed);
            match disk.recover(Injected::default()) {
                Ok(found) if !disk.differs_from(&found) => same += 1,
                Ok(found) => {
                    older += 1;
                    assert_eq!(found.unwrap().record, *numbered(5), "{damage:?}, seed {seed}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, RecoveryError::PayloadsLost { .. }), "{damage:?}: {error}");
                }
            }
        }
        println!("{damage:?}: {same} the same, {older} older, {refused} refused");
        assert!(older > 20 && same > 0, "{damage:?}: {same} the same, {older} older, {refused} refused");
        assert!(refused > 0 || damage == DiskDamage::LostSectors, "{damage:?}: no payload was hit");
    }
}

#[test]
fn a_write_that_nobody_made_sure_of_is_gone_at_the_next_kill() {
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    for (injected_bug, expected) in [(None, 7), (Some(InjectedBug::TrustsUnsyncedRecords), 6)] {
        let mut disk = loop {
            let mut disk = written();
            disk.begin(numbered(7)).unwrap();
            disk.tear(rng).unwrap();
            if disk.is_unsynced {
                break disk;
            }
        };
        assert_eq!(disk.recover(Injected::new(injected_bug)).unwrap().unwrap().record, *numbered(7));
        disk.tear(rng).unwrap();
        let found = disk.recover(Injected::new(injected_bug)).unwrap();
        assert_eq!(found.as_ref().unwrap().record, *numbered(expected));
        assert_eq!(disk.differs_from(&found), injected_bug.is_some());
    }
}
