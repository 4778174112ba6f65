//! A peer that solves a problem with the others instead of training a model.

use std::path::Path;
use std::sync::Arc;

use mingle_net::transport::Network;
use mingle_solving::{Problem, Ways};

use super::{Access, Incoming, Outcome, Peer, boot_nonce};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::membership::CheckedPlan;
use crate::place::Place;
use crate::plan;
use crate::solving::host::{self, Ears, End, HostParts};
use crate::timeline::Timeline;
use crate::wiring::Wiring;

/// A problem's messages are no parcels: those of any size are refused.
const NO_PARCELS: usize = 0;

impl Peer {
    /// Takes its part in solving the problem, along one plan after the other if the operator wants it.
    pub(super) async fn solve(
        &mut self,
        path: &Path,
        mut place: Place,
        network: &Network,
        access: Access<'_>,
        incoming: Incoming,
    ) -> Result<Outcome> {
        let Incoming { mut events, mut stop, mut asked } = incoming;
        let Access { hall, mut wanted, interface } = access;
        loop {
            let problem = Problem::read(path, &place.plan.plan)?;
            let ways = Arc::new(Ways::of(&place.plan.plan, Arc::clone(&place.schedule))?);
            problem.check_links(&ways)?;
            self.introduce_problem(&problem, &ways, place.node.index());
            let (wiring, edges) =
                Wiring::open(&network.streams, place, boot_nonce()?, NO_PARCELS, &Timeline::default())?;
            let parts = HostParts {
                problem: &problem,
                ways,
                has_operator: self.membership.is_some(),
                wiring,
                home: &self.home,
                log: &mut self.log,
                board: &self.board,
                started: self.started,
            };
            let mut ears = Ears { edges, network: events, wanted, stop, requests: asked };
            match host::take_part(parts, &mut ears).await? {
                End::Solved => return Ok(Outcome::Solved),
                End::Replanned(plan) => place = self.take_up(*plan)?,
            }
            Ears { network: events, wanted, stop, requests: asked, .. } = ears;
            hall.follow(&place.plan);
            interface.show_plan(&place.plan.plan);
            let (out, inward) = place.neighbours();
            network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        }
    }

    fn introduce_problem(&mut self, problem: &Problem, ways: &Ways, node: usize) {
        let description = problem.describe();
        self.log.tell(Event::Problem { description: description.clone(), way: problem.way(ways) });
        let name = problem.names.get(node).map_or("", String::as_str);
        if problem.defaulted().contains(&name) {
            let message = format!(
                "the problem file has no [[node]] for {name}, this peer: it takes the defaults, wish 0, weight 1, price 0, at least 0"
            );
            self.log.tell(Event::Warning { message });
        }
        self.board.update(|status| {
            status.task = Some(description);
            status.rounds = problem.limits.iterations;
            status.durable = false;
        });
    }

    /// This peer's place in the operator's new plan, which is kept for the next start.
    fn take_up(&mut self, plan: CheckedPlan) -> Result<Place> {
        let local = self.identity.peer_id();
        let counter = plan.generation().counter;
        if plan::node_of(&plan.plan, &local).is_none() {
            self.log.tell(Event::PlannedOut { counter });
            let message = format!("plan {counter} of the operator does not name this peer any more");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let place = Place::of(plan, "from the operator".to_owned(), local)?;
        plan::write(&place.plan.plan, &self.home.plan())?;
        place.plan.keep(&self.home)?;
        self.log.tell(Event::NewPlan {
            counter,
            hash: place.hash.clone(),
            nodes: place.peers.len(),
            node: place.node.index(),
            first_round: 0,
        });
        self.board.show_place(&place);
        Ok(place)
    }
}
