//! Messages of the requests between peers beside the parcels.

use std::collections::BTreeMap;

use libp2p::{Multiaddr, PeerId, StreamProtocol};
use mingle_net::probe::{LinkMeasurement, ProbeToken};
use serde::{Deserialize, Serialize};

use crate::invite::{Claim, Invite};
use crate::offer::{MAX_OFFER_BYTES, PlanNews};
use crate::swarm::{Permission, SwarmIdentity};
use crate::task::Assignment;

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/swarm/7");
/// Largest request, and largest answer without a model.
pub(crate) const MAX_BYTES: usize = MAX_OFFER_BYTES + 768;

#[derive(Serialize, Deserialize)]
pub(crate) enum MemberRequest {
    Plan {
        /// The operator's permission, if the asker is not a member.
        permission: Option<Permission>,
    },
    /// The asker presents an invitation and its task.
    Join {
        /// [`PROTOCOL_VERSION`](mingle_protocol::PROTOCOL_VERSION) of the asker.
        wire: u16,
        swarm: [u8; 32],
        claim: Claim,
        work: Assignment,
    },
    Model,
    Announce(PlanNews),
    Progress {
        /// The operator's permission, if the asker is not a member.
        permission: Option<Permission>,
        swarm: [u8; 32],
    },
    Measure {
        to: Vec<u8>,
        addresses: Vec<Multiaddr>,
        token: Option<ProbeToken>,
    },
    /// The asker's addresses, and the peers whose addresses it wants.
    Meet {
        addresses: Vec<Multiaddr>,
        wanted: Vec<Vec<u8>>,
    },
    /// Requests the task of the swarm; an asker that is not a member presents an invitation.
    Task {
        claim: Option<Claim>,
    },
    /// Requests the state of the member's training, for a peer that joins.
    State,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum MemberAnswer {
    /// The plan that this process follows.
    Plan(Box<PlanNews>),
    /// The answer does not exist yet.
    NotYet,
    /// The plan does not name the asker.
    NotAMember,
    /// The asker is pending: it waits for a plan that names it.
    Wait,
    /// The ratio, as little-endian f32.
    Model(Vec<u8>),
    Verdict(PlanVerdict),
    Progress(PeerProgress),
    /// A refusal, with its reason.
    No(String),
    Measured(LinkMeasurement),
    /// The known addresses of the wanted peers.
    Met(Vec<(Vec<u8>, Vec<Multiaddr>)>),
    /// The task of this process.
    Task(Assignment),
    /// The state of the training, whose bytes mean something to that alone.
    State(Vec<u8>),
}

/// A peer's decision on a plan announced to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanVerdict {
    /// The peer follows the plan from now on.
    Taken,
    /// The peer follows the plan already.
    Known,
    /// The peer follows this other plan, which is newer or has the same number.
    Older(Box<PlanNews>),
    /// The peer cannot follow the plan, for this reason.
    Refused(String),
}

/// A pending peer and its signed claim, so that third parties can verify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    peer: Vec<u8>,
    claim: Claim,
}

impl Waiting {
    /// A pending peer, admitted with this claim.
    pub(crate) fn new(peer: PeerId, claim: Claim) -> Self {
        Self { peer: peer.to_bytes(), claim }
    }

    /// The invitation in the claim that admitted the peer.
    pub(crate) fn invite(&self) -> &Invite {
        &self.claim.invite
    }

    /// The peer and its invitation, if that is one to this swarm, and is its own.
    pub(crate) fn checked(&self, swarm: &SwarmIdentity) -> Option<(PeerId, &Invite)> {
        let peer = PeerId::from_bytes(&self.peer).ok()?;
        self.claim.check(swarm, &peer).ok()?;
        Some((peer, &self.claim.invite))
    }
}

/// Progress of a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerProgress {
    /// The counter of its plan; 0: none.
    pub counter: u64,
    /// Rounds over, in all.
    pub round: u64,
    /// Pending peers of this one.
    pub waiting: Vec<Waiting>,
    /// Its neighbours that left for good.
    pub left: Vec<String>,
    /// Addresses that known peers report for themselves.
    pub addresses: BTreeMap<String, Vec<String>>,
    /// Costs of a round of its plan; `None` before it has measured some.
    pub costs: Option<RoundCosts>,
    /// `true` if its user asks for the end of the training before its last round.
    pub asks_to_end: bool,
}

/// The time that the two parts of a round take a peer, in seconds: medians over its last rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundCosts {
    /// One local step.
    pub local_step_s: f64,
    /// A model on the slowest of its links, with the round trip.
    pub exchange_s: f64,
}
