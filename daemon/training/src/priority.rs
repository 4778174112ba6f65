//! The priority of training threads.

/// The priority of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// That of any other program.
    #[default]
    Normal,
    /// Training takes the time that other programs leave (Linux).
    Low,
}

/// A thread of this niceness gets a tenth of a core that it shares with one of the usual niceness.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread, and of what it starts.
#[cfg(target_os = "linux")]
pub fn lower(priority: Priority) {
    if priority == Priority::Low
        // On Linux niceness is a property of a thread; no process is named, so it is the calling thread's.
        && let Err(error) = rustix::process::setpriority_process(None, NICENESS)
    {
        tracing::warn!(%error, "the system does not let training run at a low priority");
    }
}

/// Elsewhere priorities are those of whole processes, the event loop included, so this only warns.
#[cfg(not(target_os = "linux"))]
pub fn lower(priority: Priority) {
    if priority == Priority::Low {
        tracing::warn!("on this system training cannot run at a lower priority than the rest of this program");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The niceness of the calling thread, by the kernel.
    fn niceness() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The name, in brackets, may hold anything; the 17th field after it is the niceness.
        stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_low_priority_is_that_of_one_thread_only() {
        let before = niceness();
        let of_thread = |priority| {
            std::thread::spawn(move || {
                lower(priority);
                niceness()
            })
        };
        assert_eq!(of_thread(Priority::Low).join().unwrap(), NICENESS.max(before));
        assert_eq!(of_thread(Priority::Normal).join().unwrap(), before);
        assert_eq!(niceness(), before);
    }
}
