//! Counters of rejected inputs by reason.

use std::collections::BTreeMap;

use super::Node;
use crate::effect::{InputFault, NodeEvent};
use crate::schedule::NodeId;

/// One counter per [`InputFault`] that occurred. Counters saturate.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(BTreeMap<InputFault, u64>);

impl Refusals {
    fn count(&mut self, fault: InputFault) {
        let counter = self.0.entry(fault).or_insert(0);
        *counter = counter.saturating_add(1);
    }
}

impl Node {
    /// Numbers of inputs that this process rejected, by reason, ascending; reasons that did not occur are left out.
    pub fn refusals(&self) -> impl Iterator<Item = (InputFault, u64)> {
        self.refusals.0.iter().map(|(fault, count)| (*fault, *count))
    }

    /// Counts an input that no sound neighbour would send, and reports it.
    pub(super) fn ignore(&mut self, peer: NodeId, fault: InputFault) {
        self.note_refusal(fault);
        self.report(NodeEvent::Ignored { peer, fault });
    }

    /// Counts an input that sound neighbours may send as well.
    pub(super) fn note_refusal(&mut self, fault: InputFault) {
        self.refusals.count(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_full_stays_full() {
        let mut refusals = Refusals::default();
        refusals.0.insert(InputFault::WindowExceeded, u64::MAX - 1);
        for _ in 0..3 {
            refusals.count(InputFault::WindowExceeded);
        }
        assert_eq!(refusals.0[&InputFault::WindowExceeded], u64::MAX);
    }
}
