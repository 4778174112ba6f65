//! The balance of one node: it holds what it held before, plus what it received, minus what it sent.

use std::collections::BTreeMap;

use super::parcels::{Lives, Move, ParcelId, Where};
use super::{Conservation, units};
use crate::ledger::{InLinkLedger, LedgerSummary, OutLinkLedger};
use crate::mass::Mass;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::time::Time;

impl Conservation {
    /// Compares a state of a node with the last one that was seen.
    pub(super) fn observe(
        &mut self,
        now: Time,
        id: NodeId,
        ledger: usize,
        after: LedgerSummary,
        given: &[(ParcelId, Mass)],
    ) -> Result<(), SimError> {
        let account = self.accounts.entry(id).or_default();
        if account.ledger != ledger {
            self.enter(id, ledger, &after);
        }
        let before = self.accounts.get_mut(&id).map(|account| std::mem::take(&mut account.seen)).unwrap_or_default();
        let is_void = self.is_void(ledger);
        let compared = if is_void { Ok(()) } else { self.compare(now, id, ledger, (&before, &after), given) };
        if let Some(account) = self.accounts.get_mut(&id) {
            account.seen = after;
            account.spare = before;
        }
        compared
    }

    /// Checks that a node holds what it held before, with the mass it gained and without the mass it gave; and all
    /// nodes together what they brought.
    fn compare(
        &mut self,
        now: Time,
        id: NodeId,
        ledger: usize,
        (before, after): (&LedgerSummary, &LedgerSummary),
        given: &[(ParcelId, Mass)],
    ) -> Result<(), SimError> {
        self.checks += 1;
        let gained = self.gains(now, id, ledger, before, after)? + self.returns(id, ledger, before, after);
        let mut spent = 0;
        for &(parcel, mass) in given {
            spent += units(mass);
            self.last_given.insert(parcel.lives, parcel.seq);
            self.put(Where::UnderWay, parcel, mass);
            self.note(id, Move::Gave(parcel));
        }
        let should_hold = units(before.mass) + gained - spent;
        if units(after.mass) != should_hold {
            return Err(SimError::NodeMass { now, id, holds: after.mass.units().into(), should_hold });
        }
        let sums = &mut self.sums[ledger];
        sums.held += units(after.mass) - units(before.mass);
        let total = sums.held + sums.outstanding + sums.lost_with_nodes;
        let expected = sums.founded;
        if total == expected {
            return Ok(());
        }
        Err(SimError::TotalMass { now, total: total.unsigned_abs(), expected: expected.unsigned_abs() })
    }

    /// Moves a node to another ledger, with the mass that each node brings. The mass it held leaves the old ledger.
    fn enter(&mut self, id: NodeId, ledger: usize, after: &LedgerSummary) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let from = account.ledger;
        let left = account.seen.mass;
        let brought = after.initial;
        account.ledger = ledger;
        account.seen =
            LedgerSummary { incarnation: after.incarnation, initial: brought, mass: brought, ..after.clone() };
        account.seen.incoming.clear();
        self.sums[from].held -= units(left);
        self.sums[from].lost_with_nodes += units(left);
        self.sums[ledger].founded += units(brought);
        self.sums[ledger].held += units(brought);
        self.note(id, Move::Entered { from, left, brought });
    }

    fn gains(
        &mut self,
        now: Time,
        id: NodeId,
        ledger: usize,
        before: &LedgerSummary,
        after: &LedgerSummary,
    ) -> Result<i128, SimError> {
        let mut gained = 0;
        for (&from, link) in &after.incoming {
            let nothing = InLinkLedger::default();
            let earlier = before.incoming.get(&from).unwrap_or(&nothing);
            if (link.sender_incarnation, link.applied_seq) == (earlier.sender_incarnation, earlier.applied_seq) {
                continue;
            }
            let lives = |sender_incarnation| Lives {
                ledger,
                from,
                sender_incarnation,
                to: id,
                receiver_incarnation: after.incarnation,
            };
            if link.sender_incarnation != earlier.sender_incarnation {
                for &(seq, _) in &earlier.queued {
                    gained += self.apply(now, ParcelId { lives: lives(earlier.sender_incarnation), seq })?;
                }
            }
            let lives = lives(link.sender_incarnation);
            for seq in self.arrived(lives, link.applied_seq) {
                let parcel = ParcelId { lives, seq };
                if !link.rejected.contains(link.applied_seq, seq) {
                    gained += self.apply(now, parcel)?;
                } else if let Some(mass) = self.take(Where::UnderWay, parcel) {
                    self.put(Where::Refused, parcel, mass);
                    self.note(id, Move::Refused(parcel, mass));
                }
            }
        }
        Ok(gained)
    }

    /// The mass that a sender takes back: parcels refused up to where the link is settled, and those that a receiver
    /// which left never took.
    fn returns(&mut self, id: NodeId, ledger: usize, before: &LedgerSummary, after: &LedgerSummary) -> i128 {
        let mut returned = 0;
        for (&to, link) in &after.outgoing {
            let stands = |link: &OutLinkLedger| (link.receiver_incarnation, link.acked_seq, link.next_seq);
            if before.outgoing.get(&to).is_some_and(|earlier| stands(earlier) == stands(link)) {
                continue;
            }
            let lives = Lives {
                ledger,
                from: id,
                sender_incarnation: after.incarnation,
                to,
                receiver_incarnation: link.receiver_incarnation,
            };
            let numbers = |parcels: Option<&BTreeMap<u64, Mass>>, is_back: &dyn Fn(u64) -> bool| {
                let numbers = parcels.into_iter().flat_map(|parcels| parcels.keys().copied());
                numbers.filter(|seq| is_back(*seq)).collect::<Vec<u64>>()
            };
            let refused = numbers(self.refused.get(&lives), &|seq| seq <= link.acked_seq);
            // A link that is over goes back to where it was settled: the parcels beyond came back.
            let beyond = numbers(self.under_way.get(&lives), &|seq| seq >= link.next_seq);
            let refused = refused.into_iter().map(|seq| (Where::Refused, seq));
            for (place, seq) in refused.chain(beyond.into_iter().map(|seq| (Where::UnderWay, seq))) {
                let parcel = ParcelId { lives, seq };
                if let Some(mass) = self.take(place, parcel) {
                    returned += units(mass);
                    self.note(id, Move::TookBack(parcel, mass, place));
                }
            }
        }
        returned
    }
}
