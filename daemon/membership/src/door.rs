//! The door of the swarm: who may come in with an invitation, and who is told what the swarm is for.
//!
//! What the swarm is for names columns and tells their means, so that both questions have one answer: an invitation that lets
//! nobody in tells nobody anything either. Being told uses none of it up.

use libp2p::PeerId;
use mingle_home::error::Result;
use mingle_protocol::PROTOCOL_VERSION;

use crate::invite::Claim;
use crate::service::{MembershipService, Wanted, other_swarm};
use crate::swarm::Swarm;
use crate::task::Assignment;
use crate::words::Answer;

impl MembershipService {
    /// Tells a member, or whoever has an invitation that still lets it in, what the swarm is for.
    pub(crate) fn tell_task(&self, peer: PeerId, claim: Option<&Claim>) -> Answer {
        self.read_authority();
        if let (Some(swarm), Some(claim)) = (self.swarm(), claim) {
            if let Err(failure) = self.check_claim(&swarm, &peer, claim) {
                return Answer::No(format!("{failure:#}"));
            }
        } else if !self.is_member(&peer) {
            // A peer without a plan knows no members: it says that it runs, and nothing else.
            return if self.state().plan.is_some() { Answer::NotAMember } else { Answer::NotYet };
        }
        self.state().work.as_ref().map_or(Answer::NotYet, |work| Answer::Task(work.assignment()))
    }

    /// Lets a peer wait here that brings an invitation and would do what the swarm does.
    pub(crate) fn admit(&self, peer: PeerId, wire: u16, swarm: [u8; 32], claim: &Claim, work: &Assignment) -> Answer {
        self.read_authority();
        let Some(ours) = self.swarm().filter(|ours| ours.id() == swarm) else { return other_swarm() };
        if wire != PROTOCOL_VERSION {
            return Answer::No(format!(
                "it speaks protocol version {wire}, and this swarm {PROTOCOL_VERSION}: run the release of the swarm's members"
            ));
        }
        // Before the work is compared: in what that differs says what the swarm does.
        if let Err(failure) = self.check_claim(&ours, &peer, claim) {
            return Answer::No(format!("{failure:#}"));
        }
        // Before an invitation is used up, and before a plan names who does not fit.
        if let Some(answer) = self.refuse_work(work) {
            return answer;
        }
        if self.is_member(&peer) {
            return Answer::Wait;
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
                Answer::Wait
            }
            Err(failure) => Answer::No(format!("{failure:#}")),
        }
    }

    /// Checks that an invitation lets this peer in, as far as it is known here; nothing is counted. A member needs none, and is turned
    /// away all the same once it is expelled.
    ///
    /// # Errors
    /// The invitation does not hold, is another peer's, was revoked or is used up, or the peer was expelled.
    fn check_claim(&self, swarm: &Swarm, peer: &PeerId, claim: &Claim) -> Result {
        let is_member = self.is_member(peer);
        if !is_member {
            claim.check(swarm, peer)?;
        }
        self.revocations()?.check(peer, &claim.invite)?;
        if is_member { Ok(()) } else { self.state().pending_peers.check_uses(peer, &claim.invite) }
    }
}
