//! What is asked of a running peer through its local interface.

use mingle_protocol::Durability;

use super::Driver;
use crate::api::{Request, Stopping};
use crate::failure::Outcome;

impl Driver<'_> {
    pub(super) fn on_request(&mut self, request: Request) -> Outcome {
        match request {
            Request::Stop(answer) => {
                // Unlike a second interrupt, asking twice is no reason to give anything up, and a peer that is done ends anyway.
                if !self.stopping && !self.drained {
                    self.on_stop("asked to stop")?;
                }
                // Whoever asked may have gone.
                let _ = answer.send(Stopping {
                    round: self.rounds,
                    rounds: self.parts.config.rounds,
                    weight_units: self.node.mass().units(),
                    durable: self.parts.config.durability == Durability::On,
                });
                Ok(())
            }
        }
    }
}
