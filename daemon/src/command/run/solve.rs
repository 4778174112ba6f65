//! A peer that solves a problem with the others instead of training a model.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Peer, boot_nonce};
use crate::api::Request;
use crate::events::Event;
use crate::failure::Outcome;
use crate::membership::Wanted;
use crate::place::Place;
use crate::signals::StopRequests;
use crate::solving::host::{self, Ears, HostParts};
use crate::solving::{Problem, Ways};
use crate::timeline::Timeline;
use crate::transport::{Network, NetworkEvent};
use crate::wiring::Wiring;

/// A problem's messages are no parcels: those of any size are refused.
const NO_PARCELS: usize = 0;

/// What the peer hears besides its streams.
pub(super) type Incoming =
    (mpsc::Receiver<Wanted>, mpsc::Receiver<NetworkEvent>, StopRequests, mpsc::Receiver<Request>);

impl Peer<'_> {
    /// Takes its part in solving the problem.
    pub(super) async fn solve(
        &mut self,
        path: &Path,
        place: Place,
        network: &Network,
        (wanted, events, stop, requests): Incoming,
    ) -> Outcome {
        let plan = &place.plan.plan;
        let problem = Problem::read(path, plan)?;
        let ways = Arc::new(Ways::of(plan, Arc::clone(&place.schedule))?);
        problem.check_links(&ways)?;
        let description = problem.describe();
        self.log.tell(Event::Problem { description: description.clone(), way: problem.way(&ways) });
        self.board.update(|status| {
            status.task = Some(description);
            status.rounds = problem.limits.iterations;
            status.durable = false;
        });
        let (wiring, edges) = Wiring::open(&network.streams, place, boot_nonce()?, NO_PARCELS, &Timeline::default())?;
        let parts = HostParts {
            problem: &problem,
            ways,
            wiring,
            home: &self.home,
            log: &mut self.log,
            board: &self.board,
            started: self.started,
        };
        let mut ears = Ears { edges, network: events, wanted, stop, requests };
        host::take_part(parts, &mut ears).await.map(drop)
    }
}
