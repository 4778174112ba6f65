//! Plans that change under way.
//!
//! - A **rewiring** says anew who sends to whom. Column sums are the business of the sender alone, so every node may take
//!   it up whenever it hears of it, and mass is exact throughout.
//! - A **generation** begins the ledger anew: every member keeps its ratio and takes weight 1. That is how members join
//!   and are removed, and how mass that died with a disk is made up for.
//!
//! Both are infectious. What is newer is part of every message, and whoever hears of it asks its host to fetch it.

use std::sync::Arc;

use super::departure::Departures;
use super::{Node, Phase, neighbours};
use crate::effect::{Event, Fault};
use crate::input::{NewGeneration, Rewiring};
use crate::link::{InLink, OutLink};
use crate::mass::Mass;
use crate::message::{Ack, Generation, Identity, LinkState, Message};
use crate::peer::Peer;
use crate::planted::Planted;
use crate::push_sum::PushSum;
use crate::round_clock::RoundClock;
use crate::schedule::NodeId;
use crate::time::Time;

impl Generation {
    /// Whether this one replaces the other. Planners that did not know of each other can make two of the same number:
    /// the larger hash wins. The first plan of a swarm is nobody's successor.
    pub fn replaces(&self, other: &Self) -> bool {
        self.counter > other.counter
            || (self.counter == other.counter && self.counter > 0 && self.plan_hash > other.plan_hash)
    }
}

/// A member that is further behind than this many rounds begins a new generation with the ratio of another.
pub const STALEST_ROUNDS: u64 = 50;

/// A plan that the host was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    generation: Generation,
    version: u64,
    at: Time,
}

impl Node {
    /// Serves a message of another generation; `Some` unless it is to be refused as any foreign message.
    pub(super) fn on_other_generation(&mut self, from: NodeId, theirs: Generation) -> Option<()> {
        let ours = self.config.generation;
        if theirs.replaces(&ours) {
            self.note_refusal(Fault::NewerGeneration);
            self.ask_for_plan(from, theirs, 0);
            return Some(());
        }
        if ours.replaces(&theirs) {
            if self.has(Planted::LeavesOldGenerationsAlone) {
                return Some(());
            }
            // It may have been away, and not even be a member any more: it is told all the same.
            self.note_refusal(Fault::OlderGeneration);
            let identity = self.config.identity;
            let (seen, link) = (Identity::default(), LinkState::default());
            let notice = Ack { generation: ours, plan_version: self.plan_version, identity, seen, link };
            self.send(from, Message::Ack(notice));
            return Some(());
        }
        None
    }

    /// Makes a neighbour of a member that is none by this node's plan, but may be by an older or newer one of the same
    /// generation: what it sent has to arrive, and one of the two has to hear of the newer plan.
    pub(super) fn admit_by_other_plan(&mut self, from: NodeId, message: &Message) -> bool {
        let theirs = match message {
            Message::Hello(hello) => hello.plan_version,
            Message::Ack(ack) => ack.plan_version,
            Message::Parcel(_) | Message::Left(_) | Message::Collective(_) => 0,
        };
        let is_member = from.index() < self.config.schedule.nodes() && from != self.config.id;
        let admits = is_member && self.plan_version.max(theirs) > 0;
        if admits {
            let peer = self.peers.entry(from).or_insert_with(|| Peer::new(from));
            (peer.incoming, peer.link_up, peer.heard_at) = (Some(InLink::default()), true, self.now);
            self.mark_departed();
        }
        admits
    }

    pub(super) fn on_plan_version(&mut self, from: NodeId, theirs: u64) {
        if theirs > self.plan_version {
            self.ask_for_plan(from, self.config.generation, theirs);
        }
    }

    /// Asks the host for a plan; for the same one not more than once in a heartbeat, in case that it could not get it.
    fn ask_for_plan(&mut self, from: NodeId, generation: Generation, version: u64) {
        let is_asked_for = |asked: &Asked| (asked.generation, asked.version) == (generation, version);
        if self.asked.as_ref().is_some_and(|asked| is_asked_for(asked) && self.now < asked.at + self.config.heartbeat) {
            return;
        }
        self.asked = Some(Asked { generation, version, at: self.now });
        self.report(Event::NewerPlan { peer: from, generation, version });
    }

    /// Whether the node's ratio is good enough to begin a generation with. It is not once the node has no mass to form it
    /// from, or is more than [`STALEST_ROUNDS`] behind a neighbour: then the host fetches one from an up-to-date member.
    pub fn is_fresh(&self) -> bool {
        // Word of one neighbour is enough to ask for a ratio: that does no harm if it lies.
        let ahead = self.peers.values().map(|peer| peer.passed).max().unwrap_or(0);
        let behind = ahead.saturating_sub(self.passed()) / self.config.schedule.round_length();
        self.push_sum.has_working_mass() && behind <= STALEST_ROUNDS
    }

    pub(super) fn on_enter(&mut self, new: NewGeneration) {
        let NewGeneration { generation, schedule, id, rounds, ratio } = new;
        let fits = id.index() < schedule.nodes()
            && rounds.checked_mul(schedule.round_length()).is_some()
            && ratio.as_ref().is_none_or(|ratio| ratio.len() == self.dimension());
        if !generation.replaces(&self.config.generation) || !fits {
            self.ignore(self.config.id, Fault::UnusablePlan);
            return;
        }
        // What has arrived is part of what this node believes.
        self.absorb_until(u64::MAX);
        if ratio.is_none() && !self.is_fresh() {
            self.report(Event::RatioWanted { generation });
            return;
        }
        let ratio = ratio.unwrap_or_else(|| self.push_sum.ratio().to_vec());
        self.push_sum = PushSum::new(ratio, Mass::ONE);
        self.brought = Mass::ONE;
        // Lives are counted within a generation. With a higher number a node that lost its records of this one, and begins
        // it again from older ones, would pass for a life that knows that its weight is gone.
        self.config.identity.incarnation = 1;
        (self.config.generation, self.config.schedule, self.config.id) = (generation, schedule, id);
        self.config.rounds = rounds;
        self.peers = neighbours(&self.config);
        self.departures = Departures::default();
        (self.step, self.split_done, self.resumed, self.plan_version) = (0, false, false, 0);
        self.last_step = rounds * self.config.schedule.round_length();
        self.clock = RoundClock::new(self.config.deadline_floor);
        self.tally = super::RoundTally::default();
        self.forget_training();
        self.appetite = super::Appetite::default();
        self.mass_watch = super::MassWatch::default();
        self.phase = Phase::Gathering { give_up_at: Some(self.patience_from_now()) };
        self.report(Event::Entered { generation });
        self.reserve();
        self.commit_anew();
    }

    /// New links on which nothing will ever be sent: this node has stopped, or its neighbour leaves.
    fn close_needless_links(&mut self) {
        let has_stopped = matches!(self.phase, Phase::Draining { .. } | Phase::Drained) && !self.quitting;
        let is_needless = |peer: &&mut Peer| has_stopped || peer.leaving;
        for peer in self.peers.values_mut().filter(is_needless) {
            peer.outgoing.iter_mut().for_each(OutLink::close);
            peer.ack_owed = true;
        }
    }

    pub(super) fn on_rewire(&mut self, rewiring: Rewiring) {
        let Rewiring { version, schedule } = rewiring;
        let is_usable = version > self.plan_version
            && schedule.nodes() == self.config.schedule.nodes()
            && self.config.rounds.checked_mul(schedule.round_length()).is_some();
        if !is_usable {
            self.ignore(self.config.id, Fault::UnusablePlan);
            return;
        }
        self.last_step = self.config.rounds * schedule.round_length();
        self.config.schedule = schedule;
        self.plan_version = version;
        let schedule = Arc::clone(&self.config.schedule);
        // Links that were used stay, though the plan no longer has them: they are only not used any more.
        for peer in self.peers.values_mut() {
            peer.incoming.take_if(|link| link.is_unused());
            peer.outgoing.take_if(|link| link.is_unused());
        }
        for &from in schedule.all_in_neighbours(self.config.id) {
            self.peers.entry(from).or_insert_with(|| Peer::new(from)).incoming.get_or_insert_with(InLink::default);
        }
        for &to in schedule.all_out_neighbours(self.config.id) {
            self.peers.entry(to).or_insert_with(|| Peer::new(to)).outgoing.get_or_insert_with(OutLink::new);
        }
        self.peers.retain(|_, peer| peer.incoming.is_some() || peer.outgoing.is_some());
        self.mark_departed();
        self.close_needless_links();
        self.appetite.excuse();
        self.reserve();
        // Parcels that came before their link did are sent again after a greeting.
        let peers: Vec<NodeId> = self.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.send_hello(peer));
        self.report(Event::Rewired { version });
    }
}
