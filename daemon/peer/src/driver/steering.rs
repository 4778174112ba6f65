//! Requests to a running peer through its local interface.

use mingle_protocol::{Durability, Input};

use super::Driver;
use super::ending::before_the_model;
use crate::api::{EndAnswer, Request, Stopping};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{AskedToEnd, Event};
use crate::membership::Wish;

impl Driver<'_> {
    pub(super) fn on_request(&mut self, request: Request) -> Result {
        match request {
            Request::Stop(answer) => {
                // Unlike a second interrupt, a second request is no reason to give anything up.
                if !self.stopping {
                    self.on_stop("asked to stop")?;
                }
                // The client may be gone.
                let _ = answer.send(self.stopping_now());
                Ok(())
            }
            Request::Leave(answer) if self.stopping || self.drained => {
                let _ = answer.send(None);
                Ok(())
            }
            Request::Leave(answer) => {
                let _ = answer.send(Some(self.stopping_now()));
                if self.joined {
                    let leave = self.leave();
                    return self.feed(leave);
                }
                // The peer hands its weight over as soon as its neighbours are there.
                self.parts.leaves = true;
                Ok(())
            }
            Request::End(answer) => {
                let _ = answer.send(self.ask_for_the_end());
                Ok(())
            }
        }
    }

    /// Asks the members to end the training before its last round.
    fn ask_for_the_end(&mut self) -> EndAnswer {
        let service = &self.member.service;
        let (wish, answer) = match (service.swarm(), service.is_operator()) {
            (None, _) => return EndAnswer::Impossible,
            (_, true) if !service.plans_the_swarm() => return EndAnswer::Uncounted,
            (_, true) => (Wish::EndForAll, EndAnswer::ForAll),
            (_, false) => (Wish::End, EndAnswer::Asked),
        };
        self.parts.end_wish.set(wish);
        self.member.log.tell(Event::AskedToEnd(AskedToEnd { asks: true }));
        answer
    }

    /// Stops this peer: in good order at the first request, at once at the second.
    pub(super) fn on_stop(&mut self, reason: &str) -> Result {
        if self.stopping {
            return Err(if self.drained { before_the_model(reason) } else { self.stopped_at_once() });
        }
        self.stopping = true;
        self.parts.training.interrupt(true);
        self.watching.note();
        self.member.log.tell(Event::Stopping { round: self.rounds, reason: reason.to_owned() });
        // A node that has drained has nothing to end; the rest must not take long.
        if self.drained { Ok(()) } else { self.feed(Input::Stop) }
    }

    fn stopped_at_once(&self) -> Error {
        let mass = self.node.mass();
        let consequence = match self.parts.config.durability {
            Durability::On => {
                format!("this peer keeps its weight {mass} on disk, and goes on when it is started again")
            }
            Durability::Off => format!("this peer's weight {mass} is lost to the swarm"),
        };
        Error::new(ErrorKind::Forced, format!("stopped at once, after round {}: {consequence}", self.rounds))
    }

    fn stopping_now(&self) -> Stopping {
        Stopping {
            round: self.rounds,
            rounds: self.last_round(),
            weight_units: self.node.mass().units(),
            durable: self.parts.config.durability == Durability::On,
        }
    }
}
