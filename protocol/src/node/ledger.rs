//! The mass ledger of a node, written over an earlier one: an auditor that looks after every event allocates nothing.

use std::collections::BTreeMap;

use super::Node;
use crate::ledger::LedgerSummary;
use crate::schedule::NodeId;

impl Node {
    /// The mass ledger: initial and present mass, and the totals of each link.
    pub fn ledger(&self) -> LedgerSummary {
        let mut books = LedgerSummary::default();
        self.ledger_into(&mut books);
        books
    }

    /// Writes the [mass ledger](Self::ledger) over an earlier one, whose memory is used again where the links are the same.
    pub(crate) fn ledger_into(&self, books: &mut LedgerSummary) {
        books.incarnation = self.config.identity.incarnation;
        books.initial = self.brought;
        books.mass = self.mass();
        let incoming = self.peers.values().filter_map(|peer| Some((peer.id, (peer.incoming.as_ref()?, peer))));
        let outgoing = self.peers.values().filter_map(|peer| Some((peer.id, (peer.outgoing.as_ref()?, peer))));
        for ((link, peer), books) in entries(incoming, &mut books.incoming) {
            link.ledger_into(books, peer.incarnation());
        }
        for ((link, peer), books) in entries(outgoing, &mut books.outgoing) {
            link.ledger_into(books, peer.incarnation());
        }
    }
}

/// The links of a node, each with its entry in the books: that of the same link where the books are of the same links.
fn entries<L, B: Default>(
    links: impl Iterator<Item = (NodeId, L)> + Clone,
    books: &mut BTreeMap<NodeId, B>,
) -> impl Iterator<Item = (L, &mut B)> {
    if !books.keys().copied().eq(links.clone().map(|(id, _)| id)) {
        *books = links.clone().map(|(id, _)| (id, B::default())).collect();
    }
    links.map(|(_, link)| link).zip(books.values_mut())
}
