//! Answers to peers with an invitation: admission of a newcomer, and the task of the swarm.
//!
//! The task contains names and means of columns. So both requests pass the same check of the invitation: one that would
//! not admit its bearer does not reveal the task either. A request for the task uses up nothing.

use libp2p::PeerId;
use mingle_home::error::Result;
use mingle_protocol::PROTOCOL_VERSION;

use crate::invite::Claim;
use crate::requests::MemberAnswer;
use crate::service::{MembershipService, Wanted, other_swarm};
use crate::swarm::SwarmIdentity;
use crate::task::Assignment;

impl MembershipService {
    /// Sends the task of the swarm to a member, or to a peer whose invitation would still admit it.
    pub(crate) fn tell_task(&self, peer: PeerId, claim: Option<&Claim>) -> MemberAnswer {
        self.read_authority();
        if let (Some(swarm), Some(claim)) = (self.swarm(), claim) {
            if let Err(failure) = self.check_claim(&swarm, &peer, claim) {
                return MemberAnswer::No(format!("{failure:#}"));
            }
        } else if !self.is_member(&peer) {
            // A peer without a plan knows no members: it answers that it runs, and nothing else.
            return if self.state().plan.is_some() { MemberAnswer::NotAMember } else { MemberAnswer::NotYet };
        }
        self.state().work.as_ref().map_or(MemberAnswer::NotYet, |work| MemberAnswer::Task(work.assignment()))
    }

    /// Admits a peer with a valid invitation and the task of the swarm: it is pending from now on.
    pub(crate) fn admit(
        &self,
        peer: PeerId,
        wire: u16,
        swarm: [u8; 32],
        claim: &Claim,
        work: &Assignment,
    ) -> MemberAnswer {
        self.read_authority();
        let Some(ours) = self.swarm().filter(|ours| ours.id() == swarm) else { return other_swarm() };
        if wire != PROTOCOL_VERSION {
            return MemberAnswer::No(format!(
                "it speaks protocol version {wire}, and this swarm {PROTOCOL_VERSION}: run the release of the swarm's members"
            ));
        }
        // Before the tasks are compared: their difference reveals the task of the swarm.
        if let Err(failure) = self.check_claim(&ours, &peer, claim) {
            return MemberAnswer::No(format!("{failure:#}"));
        }
        // Before an invitation is used up, and before a plan names a peer that does not fit.
        if let Some(answer) = self.refuse_work(peer, work) {
            return answer;
        }
        if self.is_member(&peer) {
            return MemberAnswer::Wait;
        }
        let admitted = self.state().pending_peers.admit(peer, claim, &ours);
        match admitted {
            Ok(is_new) => {
                self.learn(&claim.invite.authority);
                self.show_known();
                if is_new {
                    // Only news for a person: without a reader it is dropped.
                    let _ = self.wanted.try_send(Wanted::JoinRequested(peer));
                }
                MemberAnswer::Wait
            }
            Err(failure) => MemberAnswer::No(format!("{failure:#}")),
        }
    }

    /// Checks that an invitation would admit this peer, as far as this home knows; no use is counted. For a member only
    /// revocation and expulsion are checked.
    ///
    /// # Errors
    /// The invitation is not valid, another peer's, revoked or used up, or the peer was expelled.
    pub(crate) fn check_claim(&self, swarm: &SwarmIdentity, peer: &PeerId, claim: &Claim) -> Result {
        let is_member = self.is_member(peer);
        if !is_member {
            claim.check(swarm, peer)?;
        }
        self.revocations()?.check(peer, &claim.invite)?;
        if is_member { Ok(()) } else { self.state().pending_peers.check_uses(peer, &claim.invite) }
    }
}
