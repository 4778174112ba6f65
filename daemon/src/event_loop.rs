//! What drives the tasks of a peer, and of a demo that watches peers.

use crate::failure::{Kind, OrFail, Outcome};

/// Two threads: one may be busy with a large message while the other answers.
pub(crate) fn start() -> Outcome<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .or_fail(Kind::Unexpected, "cannot start the event loop")
}
