//! Read-only views of a simulated swarm.

use std::sync::Arc;

use super::{Lie, SimulatedSwarm};
use crate::audit::{AuditReport, audit};
use crate::config::Robust;
use crate::effect::NodeEvent;
use crate::ledger::LedgerSummary;
use crate::message::Generation;
use crate::node::Node;
use crate::schedule::{NodeId, Schedule};
use crate::sim::misconduct::Misconduct;
use crate::time::Time;

impl SimulatedSwarm {
    /// All nodes of the plan.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.config.schedule.nodes() as u32).map(NodeId)
    }

    /// The mass that the living nodes hold, in units.
    pub fn held(&self) -> u128 {
        self.nodes.values().map(|node| u128::from(node.mass().units())).sum()
    }

    /// The mass that all nodes hold by their disks, the mass that is owed, and the mass that was brought into the
    /// generation.
    pub fn on_disk(&self) -> (u128, u128, u128) {
        let (held, owed) = self.durable_ledger.held_and_owed();
        (held, owed, self.durable_ledger.total_and_brought().1)
    }

    /// Returns `true` if the newest generation that is on disk is that of the newest plan.
    pub(in crate::sim) fn has_begun_newest_plan(&self) -> bool {
        self.durable_ledger.generation() == Some(self.plans.newest().generation)
    }

    /// Returns `true` if the sum of weights is promised: no disk has lost a record of the newest generation that is on
    /// disk, and no member lies in it.
    pub fn is_exact(&self) -> bool {
        self.durable_ledger.generation().is_none_or(|generation| self.adds_up(generation))
    }

    /// Returns `true` if a node found out, in the newest generation that is on disk, that it had been rolled back.
    pub fn was_rolled_back(&self) -> bool {
        self.durable_ledger.generation().is_some_and(|generation| self.rolled_back_in.contains(&generation.counter))
    }

    /// The sound neighbour that a sound node reports, by this event, as one that keeps weight.
    pub(in crate::sim) fn falsely_suspected(&self, id: NodeId, event: &NodeEvent) -> Option<NodeId> {
        let NodeEvent::NeighbourKeeps { peer, .. } = event else {
            return None;
        };
        let is_sound = |id: &NodeId| !self.hostile.contains_key(id);
        Some(*peer).filter(|peer| is_sound(peer) && is_sound(&id))
    }

    /// Starts of nodes that could not rely on their disks, and began without them.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// The number of record slots on a node's disk.
    pub fn slots(&self, id: NodeId) -> usize {
        self.disks.get(&id).map_or(0, crate::sim::disk::Disk::slots)
    }

    /// Returns `true` if every numerator that a node gives up is taken by another: not where parcels are clipped.
    pub(in crate::sim) fn conserves_numerators(&self) -> bool {
        self.config.robust == Robust::Off
    }

    /// Two sums over the newest generation: of the numerators of all living nodes with changes that wait, and of the
    /// models that nodes began it with and all that was learnt since. They are equal up to rounding where every change
    /// was taken whole, no node lost its records and nothing is under way. A node that has left is in the second sum.
    pub fn numerators(&self) -> (Vec<f64>, Vec<f64>) {
        let dimension = self.config.initial.first().map_or(0, Vec::len);
        let of = |node: &Node| node.config().generation;
        let newest = |a: Generation, b: Generation| if b.replaces(&a) { b } else { a };
        let generation = self.nodes.values().map(of).reduce(newest);
        let mut numerators = vec![0.0; dimension];
        for node in self.nodes.values().filter(|node| Some(of(node)) == generation) {
            for vector in [Some(node.numerator()), node.held_back(), node.ready_change()].into_iter().flatten() {
                numerators.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
            }
        }
        (numerators, self.learning.total(generation, dimension))
    }

    /// The number of processes that were killed.
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A living node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The first plan.
    pub(in crate::sim) fn first_plan(&self) -> &Schedule {
        &self.config.schedule
    }

    /// The largest norm to which members have pulled the models of others.
    pub(in crate::sim) fn largest_pull(&self) -> f64 {
        let pulls = self.hostile.values().any(|lie| *lie == Lie::Within(Misconduct::PullNorm));
        self.config.largest_norm.filter(|_| pulls).unwrap_or(0.0)
    }

    /// Returns `true` if a node has nothing left to do.
    pub(in crate::sim) fn has_drained(&self, id: NodeId) -> bool {
        self.drained.get(&id).copied().unwrap_or(false)
    }

    /// A living node's ratio; empty for a dead one.
    pub fn ratio(&mut self, id: NodeId) -> Arc<[f32]> {
        self.nodes.get_mut(&id).map(Node::ratio).unwrap_or_default()
    }

    /// The books of all living nodes.
    pub fn books(&self) -> Vec<(NodeId, LedgerSummary)> {
        self.nodes.iter().map(|(id, node)| (*id, node.ledger())).collect()
    }

    /// The audit of those books.
    pub fn audit(&self) -> AuditReport {
        audit(&self.books(), self.config.schedule.nodes())
    }

    /// All events that nodes reported.
    pub fn events(&self) -> &[(Time, NodeId, NodeEvent)] {
        &self.events
    }

    /// All events that nodes reported since the last call.
    pub(in crate::sim) fn take_events(&mut self) -> Vec<(Time, NodeId, NodeEvent)> {
        std::mem::take(&mut self.events)
    }

    /// Checks of the mass by what nodes gave and took: after every event, and for every record handed in.
    pub fn wire_checks(&self) -> u64 {
        self.conservation.checks()
    }

    /// Sums over all disks together.
    pub fn disk_checks(&self) -> u64 {
        self.disk_checks
    }

    /// Mass that crashed nodes held when they died, in units; the survivors have to find it out from their books.
    pub fn lost_with_nodes(&self) -> u128 {
        self.conservation.lost_with_nodes()
    }

    /// Mass in parcels not applied by the life they are meant for, in units.
    pub fn outstanding(&self) -> u128 {
        self.conservation.outstanding()
    }

    /// Bytes of all messages sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// A hash of all events; equal for equal runs.
    pub fn digest(&self) -> [u8; 32] {
        self.trace.digest()
    }

    /// The number of events.
    pub fn trace_length(&self) -> u64 {
        self.trace.events()
    }
}
