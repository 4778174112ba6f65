//! The threads that training computes on.

use std::num::NonZeroUsize;

use thiserror::Error;

/// Why they cannot be started: they are there already, or the system gives no more.
#[derive(Debug, Error)]
#[error("the threads for training cannot be started: {0}")]
pub struct ThreadsError(#[from] rayon::ThreadPoolBuildError);

/// Starts the threads that this process trains on: `count` of them, or as many as there are cores. Each calls
/// `on_start` first, for a host that wants them to run at another priority, say.
///
/// Without this call they start by themselves, one a core, when there is first something to compute. What is computed does
/// not depend on how many there are.
///
/// # Errors
/// [`ThreadsError`] when they are there already, or cannot be had.
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
