//! The thread pool of training.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use thiserror::Error;

use crate::device::{Device, DeviceName};

/// The multiplications of a piece of work from which its operations are worth dividing among threads.
const WORTH_DIVIDING: u64 = 1 << 24;

/// Held while a training thread does a piece of work as a whole.
static WHOLE_WORK: Mutex<()> = Mutex::new(());

/// The thread pool cannot be started: it exists already, or the system refuses more threads.
#[derive(Debug, Error)]
#[error("the threads for training cannot be started: {0}")]
pub struct ThreadsError(#[from] rayon::ThreadPoolBuildError);

/// Starts the training threads of this process: `count` of them, or as many as there are cores. Each calls `on_start`
/// first, for example to run at another priority.
///
/// Without this call they start by themselves, one a core, at the first computation. Results do not depend on the
/// number of threads.
///
/// # Errors
/// [`ThreadsError`] when the threads exist already, or the system refuses them.
pub fn start_threads(
    count: Option<NonZeroUsize>,
    on_start: impl Fn() + Send + Sync + 'static,
) -> Result<(), ThreadsError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(count.map_or(0, NonZeroUsize::get))
        .thread_name(|index| format!("training-{index}"))
        .start_handler(move |_| on_start());
    Ok(pool.build_global()?)
}

/// Does `work` on the first training thread if `device` is the processor and as many multiplications are worth it. Its operations are then divided from there, and
/// the thread that calls need not wait for others at each of them. It is the same thread each time, since an allocator
/// keeps for a thread what that has freed.
///
/// One piece of work at a time, as a thread that waits for a part of it may take up whatever else is queued; other work
/// is done by the thread that calls.
pub(crate) fn on_training_thread<R: Send>(device: &Device, multiplications: u64, work: impl FnOnce() -> R + Send) -> R {
    if device.name() != DeviceName::Cpu || multiplications < WORTH_DIVIDING || rayon::current_thread_index().is_some() {
        return work();
    }
    let Ok(_alone) = WHOLE_WORK.try_lock() else { return work() };
    let work = Mutex::new(Some(work));
    let results = rayon::broadcast(|thread| {
        if thread.index() > 0 {
            return None;
        }
        let work = work.lock().ok()?.take()?;
        Some(work())
    });
    results.into_iter().flatten().next().expect("a result of the first thread, which exists in every pool")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_of_work_is_done_by_the_first_thread_and_others_by_those_that_call() {
        let device = DeviceName::Cpu.open().expect("the processor");
        let place = || on_training_thread(&device, u64::MAX, rayon::current_thread_index);
        let with_another = || {
            let other = std::thread::scope(|scope| scope.spawn(place).join());
            (rayon::current_thread_index(), other.expect("no panic"))
        };
        // Trainers of other tests may have the thread for a while.
        let mut places = std::iter::repeat_with(|| on_training_thread(&device, u64::MAX, with_another));
        assert_eq!(places.find(|(first, _)| first.is_some()), Some((Some(0), None)));
        assert_eq!(on_training_thread(&device, WORTH_DIVIDING - 1, rayon::current_thread_index), None);
    }
}
