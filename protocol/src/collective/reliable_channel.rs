//! A reliable channel: exactly once and in order over links that lose, repeat and reorder.
//!
//! Messages of a directed link are numbered 1, 2, 3, ... and kept until the receiver has acknowledged them,
//! cumulatively. The receiver hands on message k + 1 only after k, so that the collective behind it computes the same,
//! to the bit, as over a link without faults. Early messages are kept up to a limit (selective repeat); the others come
//! again.
//!
//! Acknowledgements are piggybacked on the next message back. One is sent alone only when many are due, when nothing
//! else was sent for a while, or once the collective is complete and nothing else will come.
//!
//! There is no clock here: after a reconnect, and every so often while [`is_owed`](ReliableChannel::is_owed), the host
//! calls [`resend`](ReliableChannel::resend).

use std::collections::{BTreeMap, VecDeque};

use super::{Collective, CollectiveFault};
use crate::schedule::NodeId;

/// Messages beyond the next one due that are kept until the gap before them is closed; more are dropped and come again.
const MOST_EARLY: u64 = 64;
/// Messages received after which an acknowledgement is sent alone, if nothing was sent back before.
const MOST_OWED: u64 = 16;

/// A message in its envelope, or an acknowledgement alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<M> {
    /// All of the receiver's messages up to this number have arrived at the sender.
    pub acknowledged: u64,
    /// The message and its number on this link, from 1.
    pub message: Option<(u64, M)>,
}

/// A collective whose messages are numbered, acknowledged and sent again.
#[derive(Clone, Debug)]
pub struct ReliableChannel<C: Collective> {
    collective: C,
    links: BTreeMap<NodeId, ReliableLink<C::Message>>,
    ready: VecDeque<(NodeId, u64)>,
    /// Nodes to which an acknowledgement is due, alone if nothing goes there before.
    due: VecDeque<NodeId>,
    /// Set when every message is to be acknowledged at once.
    is_hasty: bool,
}

/// Both directions between this node and one other.
#[derive(Clone, Debug)]
struct ReliableLink<M> {
    /// Messages not known to have arrived: numbers `acknowledged + 1 ..`.
    outbox: VecDeque<M>,
    /// The number up to which our messages have arrived there.
    acknowledged: u64,
    /// The number up to which their messages have arrived here.
    received: u64,
    /// Their messages beyond the next one due.
    early: BTreeMap<u64, M>,
    /// Messages that arrived, again or for the first time, since the last acknowledgement.
    owed: u64,
}

impl<M> ReliableLink<M> {
    fn new() -> Self {
        Self { outbox: VecDeque::new(), acknowledged: 0, received: 0, early: BTreeMap::new(), owed: 0 }
    }
}

impl<C: Collective> ReliableChannel<C> {
    /// Serves `collective`.
    pub fn new(collective: C) -> Self {
        Self { collective, links: BTreeMap::new(), ready: VecDeque::new(), due: VecDeque::new(), is_hasty: false }
    }

    /// The collective that it serves.
    pub fn collective(&self) -> &C {
        &self.collective
    }

    /// The collective that it serves, to be given its next input.
    pub fn collective_mut(&mut self) -> &mut C {
        &mut self.collective
    }

    /// The next frame to send, if any: call it until there is none, at the start and after everything else.
    pub fn poll(&mut self) -> Option<(NodeId, Frame<C::Message>)> {
        while let Some((to, message)) = self.collective.poll() {
            let link = self.links.entry(to).or_insert_with(ReliableLink::new);
            link.outbox.push_back(message);
            let number = link.acknowledged + link.outbox.len() as u64;
            self.ready.push_back((to, number));
        }
        while let Some((to, number)) = self.ready.pop_front() {
            if let Some(frame) = self.links.get_mut(&to).and_then(|link| link.frame(number)) {
                return Some((to, frame));
            }
        }
        while let Some(to) = self.due.pop_front() {
            if let Some(link) = self.links.get_mut(&to).filter(|link| link.owed > 0) {
                link.owed = 0;
                return Some((to, Frame { acknowledged: link.received, message: None }));
            }
        }
        None
    }

    /// Takes a frame that arrived, in any order and any number of times.
    ///
    /// # Errors
    /// [`CollectiveFault`] when no sound neighbour would send it.
    pub fn handle(&mut self, from: NodeId, frame: Frame<C::Message>) -> Result<(), CollectiveFault> {
        let link = self.links.entry(from).or_insert_with(ReliableLink::new);
        link.acknowledge(frame.acknowledged)?;
        let Some((number, message)) = frame.message else {
            return Ok(());
        };
        link.owed += 1;
        if link.owed == if self.is_hasty { 1 } else { MOST_OWED } {
            self.due.push_back(from);
        }
        if number <= link.received || number > link.received + MOST_EARLY {
            return Ok(());
        }
        if number == link.received + 1 {
            link.received += 1;
            self.collective.handle(from, message)?;
        } else {
            link.early.insert(number, message);
        }
        while let Some(link) = self.links.get_mut(&from)
            && let Some(message) = link.early.remove(&(link.received + 1))
        {
            link.received += 1;
            self.collective.handle(from, message)?;
        }
        Ok(())
    }

    /// Acknowledges every message at once from now on: nothing else will be sent.
    pub fn acknowledge_at_once(&mut self) {
        self.is_hasty = true;
        self.owe_all();
    }

    /// Sends everything again that is not known to have arrived, and acknowledges what has.
    pub fn resend(&mut self) {
        self.ready.clear();
        self.owe_all();
        for (to, link) in &self.links {
            let numbers = (1..=link.outbox.len() as u64).map(|place| link.acknowledged + place);
            self.ready.extend(numbers.map(|number| (*to, number)));
        }
    }

    fn owe_all(&mut self) {
        self.due.extend(self.links.iter().filter(|(_, link)| link.owed > 0).map(|(to, _)| *to));
    }

    /// Returns `true` if a message that was sent is not known to have arrived.
    pub fn is_owed(&self) -> bool {
        self.links.values().any(|link| !link.outbox.is_empty())
    }

    /// Messages to `to` that are not known to have arrived, with their numbers.
    #[cfg(test)]
    pub(super) fn outstanding(&self, to: NodeId) -> impl Iterator<Item = (u64, &C::Message)> {
        self.links.get(&to).into_iter().flat_map(|link| (link.acknowledged + 1..).zip(&link.outbox))
    }

    /// The number up to which messages of `from` have been handed on.
    #[cfg(test)]
    pub(super) fn received(&self, from: NodeId) -> u64 {
        self.links.get(&from).map_or(0, |link| link.received)
    }
}

impl<M: Clone> ReliableLink<M> {
    /// The frame of message `number`, unless it has arrived by now.
    fn frame(&mut self, number: u64) -> Option<Frame<M>> {
        let place = number.checked_sub(self.acknowledged + 1)?;
        let message = self.outbox.get(usize::try_from(place).ok()?)?.clone();
        self.owed = 0;
        Some(Frame { acknowledged: self.received, message: Some((number, message)) })
    }

    fn acknowledge(&mut self, number: u64) -> Result<(), CollectiveFault> {
        if number > self.acknowledged + self.outbox.len() as u64 {
            return Err(CollectiveFault::ImpossibleAck);
        }
        while self.acknowledged < number {
            self.outbox.pop_front();
            self.acknowledged += 1;
        }
        Ok(())
    }
}
