//! What is asked of a running peer through its local interface.

use mingle_protocol::Durability;

use super::Driver;
use crate::api::{Request, Stopping};
use crate::error::Result;

impl Driver<'_> {
    pub(super) fn on_request(&mut self, request: Request) -> Result {
        match request {
            Request::Stop(answer) => {
                // Unlike a second interrupt, asking twice is no reason to give anything up, and a peer that is done ends anyway.
                if !self.stopping && !self.drained {
                    self.on_stop("asked to stop")?;
                }
                // Whoever asked may have gone.
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
                // It hands over what it has as soon as its neighbours are there.
                self.parts.leaves = true;
                Ok(())
            }
        }
    }

    fn stopping_now(&self) -> Stopping {
        Stopping {
            round: self.rounds,
            rounds: self.parts.rounds,
            weight_units: self.node.mass().units(),
            durable: self.parts.config.durability == Durability::On,
        }
    }
}
