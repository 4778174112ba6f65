//! Double-entry audit of a swarm from the books of the nodes that are left.
//!
//! Founders bring one whole each. Every unit of mass is then either held by a node, in a parcel between two nodes, with
//! a node whose books are not there, in doubt on the way to one, or written off. All of it is added up as integers: the
//! sum is the number of founders or the report names the node or link whose books disagree.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ledger::{InLinkLedger, LedgerSummary, OutLinkLedger};
use crate::mass::UNITS_PER_ONE;
use crate::schedule::NodeId;

/// The places of a swarm's mass, in units of 2^-40.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// The mass that all founders brought.
    pub expected: u128,
    /// Held by the nodes whose books are here.
    pub held: u128,
    /// Sent by one of them to another and not yet applied there.
    pub in_flight: u128,
    /// Sent to a node or a life of a node that is gone, which may or may not have applied it.
    pub in_doubt: u128,
    /// Given up by the senders because the receiver lost its state.
    pub written_off: u128,
    /// Mass that nodes without books, and the earlier lives of restarted ones, held; ascending by node.
    pub absent: Vec<AbsentPeer>,
    /// Books that contradict each other.
    pub disputes: Vec<EdgeDispute>,
}

/// A node whose books are not there, or the earlier lives of one that restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentPeer {
    /// The node.
    pub id: NodeId,
    /// The mass it held by the books of the others: what it brought, plus what it confirmed, less what they applied
    /// from it. Parcels it had sent that were applied nowhere count as held. Negative when it passed on mass it had not
    /// confirmed; that mass is then in doubt or written off. Where two absent nodes are neighbours only their sum is
    /// certain.
    pub held: i128,
    /// The part of `held` that has already arrived at others and waits there for its step.
    pub queued: u128,
}

/// Books that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EdgeDispute {
    /// A node holds something else than it began with, plus what it applied, less what it sent.
    Node {
        /// The node.
        id: NodeId,
        /// The mass it holds.
        holds: i128,
        /// The mass that its own books add up to.
        booked: i128,
    },
    /// A sender's totals do not add up.
    Sender {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The mass it sent, by its own total.
        sent: u128,
        /// The sum of what its books show as acknowledged, outstanding, written off and returned.
        accounted: u128,
    },
    /// Sender and receiver differ on what was applied.
    Link {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The mass that the receiver's books show as applied.
        applied: u128,
        /// The mass that the sender's books show as sent up to there.
        sent: u128,
    },
    /// Books with totals no run could reach; they are left out of the sums.
    Implausible {
        /// The node.
        id: NodeId,
    },
    /// Books of a node that is not in the plan, or that are there twice.
    Unexpected {
        /// The node.
        id: NodeId,
    },
}

/// Adds up the books of any number of the `nodes` nodes of a swarm.
///
/// The books need not be of one instant as long as no mass moved between them: take them from stopped nodes, or from
/// nodes that all drained. Books taken while parcels move show up as disputes on the links concerned.
///
/// ```
/// use mingle_protocol::{LedgerSummary, Mass, NodeId, audit};
/// let founder = LedgerSummary { incarnation: 1, initial: Mass::ONE, mass: Mass::ONE, ..Default::default() };
/// let report = audit(&[(NodeId(0), founder)], 2);
/// assert!(report.is_exact());
/// assert_eq!(report.absent[0].held, i128::from(Mass::ONE.units()));
/// ```
pub fn audit(books: &[(NodeId, LedgerSummary)], nodes: usize) -> AuditReport {
    let mut report = AuditReport { expected: nodes as u128 * u128::from(UNITS_PER_ONE), ..AuditReport::default() };
    let mut present = BTreeMap::new();
    for (id, ledger) in books {
        if !ledger.is_plausible() {
            report.disputes.push(EdgeDispute::Implausible { id: *id });
        } else if id.index() >= nodes || present.insert(*id, ledger).is_some() {
            report.disputes.push(EdgeDispute::Unexpected { id: *id });
        }
    }
    let mut gone = Gone::new(&present, nodes);
    for (&id, ledger) in &present {
        report.held += u128::from(ledger.mass.units());
        report.check_own_books(id, ledger);
        for (&to, link) in &ledger.outgoing {
            let receiver = present.get(&to).copied();
            report.add_outgoing(id, ledger, to, link, receiver);
            gone.confirmed(to, link, receiver);
        }
        for (&from, link) in &ledger.incoming {
            gone.applied(from, link, present.get(&from).copied());
        }
    }
    report.absent = gone.peers.into_iter().map(|(id, peer)| AbsentPeer { id, ..peer }).collect();
    report
}

impl AuditReport {
    /// All mass accounted for; equals `expected` in a sound swarm.
    pub fn total(&self) -> i128 {
        let absent: i128 = self.absent.iter().map(|peer| peer.held).sum();
        signed(self.held + self.in_flight + self.in_doubt + self.written_off) + absent
    }

    /// True if every unit is accounted for and no books contradict each other.
    pub fn is_exact(&self) -> bool {
        self.disputes.is_empty() && self.total() == signed(self.expected)
    }

    /// True if the books are exact and nothing is lost or in doubt: all mass is with the nodes, or between them.
    pub fn is_complete(&self) -> bool {
        self.is_exact() && self.held + self.in_flight == self.expected
    }

    fn check_own_books(&mut self, id: NodeId, ledger: &LedgerSummary) {
        let applied: u128 = ledger.incoming.values().map(InLinkLedger::applied_in_all).sum();
        let sent: u128 =
            ledger.outgoing.values().map(|link| link.sent_total - link.returned.min(link.sent_total)).sum();
        let booked = signed(u128::from(ledger.initial.units()) + applied) - signed(sent);
        let holds = i128::from(ledger.mass.units());
        if holds != booked {
            self.disputes.push(EdgeDispute::Node { id, holds, booked });
        }
    }

    fn add_outgoing(
        &mut self,
        from: NodeId,
        sender: &LedgerSummary,
        to: NodeId,
        link: &OutLinkLedger,
        receiver: Option<&LedgerSummary>,
    ) {
        let outbox = link.outstanding();
        let accounted = link.acked_total + link.acked_by_earlier_lives + outbox + link.written_off + link.returned;
        if accounted != link.sent_total {
            self.disputes.push(EdgeDispute::Sender { from, to, sent: link.sent_total, accounted });
        }
        self.written_off += link.written_off;
        let Some(receiver) = receiver.filter(|receiver| receiver.incarnation == link.receiver_incarnation) else {
            self.in_doubt += outbox;
            return;
        };
        let nothing = InLinkLedger::default();
        let other_end = receiver.incoming.get(&from).unwrap_or(&nothing);
        let other_end = if other_end.sender_incarnation == sender.incarnation { other_end } else { &nothing };
        let under_way = link.under_way_to(other_end);
        self.in_flight += under_way;
        let sent = link.acked_total + outbox - under_way;
        if sent != other_end.applied_total {
            self.disputes.push(EdgeDispute::Link { from, to, applied: other_end.applied_total, sent });
        }
    }
}

/// The accounts of lives whose own books are not there.
struct Gone {
    peers: BTreeMap<NodeId, AbsentPeer>,
}

impl Gone {
    fn new(present: &BTreeMap<NodeId, &LedgerSummary>, nodes: usize) -> Self {
        let founder_is_gone = |id: &NodeId| present.get(id).is_none_or(|ledger| ledger.initial.is_zero());
        let brought = i128::from(UNITS_PER_ONE);
        let account = |id: NodeId| (id, AbsentPeer { id, held: brought, queued: 0 });
        Self { peers: (0..nodes as u32).map(NodeId).filter(founder_is_gone).map(account).collect() }
    }

    /// Adds the mass that gone lives of `to` had confirmed on a link.
    fn confirmed(&mut self, to: NodeId, link: &OutLinkLedger, receiver: Option<&LedgerSummary>) {
        let is_current = receiver.is_some_and(|receiver| receiver.incarnation == link.receiver_incarnation);
        let by_present_life = if is_current { link.acked_total } else { 0 };
        let total = link.acked_by_earlier_lives + link.acked_total - by_present_life;
        self.add(to, signed(total), 0);
    }

    /// Subtracts the mass that was applied from gone lives of `from`.
    fn applied(&mut self, from: NodeId, link: &InLinkLedger, sender: Option<&LedgerSummary>) {
        let is_current = sender.is_some_and(|sender| sender.incarnation == link.sender_incarnation);
        let (from_present_life, queued) = if is_current { (link.applied_total, 0) } else { (0, link.queued_mass()) };
        self.add(from, -signed(link.applied_in_all() - from_present_life), queued);
    }

    fn add(&mut self, id: NodeId, held: i128, queued: u128) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.held += held;
            peer.queued += queued;
        }
    }
}

fn signed(units: u128) -> i128 {
    i128::try_from(units).unwrap_or(i128::MAX)
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |units: i128| units as f64 / UNITS_PER_ONE as f64;
        writeln!(f, "held       {:>14.6}", whole(signed(self.held)))?;
        writeln!(f, "in flight  {:>14.6}", whole(signed(self.in_flight)))?;
        for peer in &self.absent {
            writeln!(f, "node {:<5} {:>14.6}  absent", peer.id, whole(peer.held))?;
        }
        writeln!(f, "in doubt   {:>14.6}", whole(signed(self.in_doubt)))?;
        writeln!(f, "written off{:>14.6}", whole(signed(self.written_off)))?;
        for dispute in &self.disputes {
            writeln!(f, "{dispute}")?;
        }
        let difference = self.total() - signed(self.expected);
        let founders = self.expected / u128::from(UNITS_PER_ONE);
        if self.is_exact() {
            write!(f, "total      {:>14.6}  exactly the {founders} the founders brought", whole(self.total()))
        } else {
            write!(
                f,
                "total      {:>14.6}  {difference:+} units off the {founders} the founders brought",
                whole(self.total())
            )
        }
    }
}

impl fmt::Display for EdgeDispute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { id, holds, booked } => write!(f, "node {id} holds {holds} units, but its books say {booked}"),
            Self::Sender { from, to, sent, accounted } => {
                write!(f, "link {from} -> {to}: node {from} sent {sent} units, but accounts for {accounted}")
            }
            Self::Link { from, to, applied, sent } => {
                write!(f, "link {from} -> {to}: node {to} applied {applied} units, but node {from} sent it {sent}")
            }
            Self::Implausible { id } => {
                write!(f, "the books of node {id} show more mass than any run could move")
            }
            Self::Unexpected { id } => write!(f, "node {id} is not in the plan, or its books are there twice"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mass::Mass;

    fn quarter() -> u128 {
        u128::from(UNITS_PER_ONE / 4)
    }

    fn mass(units: u128) -> Mass {
        Mass::from_units(u64::try_from(units).unwrap())
    }

    /// Node 0 sent node 1 three quarters in three parcels: one confirmed, one applied but not confirmed, one under way.
    fn two_nodes() -> [(NodeId, LedgerSummary); 2] {
        let out = OutLinkLedger {
            receiver_incarnation: 1,
            base: 0,
            next_seq: 4,
            acked_seq: 1,
            outbox: vec![(2, mass(quarter())), (3, mass(quarter()))],
            sent_total: 3 * quarter(),
            acked_total: quarter(),
            ..OutLinkLedger::default()
        };
        let incoming = InLinkLedger {
            sender_incarnation: 1,
            received_seq: 3,
            applied_seq: 2,
            queued: vec![(3, mass(quarter()))],
            applied_total: 2 * quarter(),
            ..InLinkLedger::default()
        };
        let founder = LedgerSummary { incarnation: 1, initial: Mass::ONE, ..LedgerSummary::default() };
        let sender = LedgerSummary { mass: mass(quarter()), outgoing: [(NodeId(1), out)].into(), ..founder.clone() };
        let receiver = LedgerSummary { mass: mass(6 * quarter()), incoming: [(NodeId(0), incoming)].into(), ..founder };
        [(NodeId(0), sender), (NodeId(1), receiver)]
    }

    #[test]
    fn sound_books_account_for_every_unit() {
        let report = audit(&two_nodes(), 2);
        assert!(report.is_complete(), "{report}");
        assert_eq!((report.held, report.in_flight), (7 * quarter(), quarter()));
        assert!(report.to_string().ends_with("exactly the 2 the founders brought"));
    }

    #[test]
    fn the_books_of_one_neighbour_tell_what_the_other_held() {
        let [sender, receiver] = two_nodes();
        // The receiver is gone: it had confirmed one parcel, and two are in doubt.
        let report = audit(&[sender], 2);
        assert!(report.is_exact(), "{report}");
        assert_eq!(report.absent, [AbsentPeer { id: NodeId(1), held: signed(5 * quarter()), queued: 0 }]);
        assert_eq!(report.in_doubt, 2 * quarter());
        // The sender is gone: what it held includes the parcel that waits at the receiver.
        let report = audit(&[receiver], 2);
        assert!(report.is_exact(), "{report}");
        let held = signed(2 * quarter());
        assert_eq!(report.absent, [AbsentPeer { id: NodeId(0), held, queued: quarter() }]);
    }

    #[test]
    fn every_forged_figure_is_found_and_placed() {
        let (from, to) = (NodeId(0), NodeId(1));
        type Books = [(NodeId, LedgerSummary); 2];
        let forged = |forge: &dyn Fn(&mut Books)| {
            let mut books = two_nodes();
            forge(&mut books);
            let report = audit(&books, 2);
            assert!(!report.is_exact());
            report.disputes
        };
        let disputes = forged(&|books| books[1].1.mass = mass(6 * quarter() + 1));
        let (holds, booked) = (signed(6 * quarter() + 1), signed(6 * quarter()));
        assert_eq!(disputes, [EdgeDispute::Node { id: to, holds, booked }]);
        let disputes = forged(&|books| {
            let link = books[1].1.incoming.get_mut(&from).unwrap();
            link.applied_total += 5;
            books[1].1.mass = mass(6 * quarter() + 5);
        });
        let (applied, sent) = (2 * quarter() + 5, 2 * quarter());
        assert_eq!(disputes, [EdgeDispute::Link { from, to, applied, sent }]);
        let disputes = forged(&|books| {
            let link = books[0].1.outgoing.get_mut(&to).unwrap();
            link.written_off = 1;
        });
        let (sent, accounted) = (3 * quarter(), 3 * quarter() + 1);
        assert_eq!(disputes, [EdgeDispute::Sender { from, to, sent, accounted }]);
        let disputes = forged(&|books| books[1].0 = NodeId(7));
        assert_eq!(disputes, [EdgeDispute::Unexpected { id: NodeId(7) }]);
        let disputes = forged(&|books| books[0].1.outgoing.get_mut(&to).unwrap().sent_total = u128::MAX);
        assert_eq!(disputes, [EdgeDispute::Implausible { id: from }]);
    }

    #[test]
    fn books_survive_json() {
        for (_, ledger) in two_nodes() {
            let text = serde_json::to_string(&ledger).unwrap();
            assert_eq!(serde_json::from_str::<LedgerSummary>(&text).unwrap(), ledger);
        }
    }
}
