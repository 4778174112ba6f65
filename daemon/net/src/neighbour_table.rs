//! The streams to each neighbour, and the link state derived from them: a link is up while every stream that the plan
//! wants between the two peers is open.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;

use mingle_protocol::{Message, NodeId};

use crate::edge::{EdgeHandle, LinkDirection};
use crate::traffic::Traffic;

/// The two directions of a link.
const BOTH: [LinkDirection; 2] = [LinkDirection::Out, LinkDirection::In];

/// The effect of an opened or ended stream on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// The link state is unchanged.
    None,
    /// All wanted streams to the neighbour are open.
    Up,
    /// The link was up, and one of its streams has ended.
    Down,
}

/// The streams to all neighbours.
pub struct NeighbourTable {
    links: BTreeMap<NodeId, NeighbourLink>,
}

#[derive(Default)]
struct NeighbourLink {
    wants: BTreeSet<LinkDirection>,
    streams: BTreeMap<LinkDirection, EdgeHandle>,
    /// Set when the neighbour announced its last parcel: the end of its stream is then not a loss.
    sends_no_more: bool,
    up: bool,
    /// Traffic of streams that have ended.
    past: Traffic,
}

impl NeighbourLink {
    /// Adds the counts of a stream that has ended.
    fn count(&mut self, ended: &EdgeHandle) {
        self.past += ended.traffic();
    }

    /// Removes the streams in these directions and returns them.
    fn take(&mut self, directions: &[LinkDirection]) -> Vec<EdgeHandle> {
        let taken: Vec<_> = directions.iter().filter_map(|direction| self.streams.remove(direction)).collect();
        taken.iter().for_each(|handle| self.count(handle));
        taken
    }

    fn traffic(&self) -> Traffic {
        self.streams.values().map(EdgeHandle::traffic).fold(self.past, Traffic::add)
    }
}

impl NeighbourTable {
    /// A table without streams, for a plan with these out- and in-neighbours.
    pub fn new(out: impl Iterator<Item = NodeId>, inward: impl Iterator<Item = NodeId>) -> Self {
        let mut links: BTreeMap<NodeId, NeighbourLink> = BTreeMap::new();
        for (node, direction) in
            out.map(|node| (node, LinkDirection::Out)).chain(inward.map(|node| (node, LinkDirection::In)))
        {
            links.entry(node).or_default().wants.insert(direction);
        }
        Self { links }
    }

    /// The neighbours whose link is up, by node.
    pub fn up(&self) -> Vec<NodeId> {
        self.links.iter().filter(|(_, link)| link.up).map(|(&node, _)| node).collect()
    }

    /// Adds an open stream, which replaces an older one in the same direction.
    pub fn attach(&mut self, node: NodeId, direction: LinkDirection, handle: EdgeHandle) -> LinkChange {
        let Some(link) = self.links.get_mut(&node) else { return LinkChange::None };
        if direction == LinkDirection::In {
            link.wants.insert(direction);
            link.sends_no_more = false;
        }
        if let Some(old) = link.streams.insert(direction, handle) {
            link.count(&old);
        }
        let complete = link.wants.iter().all(|direction| link.streams.contains_key(direction));
        let change = if complete { LinkChange::Up } else { LinkChange::None };
        link.up |= complete;
        change
    }

    /// Removes a stream that has ended, `in_order` or broken. The end of a stream that was already replaced changes
    /// nothing.
    pub fn detach(&mut self, node: NodeId, direction: LinkDirection, stream: u64, in_order: bool) -> LinkChange {
        let Some(link) = self.links.get_mut(&node) else { return LinkChange::None };
        if link.streams.get(&direction).is_none_or(|handle| handle.stream != stream) {
            return LinkChange::None;
        }
        if let Some(handle) = link.streams.remove(&direction) {
            link.count(&handle);
        }
        if direction == LinkDirection::In && in_order && link.sends_no_more {
            // A regular end: the messages that this peer still sends go over the other stream.
            link.wants.remove(&direction);
            return LinkChange::None;
        }
        self.take_down(node)
    }

    /// Drops the streams to a neighbour that does not keep up; they are opened anew.
    pub fn drop_streams(&mut self, node: NodeId) -> LinkChange {
        let Some(link) = self.links.get_mut(&node) else { return LinkChange::None };
        link.take(&BOTH);
        self.take_down(node)
    }

    /// Remembers that `node` has announced its last parcel.
    pub fn note_last_parcel(&mut self, node: NodeId) {
        if let Some(link) = self.links.get_mut(&node) {
            link.sends_no_more = true;
        }
    }

    /// Queues a message: parcels on the stream that this peer opened, other messages on any open stream. Returns
    /// `false` if the neighbour does not keep up.
    pub fn send(&self, node: NodeId, message: Message) -> bool {
        let Some(link) = self.links.get(&node) else { return true };
        let order = match message {
            Message::Parcel(_) => [LinkDirection::Out, LinkDirection::Out],
            _ => [LinkDirection::In, LinkDirection::Out],
        };
        let stream = order.iter().find_map(|direction| link.streams.get(direction));
        // Without a stream the node is notified that the link is down, and resends everything once it is up.
        stream.is_none_or(|handle| handle.send(message))
    }

    /// Returns `true` if the neighbour's queue takes another message, or if there is no stream: the message would be
    /// lost anyway.
    pub fn has_room(&self, node: NodeId) -> bool {
        let Some(link) = self.links.get(&node) else { return true };
        let order = [LinkDirection::In, LinkDirection::Out];
        order.iter().find_map(|direction| link.streams.get(direction)).is_none_or(EdgeHandle::has_room)
    }

    /// Takes the streams on which this peer sends parcels, to finish them.
    pub fn take_outgoing(&mut self) -> Vec<EdgeHandle> {
        let take = |link: &mut NeighbourLink| {
            link.wants.remove(&LinkDirection::Out);
            link.take(&[LinkDirection::Out])
        };
        self.links.values_mut().flat_map(take).collect()
    }

    /// Takes every stream, to finish them.
    pub fn take_all(&mut self) -> Vec<EdgeHandle> {
        self.links.values_mut().flat_map(|link| link.take(&BOTH)).collect()
    }

    /// Returns `true` if a neighbour still holds open a stream on which it sends parcels.
    pub fn any_incoming(&self) -> bool {
        self.links.values().any(|link| link.streams.contains_key(&LinkDirection::In))
    }

    /// Returns `true` if any stream is open.
    pub fn any_open(&self) -> bool {
        self.links.values().any(|link| !link.streams.is_empty())
    }

    /// Traffic over all streams so far.
    pub fn traffic(&self) -> Traffic {
        self.links.values().map(NeighbourLink::traffic).fold(Traffic::default(), Traffic::add)
    }

    /// Returns `true` if payloads to `node` go by multicast where others need them too, or come so where this peer sends
    /// it none. `None` if none of its streams is one on which payloads may travel elsewhere.
    pub fn hears(&self, node: NodeId) -> Option<bool> {
        let streams = &self.links.get(&node)?.streams;
        let stream = streams.get(&LinkDirection::Out).or_else(|| streams.get(&LinkDirection::In))?;
        stream.takes_payloads_elsewhere().then(|| stream.is_heard())
    }

    /// Traffic over the streams with `node` so far.
    pub fn traffic_with(&self, node: NodeId) -> Traffic {
        self.links.get(&node).map(NeighbourLink::traffic).unwrap_or_default()
    }

    fn take_down(&mut self, node: NodeId) -> LinkChange {
        match self.links.get_mut(&node) {
            Some(link) if link.up => {
                link.up = false;
                LinkChange::Down
            }
            _ => LinkChange::None,
        }
    }
}
