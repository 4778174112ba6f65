//! The words of the requests that peers make of each other beside the parcels.

use std::collections::BTreeMap;

use libp2p::{Multiaddr, PeerId, StreamProtocol};
use mingle_net::probe::{Measured, ProbeToken};
use serde::{Deserialize, Serialize};

use crate::invite::{Claim, Invite};
use crate::offer::{MAX_OFFER_BYTES, PlanNews};
use crate::swarm::{Permission, Swarm};
use crate::task::Assignment;

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/swarm/5");
/// The most that a request, or an answer without a model, may be long.
pub(crate) const MAX_BYTES: usize = MAX_OFFER_BYTES + 768;

#[derive(Serialize, Deserialize)]
pub(crate) enum Request {
    Plan {
        /// The operator's signature that the asker may have it, if it is no member.
        permission: Option<Permission>,
    },
    /// Whoever asks brings an invitation, and would do this.
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
        /// The operator's signature that the asker may know, if it is no member.
        permission: Option<Permission>,
        swarm: [u8; 32],
    },
    Measure {
        to: Vec<u8>,
        addresses: Vec<Multiaddr>,
        token: Option<ProbeToken>,
    },
    /// Where the asker listens, and whose addresses it wants to know.
    Meet {
        addresses: Vec<Multiaddr>,
        wanted: Vec<Vec<u8>>,
    },
    /// What the swarm is for; who is no member yet brings an invitation.
    Task {
        claim: Option<Claim>,
    },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The plan that this process follows.
    Plan(Box<PlanNews>),
    /// There is none yet.
    NotYet,
    /// The plan does not name the asker.
    NotAMember,
    /// The asker may wait for a plan that names it.
    Wait,
    /// The ratio, as little-endian f32.
    Model(Vec<u8>),
    Verdict(Verdict),
    Progress(Progress),
    /// No, and why.
    No(String),
    Measured(Measured),
    /// Where those listen that the asker wants to know of, as far as it is known here.
    Met(Vec<(Vec<u8>, Vec<Multiaddr>)>),
    /// What this process does.
    Task(Assignment),
}

/// What became of a plan that a peer was told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It follows it from now on.
    Taken,
    /// It follows it already.
    Known,
    /// It follows another one, which is newer or has the same number: this.
    Older(Box<PlanNews>),
    /// It cannot follow it, and why.
    Refused(String),
}

/// A peer that waits, with what let it in: whoever is told of it need not believe the one that tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    peer: Vec<u8>,
    claim: Claim,
}

impl Waiting {
    /// This peer, which was let in with that.
    pub(crate) fn new(peer: PeerId, claim: Claim) -> Self {
        Self { peer: peer.to_bytes(), claim }
    }

    /// What it says that let the peer in.
    pub(crate) fn invite(&self) -> &Invite {
        &self.claim.invite
    }

    /// The peer and its invitation, if that is one to this swarm, and is its own.
    pub(crate) fn checked(&self, swarm: &Swarm) -> Option<(PeerId, &Invite)> {
        let peer = PeerId::from_bytes(&self.peer).ok()?;
        self.claim.check(swarm, &peer).ok()?;
        Some((peer, &self.claim.invite))
    }
}

/// Where a peer stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The counter of its plan; 0: none.
    pub counter: u64,
    /// Rounds over, in all.
    pub round: u64,
    /// Who waits for a plan that names it.
    pub waiting: Vec<Waiting>,
    /// Its neighbours that left for good.
    pub left: Vec<String>,
    /// Where peers that this one knows say that they listen.
    pub addresses: BTreeMap<String, Vec<String>>,
    /// What rounds of its plan take it; none before it has measured some.
    pub costs: Option<RoundCosts>,
}

/// The time that the two parts of a round take a peer, in seconds: medians over its last rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundCosts {
    /// One local step.
    pub local_step_s: f64,
    /// A model on the slowest of its links, with the round trip.
    pub exchange_s: f64,
}
