//! The machine: its memory, its limit of open files, and its clock.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mingle_peer::Home;

use crate::check::Check;

/// The number of open files below which a peer with many neighbours may run out of them.
const FEW_FILES: u64 = 1024;
/// Approximate number of vectors of the model's length in memory: x, z, gradient, momentum, parcels sent and received.
const VECTORS: u64 = 16;
/// Approximate memory of a peer without a model.
const BARE_BYTES: u64 = 64 << 20;
/// The largest difference between the clock and the time of a file that is not a finding.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);

/// Checks the available memory against the needs of a peer with a model of `parameters` numbers.
pub fn memory(parameters: usize) -> Check {
    let needed = BARE_BYTES + VECTORS * 4 * parameters as u64;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_memory(&text));
    let Some(available) = available.map(|available: u64| limit.map_or(available, |limit: u64| available.min(limit)))
    else {
        return Check::ok("memory", format!("this system does not say; a peer takes about {}", mebibytes(needed)));
    };
    let finding = format!("{} left, a peer takes about {}", mebibytes(available), mebibytes(needed));
    if available >= needed {
        Check::ok("memory", finding)
    } else {
        Check::warn(
            "memory",
            finding,
            "free some, or train a smaller model: a peer that the system ends has to restart",
        )
    }
}

/// Checks how many files and sockets the process may have open.
pub fn open_files() -> Option<Check> {
    let limit = open_file_limit(&fs::read_to_string("/proc/self/limits").ok()?)?;
    Some(if limit < FEW_FILES {
        let advice = format!("`ulimit -n {FEW_FILES}`, or LimitNOFILE={FEW_FILES} in a systemd unit");
        Check::warn("files", format!("{limit} may be open at once"), advice)
    } else {
        Check::ok("files", format!("{limit} may be open at once"))
    })
}

/// Checks that the clock is not behind files that were already written. Rounds use another clock, which cannot be set.
pub fn clock(home: &Home) -> Check {
    let program = std::env::current_exe().ok();
    let files = program.into_iter().chain([home.events(), home.summary(), home.identity()]);
    let newest = files.filter_map(|file| Some((modified(&file)?, file))).max();
    let now = SystemTime::now();
    match newest {
        Some((written, file)) if written > now + CLOCK_SLACK => {
            let behind = written.duration_since(now).unwrap_or_default().as_secs() / 3600;
            Check::warn(
                "clock",
                format!("{} was written {behind} hours after now", file.display()),
                "set the clock, best by NTP: training does not depend on it, but logs and metrics do",
            )
        }
        _ => Check::ok("clock", "not behind the files here"),
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn open_file_limit(limits: &str) -> Option<u64> {
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

/// Bytes as a text in MiB.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read_and_what_it_does_not_say_is_none() {
        let meminfo = "MemTotal:       16303292 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_memory(meminfo), Some(2 << 20));
        assert_eq!(available_memory("MemAvailable: many kB"), None);
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            256                  4096                 files     \n";
        assert_eq!(open_file_limit(limits), Some(256));
        assert_eq!(open_file_limit("Max open files   unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(open_file_limit(""), None);
    }
}
