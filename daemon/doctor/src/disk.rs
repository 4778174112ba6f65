//! The disk under the home: room for the records, and the time until a record is durable.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mingle_peer::records::Room;
use mingle_peer::{Home, Identity, plan};
use mingle_protocol::RecordRoom;

use crate::check::Check;
use crate::machine::mebibytes;

/// The number of timed writes.
const WRITES: usize = 16;
/// A page: the least that a record has of its own.
const PAGE: [u8; 4096] = [0x5a; 4096];
/// The latency of a write from which it slows rounds: a round waits for one or two.
const SLOW: Duration = Duration::from_millis(50);
/// The neighbours in each direction where no plan gives their number.
const NEIGHBOURS: usize = 8;

/// Checks the room for the records of a model with `parameters` numbers, and the speed of writes. Writes and syncs an
/// unnamed file.
pub fn examine(home: &Home, parameters: usize) -> Vec<Check> {
    let place = existing(home.root());
    let mut checks: Vec<Check> = room(home, &place, parameters).into_iter().collect();
    checks.push(match time_syncs(&place) {
        Ok(times) => latency(&place, &times),
        Err(error) => Check::fail(
            "disk",
            format!("cannot write in {}: {error}", place.display()),
            "give this user the right to write there, or name another folder with --home DIR",
        ),
    });
    checks
}

/// The folder, or its nearest ancestor that exists.
fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|folder| folder.is_dir());
    found.filter(|found| !found.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

fn room(home: &Home, place: &Path, parameters: usize) -> Option<Check> {
    let available = available_bytes(place)?;
    let (incoming, outgoing) = neighbours(home).unwrap_or((NEIGHBOURS, NEIGHBOURS));
    let room = Room::new(parameters, RecordRoom::for_links(incoming, outgoing)).ok()?;
    let needed = room.first_bytes();
    let more = if room.is_made_as_needed() {
        format!(", and {} more for each round by which a neighbour lags behind", mebibytes(room.slot_bytes()))
    } else {
        String::new()
    };
    let finding = format!(
        "{} free at {}; records with {incoming} neighbours in and {outgoing} out take {}{more}",
        mebibytes(available),
        place.display(),
        mebibytes(needed)
    );
    Some(if available >= needed {
        Check::ok("disk", finding)
    } else {
        Check::fail("disk", finding, "free some, name another folder with --home DIR, or train with --durability off")
    })
}

/// The numbers of this peer's in-neighbours and out-neighbours, if it has a plan.
fn neighbours(home: &Home) -> Option<(usize, usize)> {
    let plan = plan::read(&home.plan()).ok()?;
    let node = plan::node_of(&plan, &Identity::load(&home.identity()).ok()?.peer_id())?;
    let schedule = plan::schedule(&plan).ok()?;
    Some((schedule.all_in_neighbours(node).len(), schedule.all_out_neighbours(node).len()))
}

fn latency(place: &Path, times: &[Duration]) -> Check {
    let [median, slowest] = [times[times.len() / 2], times[times.len() - 1]];
    let finding = format!(
        "a write is on the disk at {} after {:.2} ms, the slowest of {} after {:.2} ms",
        place.display(),
        median.as_secs_f64() * 1e3,
        times.len(),
        slowest.as_secs_f64() * 1e3
    );
    if median < SLOW {
        return Check::ok("disk", finding);
    }
    Check::warn("disk", finding, "each round waits for it: a faster disk with --home DIR, or --durability off")
}

/// Writes and syncs an unnamed file repeatedly; returns the times in ascending order.
fn time_syncs(place: &Path) -> io::Result<Vec<Duration>> {
    let mut file: File = tempfile::tempfile_in(place)?;
    let mut times = Vec::with_capacity(WRITES);
    // As a slot of records: made and synced once, then overwritten.
    file.write_all(&PAGE)?;
    file.sync_all()?;
    for _ in 0..WRITES {
        let start = Instant::now();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&PAGE)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times)
}

#[cfg(unix)]
fn available_bytes(place: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(place).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn available_bytes(_place: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_home_that_is_not_there_yet_is_judged_by_the_folder_it_will_be_in() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b/c")), folder.path());
        assert_eq!(existing(Path::new("no-such-folder/home")), Path::new("."));
    }

    #[test]
    fn a_slow_disk_is_a_warning_and_a_fast_one_is_none() {
        let place = Path::new("/home");
        let fast = latency(place, &[Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(90)]);
        assert_eq!(fast.advice, None);
        assert!(fast.finding.contains("after 2.00 ms, the slowest of 3 after 90.00 ms"), "{}", fast.finding);
        assert!(latency(place, &[Duration::from_millis(80); 3]).advice.is_some());
    }

    #[test]
    fn syncs_are_timed_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let times = time_syncs(folder.path()).unwrap();
        assert_eq!(times.len(), WRITES);
        assert!(times.is_sorted() && times[0] > Duration::ZERO);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(available_bytes(folder.path()).is_none_or(|bytes| bytes > 0));
    }
}
