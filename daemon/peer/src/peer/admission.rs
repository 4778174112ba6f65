//! Admission of this peer to a swarm by its invitation.

use libp2p::PeerId;

use super::Peer;
use super::plan_search::PlanSearch;
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::membership::{self, Claim, Membership, MembershipService, SwarmIdentity, TaskAnswer};
use crate::task::Assignment;

impl Peer {
    /// Handles a member's answer to this peer's invitation. Returns `false` if the member is to be asked again before
    /// it is asked for a plan, and an error if no peer is left that might admit this one.
    pub(super) fn on_admission(
        &mut self,
        peer: PeerId,
        admitted: Result<Option<()>>,
        membership: &Membership,
        search: &mut PlanSearch,
    ) -> Result<bool> {
        match admitted {
            Ok(None) => {
                search.refusals.remove(&peer);
                return Ok(false);
            }
            Ok(Some(())) => {
                search.refusals.remove(&peer);
                search.admitted.insert(peer);
                self.remember_work()?;
                membership.write(&self.home)?;
                // A reader of the event must find it in the home.
                self.log.tell(Event::Admitted { peer: peer.to_string() });
            }
            Err(refusal) => {
                let warning = format!("{refusal:#}");
                if let Some(refusal) = search.refused(peer, refusal) {
                    return Err(refusal);
                }
                if search.warned.insert(peer) {
                    self.warn(warning);
                }
            }
        }
        Ok(true)
    }

    /// Asks a member for the task of the swarm, and for admission, if this peer can do that task.
    pub(super) async fn request_admission(
        &mut self,
        streams: &mut libp2p_stream::Control,
        service: &MembershipService,
        peer: PeerId,
        swarm: &SwarmIdentity,
        claim: &Claim,
    ) -> Result<Option<()>> {
        if self.work().is_none() {
            match membership::fetch_task(streams, peer, Some(claim)).await? {
                TaskAnswer::NotYet | TaskAnswer::Away => return Ok(None),
                TaskAnswer::Task(Assignment::Train(card)) => self.agree_with(peer, &card)?,
                TaskAnswer::Task(Assignment::Solve(_)) => {
                    let message =
                        format!("the swarm {} solves a problem, and this peer would train a model", swarm.name);
                    return Err(
                        Error::new(ErrorKind::Refused, message).hint("name its problem file with --problem FILE")
                    );
                }
            }
            self.announce_work(service);
        }
        let Some(work) = self.work() else { return Ok(None) };
        membership::request_admission(streams, peer, swarm, claim, &work).await
    }
}
