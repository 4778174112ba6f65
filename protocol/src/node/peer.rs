//! The state that a node keeps of one neighbour.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Account, Belief, Flows, InDistances, NeighbourPatience, Part, Renewal, ToldProcesses};
use crate::arrivals::Arrivals;
use crate::config::NodeConfig;
use crate::effect::{Mismatch, Suspension};
use crate::evidence::Evidence;
use crate::link::{InLink, OutLink};
use crate::message::{Incarnation, LinkPositions};
use crate::offences::Offences;
use crate::reference::KnownReferences;
use crate::schedule::NodeId;
use crate::statement::{Signature, SignedIdentity};
use crate::time::Time;

/// The most greetings that a neighbour gets in a heartbeat.
const MOST_GREETINGS: u32 = 16;

/// A neighbour: its identity, whether it can be relied on, and the links to and from it.
#[derive(Clone, Debug)]
pub(crate) struct Neighbour {
    pub(crate) id: NodeId,
    /// The identity of its last Hello; `None` before the first one that fits.
    pub(crate) identity: Option<Incarnation>,
    /// Its signature under that; none while only its certificate has named this life.
    pub(crate) signature: Signature,
    pub(crate) link_up: bool,
    pub(crate) suspended: Option<Suspension>,
    pub(crate) heard_at: Time,
    /// The time of the last message that named the process that sent it. Parcels do not.
    pub(crate) vouched_at: Time,
    /// Set by the first message on the link that is up now; those before it may be of a process that is gone.
    pub(crate) heard_since_up: bool,
    pub(crate) sent_at: Time,
    /// Set when it has shown that it knows our present identity, so that it accepts our parcels.
    pub(crate) mutual: bool,
    /// Set when a Hello of ours has named its present identity.
    pub(crate) greeted: bool,
    /// Steps it claims to be through with.
    pub(crate) passed: u64,
    /// The part of that which is believed.
    pub(crate) belief: Belief,
    /// Decides whether, and from when on, it is waited for.
    pub(crate) patience: NeighbourPatience,
    /// Counts greetings and parcels in vain on the present streams.
    pub(crate) renewal: Renewal,
    /// Set when this process has dealt with it.
    pub(crate) was_met: bool,
    /// Set when it has stopped taking part.
    pub(crate) leaving: bool,
    /// Set when it has left the generation for good, by its certificate.
    pub(crate) left: bool,
    /// Set when its process has ended before it came, by what the host saw.
    pub(crate) is_gone: bool,
    /// The digest of the certificates that it reports to have.
    pub(crate) known_left: Option<u64>,
    /// The time when our certificates were last sent to it.
    pub(crate) told_left_at: Option<Time>,
    /// The process statements of others that were sent to it.
    pub(crate) told_processes: ToldProcesses,
    /// Its refused parcels that no sound node sends.
    pub(crate) offences: Offences,
    /// Its statements about its ends of the links, in its present life to this node's.
    pub(crate) evidence: Evidence,
    /// The beginning of the present count of greetings, and the count.
    pub(crate) greetings: (Time, u32),
    pub(crate) ack_owed: bool,
    pub(crate) refused: Option<Mismatch>,
    pub(crate) outgoing: Option<OutLink>,
    pub(crate) incoming: Option<InLink>,
    /// Times in a row that it got nothing for want of a permit.
    pub(crate) passed_over: u32,
    /// The arrival times of its latest parcels.
    pub(crate) arrivals: Arrivals,
    /// The distances of the ratios that came from it.
    pub(crate) distances: InDistances,
    /// The weight that it received and gave, for its credit.
    pub(crate) account: Account,
    /// The references that differences to it may refer to.
    pub(crate) references: KnownReferences,
    /// The part of the plan that it is in.
    pub(crate) part: Part,
    /// Set if the plan hands ratios down to it from this node, and never from it to this node.
    pub(crate) is_below: bool,
}

impl Neighbour {
    pub(crate) fn new(id: NodeId) -> Self {
        Self {
            id,
            identity: None,
            signature: Signature::default(),
            link_up: false,
            suspended: None,
            heard_at: Time::default(),
            vouched_at: Time::default(),
            heard_since_up: false,
            sent_at: Time::default(),
            mutual: false,
            greeted: false,
            passed: 0,
            belief: Belief::default(),
            patience: NeighbourPatience::default(),
            renewal: Renewal::default(),
            was_met: false,
            leaving: false,
            left: false,
            is_gone: false,
            known_left: None,
            told_left_at: None,
            told_processes: ToldProcesses::default(),
            offences: Offences::default(),
            evidence: Evidence::default(),
            greetings: (Time::default(), 0),
            ack_owed: false,
            refused: None,
            outgoing: None,
            incoming: None,
            passed_over: 0,
            arrivals: Arrivals::default(),
            distances: InDistances::default(),
            account: Account::default(),
            references: KnownReferences::default(),
            part: Part::default(),
            is_below: false,
        }
    }

    /// Returns `true` if it is known, reachable and keeping up.
    pub(crate) fn is_active(&self) -> bool {
        self.link_up && self.mutual && self.suspended.is_none() && !self.left
    }

    /// Counts a greeting and returns `true` if it may be sent. There are only so many in a heartbeat: a neighbour that
    /// answers each of them with another contradiction would otherwise keep both busy for ever.
    pub(crate) fn may_be_greeted(&mut self, now: Time, heartbeat: Duration) -> bool {
        let (since, count) = self.greetings;
        self.greetings = if now < since + heartbeat { (since, count + 1) } else { (now, 1) };
        self.greetings.1 <= MOST_GREETINGS
    }

    /// Its identity with its own signature.
    pub(crate) fn signed_identity(&self) -> Option<SignedIdentity> {
        Some(SignedIdentity { identity: self.identity?, signature: self.signature })
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.identity.map_or(0, |identity| identity.incarnation)
    }

    /// Returns `true` if it has contradicted this node's books, and shown no statement of this node that proves it.
    pub(crate) fn contradicts(&self) -> bool {
        self.suspended == Some(Suspension::Contradicts)
    }

    /// Closes the link to it, since it stops taking part: nothing more is sent to it.
    pub(crate) fn on_leaving(&mut self) {
        self.leaving = true;
        self.ack_owed = true;
        self.outgoing.iter_mut().for_each(OutLink::close);
    }

    /// Returns `true` if a parcel may be put on the link to it now.
    pub(crate) fn can_take_parcel(&self) -> bool {
        self.is_active() && self.outgoing.as_ref().is_some_and(|link| link.is_open() && link.has_room())
    }

    /// Returns `true` if it has stated that it sends nothing more, and all that it sent has come.
    pub(crate) fn has_ended(&self) -> bool {
        self.incoming.as_ref().is_some_and(|link| link.is_complete())
    }

    /// Steps that it has passed, by its own words.
    pub(crate) fn steps_passed(&self) -> u64 {
        self.passed.max(self.incoming.as_ref().map_or(0, |link| link.passed()))
    }

    /// The state of the links with it, for a Hello or an Ack, added to `own`, which is the same for all neighbours.
    pub(crate) fn link_state(&self, own: LinkPositions) -> LinkPositions {
        let mut state = own;
        if let Some(link) = &self.incoming {
            link.state_confirmed(&mut state);
        }
        if let Some(link) = &self.outgoing {
            state.base = link.base();
            state.acked = link.acked();
            state.next_seq = link.next_seq();
            state.final_seq = link.final_seq();
        }
        state
    }

    /// Returns `true` if mass has moved, for good, between us and its present life.
    pub(crate) fn has_exchanged_mass(&self) -> bool {
        self.outgoing.as_ref().is_some_and(OutLink::has_applied)
            || self.incoming.as_ref().is_some_and(InLink::has_received)
    }

    /// Returns `true` if it will send no more parcels, and all that it sent have been applied.
    pub(crate) fn is_done_sending(&self) -> bool {
        self.incoming.as_ref().is_none_or(InLink::is_complete)
    }

    /// Returns `true` if everything between us is settled and both links are closed.
    pub(crate) fn is_drained(&self) -> bool {
        self.left
            || self.outgoing.as_ref().is_none_or(|link| !link.is_open() && link.is_settled())
                && self.incoming.as_ref().is_none_or(InLink::is_confirmed_whole)
    }
}

/// The neighbours of a node in its plan.
pub(crate) fn neighbours(config: &NodeConfig) -> BTreeMap<NodeId, Neighbour> {
    let mut peers = BTreeMap::new();
    for &from in config.schedule.all_in_neighbours(config.id) {
        peers.entry(from).or_insert_with(|| Neighbour::new(from)).incoming = Some(InLink::default());
    }
    for &to in config.schedule.all_out_neighbours(config.id) {
        peers.entry(to).or_insert_with(|| Neighbour::new(to)).outgoing = Some(OutLink::new());
    }
    for peer in peers.values_mut() {
        peer.account = Account::of(Flows::planned(&config.schedule, config.id, peer.id));
        peer.is_below = config.schedule.is_below(config.id, peer.id);
    }
    for (number, part) in config.schedule.parts_beside(config.id).iter().enumerate() {
        for id in part {
            peers.entry(*id).and_modify(|peer| peer.part = Part { number: number as u32, nodes: part.len() as u32 });
        }
    }
    peers
}
