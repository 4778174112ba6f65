//! The thread pool of training.

use std::num::NonZeroUsize;

use thiserror::Error;

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
