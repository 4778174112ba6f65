//! Additions of a program to a peer whose training runs elsewhere: calls on its socket, and events on its behalf.

use futures::future::BoxFuture;

use super::Outcome;
use crate::api::TcpOpening;
use crate::error::Result;
use crate::events::{Event, EventLog};
use crate::status::{StatusBoard, TrainerStatus};

/// Further calls of the local interface.
pub struct Extension {
    /// Routes under paths that the interface does not have: on the Unix socket, for the owner of the home alone.
    pub routes: axum::Router,
    /// TCP address where the same routes are served, for clients with a token.
    pub tcp: Option<TcpOpening>,
    /// Called with the peer's outcome, while the socket is still open, and awaited.
    pub farewell: Farewell,
}

/// An action at the end of a peer.
pub type Farewell = Box<dyn FnOnce(&Result<Outcome>) -> BoxFuture<'static, ()> + Send>;

/// Reporter on behalf of a running peer, or of a node of a simulation, for a training that runs elsewhere.
#[derive(Clone)]
pub struct Announcer {
    pub(super) log: EventLog,
    pub(super) board: StatusBoard,
}

impl Announcer {
    /// A reporter that publishes events in this log, and shows the trainer on this board.
    pub fn new(log: EventLog, board: StatusBoard) -> Self {
        Self { log, board }
    }

    /// Reports an event.
    pub fn tell(&self, event: Event) {
        self.log.tell(event);
    }

    /// Shows in the status a description of the attached trainer, or that there is none.
    pub fn show_trainer(&self, attached: Option<String>) {
        self.board.update(|status| status.trainer = Some(TrainerStatus { attached }));
    }
}
