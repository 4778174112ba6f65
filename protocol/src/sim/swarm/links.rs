//! The links between nodes: how they come up, and how a stream that cannot be trusted is replaced.

use std::collections::BTreeSet;

use super::SimulatedSwarm;
use crate::input::Input;
use crate::node::Node;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::sim::trace::Entry;

impl SimulatedSwarm {
    /// Opens the links of a node: those of its own plan, and those of others whose plan has one to it.
    pub(super) fn connect(&mut self, id: NodeId) -> Result<(), SimError> {
        let mut peers: BTreeSet<NodeId> =
            self.nodes.get(&id).map(|node| node.neighbours().collect()).unwrap_or_default();
        let counts_on_it = |node: &Node| node.neighbours().any(|neighbour| neighbour == id);
        peers.extend(self.nodes.iter().filter(|(_, node)| counts_on_it(node)).map(|(other, _)| *other));
        for peer in peers {
            self.link_up(id, peer)?;
        }
        Ok(())
    }

    /// Closes a stream that cannot be trusted any more, and opens another one.
    pub(super) fn break_stream(&mut self, a: NodeId, b: NodeId) -> Result<(), SimError> {
        if !self.network.is_stream() || self.network.is_cut(a, b) {
            return Ok(());
        }
        self.network.reconnect(a, b);
        self.input(a, Input::LinkDown { peer: b }, Entry::Faulted, &[])?;
        self.input(b, Input::LinkDown { peer: a }, Entry::Faulted, &[])?;
        self.link_up(a, b)
    }

    pub(super) fn link_up(&mut self, a: NodeId, b: NodeId) -> Result<(), SimError> {
        if self.network.is_cut(a, b) || !self.nodes.contains_key(&a) || !self.nodes.contains_key(&b) {
            return Ok(());
        }
        self.input(a, Input::LinkUp { peer: b }, Entry::Faulted, &[])?;
        self.input(b, Input::LinkUp { peer: a }, Entry::Faulted, &[])
    }
}
