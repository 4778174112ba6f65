//! The event loop of a peer, and of a demo that observes peers.

use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};

/// System calls that have not returned by then end with the process.
const LONGEST_END: Duration = Duration::from_secs(5);

/// Runs `work` on two threads: one may be busy with a large message while the other answers. Tasks that remain
/// afterwards are not awaited.
///
/// # Errors
/// The threads cannot be started, or the work fails.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LONGEST_END);
    done
}
