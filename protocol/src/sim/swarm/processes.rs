//! The processes of nodes: their start, from a record or without, and their end.

use std::sync::Arc;

use super::SimulatedSwarm;
use super::disks::slot_bytes;
use crate::config::{Durability, NodeConfig};
use crate::effect::RecordRoom;
use crate::injected_bug::Injected;
use crate::input::Input;
use crate::message::Incarnation;
use crate::node::Node;
use crate::record::Recovered;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::sim::keys::SimulatedKeys;
use crate::sim::trace::Entry;

impl SimulatedSwarm {
    /// Starts a process: from its disk, or with the ratio of a donor, or as the founder it was.
    pub(super) fn make(&mut self, id: NodeId, donated: Option<Vec<f32>>) -> Result<(), SimError> {
        let process = self.processes.entry(id).or_insert(0);
        *process += 1;
        let process = *process;
        let config = &self.config;
        let initial = config.initial.get(id.index()).cloned().unwrap_or_default();
        let initial = donated.unwrap_or(initial);
        let injected = Injected::new(config.injected_in.get(&id).copied().or(config.injected_bug));
        let attack = self.attack_of(id);
        let mut recovered = self.recover(id, injected)?;
        if let (Some(attack), Some(recovered)) = (attack, &mut recovered) {
            attack.make_up_weight(&mut recovered.record);
        }
        let config = &self.config;
        let newest = self.plans.newest();
        let recorded = recovered.as_ref().and_then(|found| self.plans.of(found.record.books.generation));
        let plan = recorded.unwrap_or(newest);
        let mut node_config = NodeConfig::new(id, Arc::clone(&plan.schedule), initial, config.rounds);
        let incarnation = if config.durability == Durability::Off { process } else { 1 };
        if let Some(attack) = attack {
            node_config.schedule = attack.plan(id, &plan.schedule);
        }
        node_config.identity = Incarnation { incarnation, boot_nonce: process };
        node_config.generation = plan.generation;
        node_config.keys = Arc::new(SimulatedKeys::of(id));
        node_config.codec = config.codec.into();
        node_config.largest_norm = config.largest_norm.filter(|_| attack.is_none());
        node_config.robust = config.robust;
        node_config.durability = config.durability;
        node_config.injected = injected;
        node_config.clip = config.clip.filter(|_| attack.is_none());
        node_config.time_box = config.time_box;
        node_config.keeps_up = config.keeps_up;
        node_config.overlap = config.overlap;
        node_config.policy = config.policy;
        node_config.retransmit_after = config.retransmit_after;
        node_config.heartbeat = config.heartbeat;
        node_config.drain_deadline = config.drain_deadline;
        if config.durability == Durability::On {
            // As in production, where the host makes room for the links of the plan before it starts a node.
            let disk = self.disks.entry(id).or_default();
            let room = RecordRoom::of(&plan.schedule, id);
            // Hosts of small models and of large ones lie side by side.
            disk.makes_slots_as_needed = !id.index().is_multiple_of(2);
            disk.make_room(room.slots.max(disk.wanted_slots()), slot_bytes(node_config.initial.len(), room));
            node_config.record_slots = Some(disk.slots());
        }
        let node = self.begin(node_config, recovered)?;
        self.nodes.insert(id, node);
        self.drained.insert(id, false);
        self.input(id, Input::Start, Entry::Faulted, &[])?;
        if self.leavers.contains(&id) { self.input(id, Input::Leave, Entry::Faulted, &[]) } else { Ok(()) }
    }

    /// Makes the node of a process, from what was on its disk, and opens its accounts.
    fn begin(&mut self, node_config: NodeConfig, recovered: Option<Recovered>) -> Result<Node, SimError> {
        let id = node_config.id;
        let generation = node_config.generation;
        match recovered {
            Some(Recovered { record, payloads, .. }) => {
                let books = record.books.clone();
                let node = Node::resume(node_config, record, &payloads)?;
                self.conservation.resumed(self.now, id, &books, node.ledger())?;
                self.learning.resumed(id, Some(books.number));
                Ok(node)
            }
            None => {
                let node = Node::new(node_config)?;
                self.conservation.born(id, generation, node.ledger());
                self.learning.resumed(id, None);
                self.learning.began(id, generation, node.numerator(), None);
                Ok(node)
            }
        }
    }

    pub(super) fn crash(&mut self, id: NodeId) -> Result<(), SimError> {
        let Some(node) = self.nodes.remove(&id) else {
            return Ok(());
        };
        self.crashes += 1;
        self.paused_until.remove(&id);
        self.set_alarm(id);
        match self.config.durability {
            Durability::Off => self.conservation.died(id),
            Durability::On => self.end_writes(id)?,
        }
        self.drained.remove(&id);
        for peer in node.neighbours() {
            self.network.reconnect(id, peer);
            if self.network.is_stream() {
                self.input(peer, Input::LinkDown { peer: id }, Entry::Faulted, &[])?;
            }
        }
        Ok(())
    }
}
