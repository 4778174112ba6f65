#![allow(clippy::unwrap_used)]
use mingle_protocol::record::SlotMap;
use mingle_protocol::{Durability, Effect, Input, Node, NodeConfig, NodeId, RecordRoom, Schedule, Step, Time};

use super::*;

/// Records of a node that has just begun, with ascending numbers.
fn records(count: u64) -> Vec<Arc<Record>> {
    let (a, b) = (NodeId(0), NodeId(1));
    let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
    let schedule = Arc::new(Schedule::new(2, &[step], 0).unwrap());
    let mut config = NodeConfig::new(a, schedule, vec![0.0], 5);
    config.durability = Durability::On;
    let mut node = Node::new(config).unwrap();
    let first = node.handle(Time::default(), Input::Start).into_iter().find_map(|effect| match effect {
        Effect::Persist(record) => Some(record),
        _ => None,
    });
    let first = first.unwrap();
    let numbered = |number| {
        let mut record = Record::clone(&first);
        record.books.number = number;
        Arc::new(record)
    };
    (1..=count).map(numbered).collect()
}

fn store(folder: &std::path::Path) -> RecordStore {
    let mut store = RecordStore::look(folder).unwrap();
    store.make_room(Room::new(1, RecordRoom::for_links(1, 1)).unwrap()).unwrap();
    store
}

fn newest(folder: &std::path::Path) -> u64 {
    RecordStore::look(folder).unwrap().load().unwrap().unwrap().record.books.number
}

#[test]
fn records_are_written_in_order_and_those_handed_in_before_the_end_too() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, mut written) = RecordWriter::start(store(folder.path()), Timeline::default()).unwrap();
    for record in records(4) {
        let handed_in = record.books.number;
        writer.write(record).unwrap();
        assert!(matches!(written.blocking_recv(), Some(Written::Record { number }) if number == handed_in));
    }
    writer.write(records(5).remove(4)).unwrap();
    drop(writer);
    assert!(matches!(written.blocking_recv(), Some(Written::Record { number: 5 })));
    assert!(written.blocking_recv().is_none());
    assert_eq!(newest(folder.path()), 5);
}

#[test]
fn of_a_thousand_records_that_come_at_once_the_newest_is_on_the_disk_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, mut written) = RecordWriter::start(store(folder.path()), Timeline::default()).unwrap();
    for record in records(1000) {
        writer.write(record).unwrap();
    }
    let mut last = 0;
    while last < 1000 {
        let Some(Written::Record { number }) = written.blocking_recv() else { panic!("records are written") };
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    assert_eq!(newest(folder.path()), 1000);
}

#[test]
fn room_is_made_before_the_record_that_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, mut written) = RecordWriter::start(store(folder.path()), Timeline::default()).unwrap();
    writer.reserve(Room::new(1, RecordRoom::for_links(3, 3)).unwrap());
    writer.write(records(1).remove(0)).unwrap();
    assert!(matches!(written.blocking_recv(), Some(Written::Reserved { slots: 14 })));
    assert!(matches!(written.blocking_recv(), Some(Written::Record { number: 1 })));
}

/// The kernel's own devices stand in for a disk that is full and for one that cannot be synced.
#[cfg(target_os = "linux")]
mod failing_disks {
    use super::*;

    fn replace_slots(folder: &std::path::Path, device: &str) {
        for slot in 0..SlotMap::worst_case(1) {
            let path = folder.join(format!("{slot:04}.record"));
            std::fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(device, path).unwrap();
        }
    }

    #[test]
    fn a_full_disk_is_said_once_and_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let store_of_it = store(folder.path()).through_links();
        replace_slots(folder.path(), "/dev/full");
        let (writer, mut written) = RecordWriter::start(store_of_it, Timeline::default()).unwrap();
        let records = records(2);
        writer.write(Arc::clone(&records[0])).unwrap();
        let first = written.blocking_recv().unwrap();
        assert!(matches!(&first, Written::DiskFull { message } if message.contains("0000.record")), "{first:?}");
        writer.write(Arc::clone(&records[1])).unwrap();
        // Each slot changes at once from full to empty: the thread may try at any moment.
        let room = tempfile::tempdir_in(folder.path()).unwrap();
        drop(store(room.path()));
        for slot in 0..SlotMap::worst_case(1) {
            let name = format!("{slot:04}.record");
            std::fs::rename(room.path().join(&name), folder.path().join(&name)).unwrap();
        }
        assert!(matches!(written.blocking_recv().unwrap(), Written::RoomAgain));
        assert!(matches!(written.blocking_recv().unwrap(), Written::Record { number: 1 }));
        assert!(matches!(written.blocking_recv().unwrap(), Written::Record { number: 2 }));
        drop(writer);
        assert_eq!(newest(folder.path()), 2);
    }

    #[test]
    fn a_full_disk_does_not_hold_up_the_end_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).through_links();
        replace_slots(folder.path(), "/dev/full");
        let (writer, mut written) = RecordWriter::start(store, Timeline::default()).unwrap();
        writer.write(records(1).remove(0)).unwrap();
        assert!(matches!(written.blocking_recv(), Some(Written::DiskFull { .. })));
        drop(writer);
        assert!(written.blocking_recv().is_none());
    }

    #[test]
    fn a_sync_that_fails_is_the_last_thing_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).through_links();
        replace_slots(folder.path(), "/dev/null");
        let (writer, mut written) = RecordWriter::start(store, Timeline::default()).unwrap();
        writer.write(records(3).remove(0)).unwrap();
        let Some(Written::Failed(failure)) = written.blocking_recv() else { panic!("a sync of /dev/null fails") };
        assert!(failure.is(ErrorKind::Unexpected) && format!("{failure:#}").contains("is on the disk"), "{failure:#}");
        assert!(written.blocking_recv().is_none());
        writer.write(records(4).remove(3)).unwrap();
    }
}
