//! The auditor of a simulation: mass is neither made nor lost, in any event, by any node.
//!
//! It trusts no total a node keeps. It sees every parcel when it is put on the wire for the first time, and reads from
//! a node only its weight and up to which number it has applied each link. Everything a node gained must be parcels
//! the auditor saw leave another node, each once; everything it lost must be parcels the auditor saw it send.

use std::collections::BTreeMap;

use super::error::SimError;
use crate::ledger::{InLinkLedger, LedgerSummary};
use crate::mass::Mass;
use crate::message::ParcelHeader;
use crate::schedule::NodeId;
use crate::time::Time;

/// A link between two lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lives {
    from: NodeId,
    sender_incarnation: u64,
    to: NodeId,
    receiver_incarnation: u64,
}

/// What the auditor knows.
#[derive(Debug)]
pub(super) struct Conservation {
    /// What all founders brought.
    founded: u128,
    /// Every parcel ever seen, until it is applied or taken back.
    under_way: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    /// Those of them that the receiver refused.
    refused: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    last_seen: BTreeMap<Lives, u64>,
    books: BTreeMap<NodeId, LedgerSummary>,
    held: u128,
    lost_with_nodes: u128,
    outstanding: u128,
    checks: u64,
}

impl Conservation {
    pub(super) fn new() -> Self {
        Self {
            founded: 0,
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            last_seen: BTreeMap::new(),
            books: BTreeMap::new(),
            held: 0,
            lost_with_nodes: 0,
            outstanding: 0,
            checks: 0,
        }
    }

    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    /// Mass that died with crashed nodes, in units, not counting parcels to or from them.
    pub(super) fn lost_with_nodes(&self) -> u128 {
        self.lost_with_nodes
    }

    /// Mass in parcels not applied by the life they are meant for, in units; those to dead lives never will be.
    pub(super) fn outstanding(&self) -> u128 {
        self.outstanding
    }

    pub(super) fn born(&mut self, id: NodeId, books: LedgerSummary) {
        self.founded += units(books.initial);
        self.held += units(books.mass);
        self.books.insert(id, books);
    }

    pub(super) fn died(&mut self, id: NodeId) {
        if let Some(books) = self.books.remove(&id) {
            self.held -= units(books.mass);
            self.lost_with_nodes += units(books.mass);
        }
    }

    /// Checks what one event did to `id`, which put `sent` on the wire in it.
    pub(super) fn check(
        &mut self,
        now: Time,
        id: NodeId,
        after: &LedgerSummary,
        sent: &[(NodeId, ParcelHeader)],
    ) -> Result<(), SimError> {
        self.checks += 1;
        let before = self.books.insert(id, after.clone()).unwrap_or_default();
        let gained = self.gains(now, id, &before, after)? + self.returns(id, after);
        let spent: u128 = sent.iter().map(|(to, header)| self.see(id, *to, header)).sum();
        let expected = units(before.mass) + gained;
        if units(after.mass) + spent != expected {
            let (now_held, should_hold) = (units(after.mass), expected as i128 - spent as i128);
            return Err(SimError::NodeMass { now, id, holds: now_held, should_hold });
        }
        self.held = self.held + units(after.mass) - units(before.mass);
        let total = self.held + self.outstanding + self.lost_with_nodes;
        if total == self.founded { Ok(()) } else { Err(SimError::TotalMass { now, total, expected: self.founded }) }
    }

    /// Books a parcel the first time it is seen; returns what it moved.
    fn see(&mut self, from: NodeId, to: NodeId, header: &ParcelHeader) -> u128 {
        let lives = Lives {
            from,
            sender_incarnation: header.sender_incarnation,
            to,
            receiver_incarnation: header.receiver_incarnation,
        };
        let last = self.last_seen.entry(lives).or_default();
        if header.seq <= *last {
            return 0;
        }
        *last = header.seq;
        self.under_way.entry(lives).or_default().insert(header.seq, header.mass);
        self.outstanding += units(header.mass);
        units(header.mass)
    }

    fn gains(
        &mut self,
        now: Time,
        id: NodeId,
        before: &LedgerSummary,
        after: &LedgerSummary,
    ) -> Result<u128, SimError> {
        let mut gained = 0;
        for (&from, link) in &after.incoming {
            let nothing = InLinkLedger::default();
            let earlier = before.incoming.get(&from).unwrap_or(&nothing);
            let lives = |sender_incarnation| Lives {
                from,
                sender_incarnation,
                to: id,
                receiver_incarnation: after.incarnation,
            };
            if link.sender_incarnation != earlier.sender_incarnation {
                for (seq, _) in &earlier.queued {
                    gained += self.take(now, lives(earlier.sender_incarnation), *seq)?;
                }
            }
            let lives = lives(link.sender_incarnation);
            for seq in self.arrived(lives, link.applied_seq) {
                if link.rejected.contains(link.applied_seq, seq) {
                    let parcel = self.under_way.get_mut(&lives).and_then(|parcels| parcels.remove(&seq));
                    self.refused.entry(lives).or_default().extend(parcel.map(|mass| (seq, mass)));
                } else {
                    gained += self.take(now, lives, seq)?;
                }
            }
        }
        Ok(gained)
    }

    /// What a sender takes back: what was refused up to where it is settled, and what a receiver that left never took.
    fn returns(&mut self, id: NodeId, after: &LedgerSummary) -> u128 {
        let mut returned = 0;
        for (&to, link) in &after.outgoing {
            let lives = Lives {
                from: id,
                sender_incarnation: after.incarnation,
                to,
                receiver_incarnation: link.receiver_incarnation,
            };
            if let Some(refused) = self.refused.get_mut(&lives) {
                let later = refused.split_off(&(link.acked_seq + 1));
                returned += std::mem::replace(refused, later).into_values().map(units).sum::<u128>();
            }
            // A link that is over goes back to where it was settled: what was beyond came back.
            if let Some(parcels) = self.under_way.get_mut(&lives) {
                returned += parcels.split_off(&link.next_seq).into_values().map(units).sum::<u128>();
            }
        }
        self.outstanding -= returned;
        returned
    }

    fn arrived(&self, lives: Lives, applied: u64) -> Vec<u64> {
        let parcels = self.under_way.get(&lives);
        parcels.map(|parcels| parcels.range(..=applied).map(|(seq, _)| *seq).collect()).unwrap_or_default()
    }

    /// Moves a parcel from the wire to its receiver.
    fn take(&mut self, now: Time, lives: Lives, seq: u64) -> Result<u128, SimError> {
        let parcel = self.under_way.get_mut(&lives).and_then(|parcels| parcels.remove(&seq));
        let mass = units(parcel.ok_or(SimError::UnknownParcel { now, from: lives.from, to: lives.to, seq })?);
        self.outstanding -= mass;
        Ok(mass)
    }
}

fn units(mass: Mass) -> u128 {
    u128::from(mass.units())
}
