//! What a program adds to a peer whose training happens elsewhere: calls on its socket, and words in its name.

use futures::future::BoxFuture;

use super::Outcome;
use crate::api::TcpOpening;
use crate::error::Result;
use crate::events::{Event, EventLog};
use crate::status::{StatusBoard, TrainerStatus};

/// What else the local interface serves.
pub struct Extension {
    /// Under paths that the interface does not have: on the Unix socket, for the owner of the home alone.
    pub routes: axum::Router,
    /// Where the same is served over TCP, for those who show a token.
    pub tcp: Option<TcpOpening>,
    /// Called with how the peer ended, while the socket is still open, and waited for.
    pub farewell: Farewell,
}

/// What is done when a peer has ended.
pub type Farewell = Box<dyn FnOnce(&Result<Outcome>) -> BoxFuture<'static, ()> + Send>;

/// Speaks in the name of a running peer, for a training that happens elsewhere.
#[derive(Clone)]
pub struct Announcer {
    pub(super) log: EventLog,
    pub(super) board: StatusBoard,
}

impl Announcer {
    /// Tells what happened.
    pub fn tell(&self, event: Event) {
        self.log.tell(event);
    }

    /// Shows in the status what trains for this peer, in words, or that nothing does.
    pub fn show_trainer(&self, attached: Option<String>) {
        self.board.update(|status| status.trainer = Some(TrainerStatus { attached }));
    }
}
