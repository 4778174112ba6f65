//! What drives the tasks of a peer, and of a demo that watches peers.

use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};

/// Two threads: one may be busy with a large message while the other answers.
pub(crate) fn start() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")
}
