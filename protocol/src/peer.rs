//! The state that a node keeps of one neighbour.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::config::NodeConfig;
use crate::effect::{Mismatch, Suspension};
use crate::evidence::Evidence;
use crate::link::{InLink, OutLink};
use crate::message::{Identity, LinkState};
use crate::node::{Account, Belief, Flows, InDistances, Patience, Renewal, ToldProcesses};
use crate::schedule::NodeId;
use crate::statement::{Signature, SignedIdentity};
use crate::time::Time;

/// Greetings that a neighbour gets in a heartbeat at most.
const MOST_GREETINGS: u32 = 16;

/// A neighbour: who it is, whether it can be relied on, and the links to and from it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) id: NodeId,
    /// Who its last Hello said it is; `None` before the first one that fits.
    pub(crate) identity: Option<Identity>,
    /// Its signature under that; none while only its certificate has named this life.
    pub(crate) signature: Signature,
    pub(crate) link_up: bool,
    pub(crate) suspended: Option<Suspension>,
    pub(crate) heard_at: Time,
    /// The last message that said which process sent it. Parcels do not.
    pub(crate) vouched_at: Time,
    /// It has spoken on the link that is up now; before that came the last words of a process that may be gone.
    pub(crate) heard_since_up: bool,
    pub(crate) sent_at: Time,
    /// It has shown that it knows our present identity, so it accepts our parcels.
    pub(crate) mutual: bool,
    /// A Hello of ours has named its present identity.
    pub(crate) greeted: bool,
    /// Steps it claims to be through with.
    pub(crate) passed: u64,
    /// How much of that is believed.
    pub(crate) belief: Belief,
    /// Whether, and from when on, it is waited for.
    pub(crate) patience: Patience,
    /// Greetings and parcels in vain on the streams that there are.
    pub(crate) renewal: Renewal,
    /// This process has dealt with it.
    pub(crate) was_met: bool,
    /// It has stopped taking part.
    pub(crate) leaving: bool,
    /// Some life of it has.
    pub(crate) has_stopped: bool,
    /// It has left the generation for good, by its certificate.
    pub(crate) left: bool,
    /// Its process has ended before it came, by what the host saw.
    pub(crate) is_gone: bool,
    /// A digest of the certificates that it says it has.
    pub(crate) known_left: Option<u64>,
    /// When it was last sent ours.
    pub(crate) told_left_at: Option<Time>,
    /// What it was told of the processes of others.
    pub(crate) told_processes: ToldProcesses,
    /// Parcels of it that were refused; a new life begins with one less than suspends it at most.
    pub(crate) refusals: u32,
    /// What it has said of its ends of the links, in its present life to this node's.
    pub(crate) evidence: Evidence,
    /// When the present count of greetings began, and how many there were.
    pub(crate) greetings: (Time, u32),
    pub(crate) ack_owed: bool,
    pub(crate) refused: Option<Mismatch>,
    pub(crate) outgoing: Option<OutLink>,
    pub(crate) incoming: Option<InLink>,
    /// When its latest parcels came.
    pub(crate) arrivals: Arrivals,
    /// How far the ratios were that came from it.
    pub(crate) distances: InDistances,
    /// What it got and gave.
    pub(crate) account: Account,
}

impl Peer {
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
            patience: Patience::default(),
            renewal: Renewal::default(),
            was_met: false,
            leaving: false,
            has_stopped: false,
            left: false,
            is_gone: false,
            known_left: None,
            told_left_at: None,
            told_processes: ToldProcesses::default(),
            refusals: 0,
            evidence: Evidence::default(),
            greetings: (Time::default(), 0),
            ack_owed: false,
            refused: None,
            outgoing: None,
            incoming: None,
            arrivals: Arrivals::default(),
            distances: InDistances::default(),
            account: Account::default(),
        }
    }

    /// Whether it is known, reachable and keeping up.
    pub(crate) fn is_active(&self) -> bool {
        self.link_up && self.mutual && self.suspended.is_none() && !self.left
    }

    /// Counts a greeting, of which there are only so many in a heartbeat: a neighbour that answers each of them with
    /// another contradiction would otherwise keep both busy for ever.
    pub(crate) fn may_be_greeted(&mut self, now: Time, heartbeat: Duration) -> bool {
        let (since, count) = self.greetings;
        self.greetings = if now < since + heartbeat { (since, count + 1) } else { (now, 1) };
        self.greetings.1 <= MOST_GREETINGS
    }

    /// Who it is, as it said so itself.
    pub(crate) fn signed_identity(&self) -> Option<SignedIdentity> {
        Some(SignedIdentity { identity: self.identity?, signature: self.signature })
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.identity.map_or(0, |identity| identity.incarnation)
    }

    /// Whether it has contradicted this node's books, and shown nothing of what this node said.
    pub(crate) fn contradicts(&self) -> bool {
        self.suspended == Some(Suspension::Contradicts)
    }

    /// It stops taking part: nothing more is sent to it.
    pub(crate) fn on_leaving(&mut self) {
        (self.leaving, self.ack_owed) = (true, true);
        self.outgoing.iter_mut().for_each(OutLink::close);
    }

    /// Whether a parcel may be put on the link to it now.
    pub(crate) fn can_take_parcel(&self) -> bool {
        self.is_active() && self.outgoing.as_ref().is_some_and(|link| link.is_open() && link.has_room())
    }

    /// Where the links with it stand, for a Hello or an Ack, added to what the node says to everyone.
    pub(crate) fn link_state(&self, own: LinkState) -> LinkState {
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

    /// Whether mass has moved, for good, between us and its present life.
    pub(crate) fn has_exchanged_mass(&self) -> bool {
        self.outgoing.as_ref().is_some_and(OutLink::has_applied)
            || self.incoming.as_ref().is_some_and(InLink::has_received)
    }

    /// Whether it has told us all it ever will, and knows what became of its parcels.
    pub(crate) fn is_done_sending(&self) -> bool {
        self.incoming.as_ref().is_none_or(InLink::is_complete)
    }

    /// Whether everything between us is settled and both links are closed.
    pub(crate) fn is_drained(&self) -> bool {
        self.left
            || self.outgoing.as_ref().is_none_or(|link| !link.is_open() && link.is_settled())
                && self.incoming.as_ref().is_none_or(InLink::is_confirmed_whole)
    }
}

/// The neighbours of a node in its plan.
pub(crate) fn neighbours(config: &NodeConfig) -> BTreeMap<NodeId, Peer> {
    let mut peers = BTreeMap::new();
    for &from in config.schedule.all_in_neighbours(config.id) {
        peers.entry(from).or_insert_with(|| Peer::new(from)).incoming = Some(InLink::default());
    }
    for &to in config.schedule.all_out_neighbours(config.id) {
        peers.entry(to).or_insert_with(|| Peer::new(to)).outgoing = Some(OutLink::new());
    }
    for peer in peers.values_mut() {
        peer.account = Account::of(Flows::planned(&config.schedule, config.id, peer.id));
    }
    peers
}
