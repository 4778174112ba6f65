//! Generations: plans that replace each other while the swarm runs.
//!
//! Every plan has its own generation, which begins a new ledger: every member keeps its ratio and takes weight 1. So
//! links change, members join and are removed, and mass lost with a disk is replaced.
//!
//! Every message names its sender's generation. A node that receives a message of a newer one asks its host to fetch
//! the plan; a message of an older one is answered with the node's own.

use super::departure::Departures;
use super::peer::neighbours;
use super::{Node, Phase};
use crate::codec::extent_of;
use crate::effect::{InputFault, NodeEvent};
use crate::injected_bug::InjectedBug;
use crate::input::NewGeneration;
use crate::mass::Mass;
use crate::message::{Ack, Generation, Incarnation, LinkPositions, Message};
use crate::round_clock::RoundClock;
use crate::schedule::NodeId;
use crate::time::Time;

impl Generation {
    /// Returns `true` if this generation replaces `other`. Planners that do not know of each other can make two of the
    /// same number: the larger hash wins. The first plan of a swarm (number 0) replaces none.
    pub fn replaces(&self, other: &Self) -> bool {
        self.counter > other.counter
            || (self.counter == other.counter && self.counter > 0 && self.plan_hash > other.plan_hash)
    }
}

/// Rounds behind which a member begins a new generation with the ratio of another.
pub const STALEST_ROUNDS: u64 = 50;

/// A generation whose plan was requested from the host.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    generation: Generation,
    at: Time,
}

impl Node {
    /// Handles a message of another generation. Returns `Some` unless it is to be refused like any foreign message.
    pub(super) fn on_other_generation(&mut self, from: NodeId, theirs: Generation) -> Option<()> {
        let ours = self.config.generation;
        if theirs.replaces(&ours) {
            self.note_refusal(InputFault::NewerGeneration);
            self.ask_for_plan(from, theirs);
            return Some(());
        }
        if ours.replaces(&theirs) {
            if self.has(InjectedBug::LeavesOldGenerationsAlone) {
                return Some(());
            }
            // The sender may have been away, and may no longer be a member: it is notified in any case.
            self.note_refusal(InputFault::OlderGeneration);
            let identity = self.config.identity;
            let seen = Incarnation::default();
            let link = LinkPositions::default();
            let notice = Ack { generation: ours, identity, seen, link };
            self.send(from, Message::Ack(notice));
            return Some(());
        }
        None
    }

    /// Requests a plan from the host; the same one at most once per heartbeat, in case the host could not get it.
    fn ask_for_plan(&mut self, from: NodeId, generation: Generation) {
        let is_recent = |asked: &Asked| asked.generation == generation && self.now < asked.at + self.config.heartbeat;
        if self.asked.as_ref().is_some_and(is_recent) {
            return;
        }
        self.asked = Some(Asked { generation, at: self.now });
        self.report(NodeEvent::NewerPlan { peer: from, generation });
    }

    /// Returns `true` if the node's ratio is good enough to begin a generation with. It is not if the node has no mass
    /// to form it from, or is more than [`STALEST_ROUNDS`] behind a neighbour: then the host fetches one from an
    /// up-to-date member.
    pub fn is_fresh(&self) -> bool {
        // One neighbour's claim is enough to request a ratio, which is harmless if the claim is false.
        let ahead = self.peers.values().map(|peer| peer.passed).max().unwrap_or(0);
        let behind = ahead.saturating_sub(self.passed()) / self.config.schedule.round_length();
        self.push_sum.has_working_mass() && behind <= STALEST_ROUNDS
    }

    pub(super) fn on_enter(&mut self, new: NewGeneration) {
        let NewGeneration { generation, schedule, id, keys, rounds, ratio } = new;
        let fits = id.index() < schedule.nodes()
            && rounds.checked_mul(schedule.round_length()).is_some()
            && ratio.as_ref().is_none_or(|ratio| ratio.len() == self.dimension());
        if !generation.replaces(&self.config.generation) || !fits {
            self.ignore(self.config.id, InputFault::UnusablePlan);
            return;
        }
        // Parcels that have arrived are part of the node's ratio.
        self.absorb_until(u64::MAX);
        if ratio.is_none() && !self.is_fresh() {
            self.report(NodeEvent::RatioWanted { generation });
            return;
        }
        // A donor may lie. With a ratio beyond the bound all others would refuse this node's parcels: its own is better.
        let ratio = ratio.filter(|ratio| self.config.largest_norm.is_none_or(|bound| extent_of(ratio).norm <= bound));
        self.carry_training_over(ratio.is_none());
        let ratio = ratio.unwrap_or_else(|| self.ratio_within_bound());
        self.push_sum.begin_anew(ratio, Mass::ONE);
        self.brought = Mass::ONE;
        // Lives are counted within a generation. A node may lose its records of this one and begin it again from older
        // ones. With a higher number it would pass for a life that knows that its weight is gone.
        self.config.identity.incarnation = 1;
        self.config.generation = generation;
        self.config.schedule = schedule;
        self.config.id = id;
        self.config.keys = keys;
        self.config.rounds = rounds;
        self.peers = neighbours(&self.config);
        self.credit = super::Credit::default();
        self.weight_floor = super::WeightFloor::default();
        self.departures = Departures::default();
        self.restate_process();
        self.step = 0;
        self.split_done = false;
        self.resumed = false;
        self.has_skipped_steps = false;
        self.last_step = rounds * self.config.schedule.round_length();
        self.clock = RoundClock::new(self.config.deadline_floor);
        self.tally = super::RoundTally::default();
        self.others_pace = super::OthersPace::default();
        self.send_gate = super::SendGate::new(self.config.policy);
        self.mass_watch = super::MassWatch::default();
        self.phase = Phase::Gathering { give_up_at: Some(self.patience_from_now()) };
        self.report(NodeEvent::Entered { generation });
        self.reserve();
        self.commit_anew();
    }
}
