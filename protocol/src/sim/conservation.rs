//! The auditor of the wire: mass is neither made nor lost, in any event, by any node.
//!
//! It trusts no total a node keeps. It sees every parcel when it is handed to the disk in a record, or put on the wire
//! where there are no records, and reads from a node only its weight and up to which number it has applied each link.
//! Everything a node gained must be parcels the auditor saw another node give, each once; everything it lost must be
//! parcels the auditor saw it give; and what comes on the wire must be what was on its way to the disk before.
//!
//! A process that dies takes back what it did since the record it starts again from. The auditor therefore keeps what
//! each node did since the record that is known to be on its disk, and undoes it when the node starts from there. It
//! holds one ledger a generation. Where a disk lost a record, or a member lies, the generation is void: nothing is
//! checked, nor counted as checked, until a newer one.

use std::collections::{BTreeMap, VecDeque};

use super::error::SimError;
use crate::ledger::{InLinkLedger, LedgerSummary, OutLinkLedger};
use crate::mass::Mass;
use crate::message::{Generation, ParcelHeader};
use crate::record::Books;
use crate::schedule::NodeId;
use crate::time::Time;

/// A link between two lives, in one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lives {
    /// Which of the generations.
    ledger: usize,
    from: NodeId,
    sender_incarnation: u64,
    to: NodeId,
    receiver_incarnation: u64,
}

/// A parcel by its link and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParcelId {
    lives: Lives,
    seq: u64,
}

/// The sums of one generation, in units. Of a void one they mean nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// What all who entered it brought.
    founded: i128,
    held: i128,
    outstanding: i128,
    lost_with_nodes: i128,
}

/// Something that a node did, and that its next process may know nothing of.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// It gave a parcel away.
    Gave(ParcelId),
    /// It made a parcel part of what it holds.
    Applied(ParcelId, Mass),
    /// It refused a parcel.
    Refused(ParcelId, Mass),
    /// It took a parcel of its own back, which the receiver had refused or not applied.
    TookBack(ParcelId, Mass, Where),
    /// It went over to another ledger; from which one, and what it held there.
    Entered { from: usize, left: Mass, brought: Mass },
}

/// Which parcels the auditor has one among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    UnderWay,
    Refused,
}

/// What a node has done, as far as it can be undone.
#[derive(Debug, Default)]
struct Account {
    ledger: usize,
    /// What it began its first ledger with.
    founded: Mass,
    /// What was seen of the node last.
    seen: LedgerSummary,
    /// Since the oldest of the records below.
    moves: VecDeque<Move>,
    /// How many moves there were before those.
    settled: u64,
    records: VecDeque<HandedIn>,
}

/// A state that the node may start again from.
#[derive(Debug)]
struct HandedIn {
    number: u64,
    /// Moves up to there.
    moves: u64,
    ledger: usize,
    mass: Mass,
}

/// What the auditor knows.
#[derive(Debug)]
pub(super) struct Conservation {
    generations: Vec<Generation>,
    sums: Vec<Sums>,
    /// This generation and all before it are void.
    void: Option<Generation>,
    keeps_records: bool,
    /// Every parcel ever seen, until it is applied or taken back.
    under_way: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    /// Those of them that the receiver refused.
    refused: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    last_given: BTreeMap<Lives, u64>,
    accounts: BTreeMap<NodeId, Account>,
    checks: u64,
}

impl Conservation {
    pub(super) fn new(keeps_records: bool) -> Self {
        Self {
            generations: Vec::new(),
            sums: Vec::new(),
            void: None,
            keeps_records,
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            last_given: BTreeMap::new(),
            accounts: BTreeMap::new(),
            checks: 0,
        }
    }

    /// How often a sum was compared that could have been wrong.
    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    /// Mass that died with crashed nodes, in units, not counting parcels to or from them.
    pub(super) fn lost_with_nodes(&self) -> u128 {
        self.sum_of(|sums| sums.lost_with_nodes)
    }

    /// Mass in parcels not applied by the life they are meant for, in units; those to dead lives never will be.
    pub(super) fn outstanding(&self) -> u128 {
        self.sum_of(|sums| sums.outstanding)
    }

    fn sum_of(&self, what: fn(&Sums) -> i128) -> u128 {
        self.sums.iter().map(what).sum::<i128>().unsigned_abs()
    }

    /// Nothing adds up any more in this generation, or in those before it.
    pub(super) fn give_up(&mut self, generation: Generation) {
        if self.void.is_none_or(|void| generation.replaces(&void)) {
            self.void = Some(generation);
        }
        let is_void: Vec<bool> = (0..self.generations.len()).map(|ledger| self.is_void(ledger)).collect();
        let is_exact = |lives: &Lives| !is_void[lives.ledger];
        self.under_way.retain(|lives, _| is_exact(lives));
        self.refused.retain(|lives, _| is_exact(lives));
        self.last_given.retain(|lives, _| is_exact(lives));
    }

    /// A node begins with no record.
    pub(super) fn born(&mut self, id: NodeId, generation: Generation, books: LedgerSummary) {
        self.forget(id);
        let ledger = self.ledger_of(generation);
        self.sums[ledger].founded += units(books.initial);
        self.sums[ledger].held += units(books.mass);
        self.accounts.insert(id, Account { ledger, founded: books.initial, seen: books, ..Account::default() });
    }

    /// A node is gone with all it held.
    pub(super) fn died(&mut self, id: NodeId) {
        if let Some(account) = self.accounts.remove(&id) {
            self.sums[account.ledger].held -= units(account.seen.mass);
            self.sums[account.ledger].lost_with_nodes += units(account.seen.mass);
        }
    }

    /// A node starts again from a record: whatever it did after that never happened.
    ///
    /// # Errors
    /// [`SimError::NodeMass`] where it holds something else than when it handed in that record.
    pub(super) fn resumed(
        &mut self,
        now: Time,
        id: NodeId,
        books: &Books,
        after: LedgerSummary,
    ) -> Result<(), SimError> {
        let ledger = self.ledger_of(books.generation);
        let account = self.accounts.entry(id).or_default();
        let record = account.records.iter().find(|record| record.number == books.number);
        let Some(moves) = record.map(|record| record.moves) else {
            // An older one than its last. The generation of that is void; if it had none, nobody has seen anything of it.
            self.forget(id);
            let records = VecDeque::from([HandedIn { number: books.number, moves: 0, ledger, mass: after.mass }]);
            self.accounts.insert(id, Account { ledger, seen: after, records, ..Account::default() });
            return Ok(());
        };
        self.undo(id, moves);
        let Some(account) = self.accounts.get_mut(&id) else {
            return Ok(());
        };
        account.records.retain(|record| record.number <= books.number);
        let Some(record) = account.records.back() else {
            return Ok(());
        };
        let (ledger, holds, should_hold) = (record.ledger, after.mass, record.mass);
        (account.ledger, account.seen) = (ledger, after);
        self.sums[ledger].held += units(should_hold);
        if self.is_void(ledger) || holds == should_hold {
            return Ok(());
        }
        Err(SimError::NodeMass { now, id, holds: holds.units().into(), should_hold: units(should_hold) })
    }

    /// A record is on the disk of a node, which never starts from an earlier one again.
    pub(super) fn written(&mut self, id: NodeId, number: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.records.retain(|record| record.number >= number);
        let settled = account.records.front().map_or(account.settled, |record| record.moves);
        account.moves.drain(..(settled - account.settled) as usize);
        account.settled = settled;
    }

    /// Checks what a node did up to a record that it hands in, with the parcels that are in no record before.
    pub(super) fn check_record(&mut self, now: Time, id: NodeId, books: &Books) -> Result<(), SimError> {
        let ledger = self.ledger_of(books.generation);
        let mut given = Vec::new();
        for (&to, link) in &books.outgoing {
            let lives = Lives {
                ledger,
                from: id,
                sender_incarnation: books.incarnation,
                to,
                receiver_incarnation: link.receiver_incarnation,
            };
            let last = self.last_given.get(&lives).copied().unwrap_or(0);
            let new = link.outbox.iter().filter(|parcel| parcel.seq > last);
            given.extend(new.map(|parcel| (ParcelId { lives, seq: parcel.seq }, parcel.mass)));
        }
        self.observe(now, id, ledger, books.ledger(), &given)?;
        if let Some(account) = self.accounts.get_mut(&id) {
            let moves = account.settled + account.moves.len() as u64;
            account.records.push_back(HandedIn { number: books.number, moves, ledger, mass: books.mass });
        }
        Ok(())
    }

    /// Checks what one event did to `id`, which put `sent` on the wire in it.
    pub(super) fn check(
        &mut self,
        now: Time,
        id: NodeId,
        generation: Generation,
        after: LedgerSummary,
        sent: &[(NodeId, ParcelHeader)],
    ) -> Result<(), SimError> {
        let mut given = Vec::new();
        for (to, header) in sent {
            let ledger = self.ledger_of(header.generation);
            if self.is_void(ledger) {
                continue;
            }
            let lives = Lives {
                ledger,
                from: id,
                sender_incarnation: header.sender_incarnation,
                to: *to,
                receiver_incarnation: header.receiver_incarnation,
            };
            let parcel = ParcelId { lives, seq: header.seq };
            let is_new = self.last_given.get(&lives).is_none_or(|last| header.seq > *last);
            let known = self.under_way.get(&lives).and_then(|parcels| parcels.get(&header.seq));
            if (is_new && self.keeps_records) || known.is_some_and(|known| *known != header.mass) {
                return Err(SimError::UnrecordedParcel { now, from: id, to: *to, seq: header.seq });
            }
            // One event may send a parcel twice.
            if is_new && !given.iter().any(|(known, _)| *known == parcel) {
                given.push((parcel, header.mass));
            }
        }
        let ledger = self.ledger_of(generation);
        self.observe(now, id, ledger, after, &given)
    }

    /// Compares a state of a node with the one that was seen of it before.
    fn observe(
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
        }
        compared
    }

    /// Whether a node holds what it held before, with what it gained and without what it gave; and all nodes together what
    /// they brought.
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
        let (total, expected) = (sums.held + sums.outstanding + sums.lost_with_nodes, sums.founded);
        if total == expected {
            return Ok(());
        }
        Err(SimError::TotalMass { now, total: total.unsigned_abs(), expected: expected.unsigned_abs() })
    }

    /// A node goes over to another ledger, with what everyone brings. What it held is part of the old one no more.
    fn enter(&mut self, id: NodeId, ledger: usize, after: &LedgerSummary) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let (from, left, brought) = (account.ledger, account.seen.mass, after.initial);
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

    /// What a sender takes back: what was refused up to where it is settled, and what a receiver that left never took.
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
            // A link that is over goes back to where it was settled: what was beyond came back.
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

    fn arrived(&self, lives: Lives, applied: u64) -> Vec<u64> {
        let parcels = self.under_way.get(&lives);
        parcels.map(|parcels| parcels.range(..=applied).map(|(seq, _)| *seq).collect()).unwrap_or_default()
    }

    /// Moves a parcel from the wire to its receiver.
    fn apply(&mut self, now: Time, parcel: ParcelId) -> Result<i128, SimError> {
        let Lives { from, to, .. } = parcel.lives;
        let mass = self.take(Where::UnderWay, parcel);
        let mass = mass.ok_or(SimError::UnknownParcel { now, from, to, seq: parcel.seq })?;
        self.note(to, Move::Applied(parcel, mass));
        Ok(units(mass))
    }

    fn put(&mut self, place: Where, ParcelId { lives, seq }: ParcelId, mass: Mass) {
        let parcels = if place == Where::UnderWay { &mut self.under_way } else { &mut self.refused };
        parcels.entry(lives).or_default().insert(seq, mass);
        self.sums[lives.ledger].outstanding += units(mass);
    }

    fn take(&mut self, place: Where, ParcelId { lives, seq }: ParcelId) -> Option<Mass> {
        let parcels = if place == Where::UnderWay { &mut self.under_way } else { &mut self.refused };
        let mass = parcels.get_mut(&lives)?.remove(&seq)?;
        self.sums[lives.ledger].outstanding -= units(mass);
        Some(mass)
    }

    /// Keeps a move as long as it may have to be undone.
    fn note(&mut self, id: NodeId, what: Move) {
        if let Some(account) = self.accounts.get_mut(&id).filter(|_| self.keeps_records) {
            account.moves.push_back(what);
        }
    }

    /// Undoes all that is not known to be on the disk of a node, down to its birth.
    fn forget(&mut self, id: NodeId) {
        self.undo(id, 0);
        if let Some(before) = self.accounts.remove(&id) {
            self.sums[before.ledger].founded -= units(before.founded);
        }
    }

    /// Undoes what a node did after its first `moves`. What it holds then is for the caller to say.
    fn undo(&mut self, id: NodeId, moves: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let keep = moves.saturating_sub(account.settled) as usize;
        let undone = account.moves.split_off(keep.min(account.moves.len()));
        let (mut ledger, mut holds) = (account.ledger, account.seen.mass);
        for what in undone.into_iter().rev() {
            match what {
                Move::Gave(parcel) if self.is_void(parcel.lives.ledger) => {}
                Move::Gave(parcel) => {
                    // Where it was applied before it was on disk it is not there any more, and the sums are off.
                    let _ = self.take(Where::UnderWay, parcel).or_else(|| self.take(Where::Refused, parcel));
                    self.last_given.insert(parcel.lives, parcel.seq - 1);
                }
                Move::Applied(parcel, _) | Move::Refused(parcel, _) | Move::TookBack(parcel, ..)
                    if self.is_void(parcel.lives.ledger) => {}
                Move::Applied(parcel, mass) => self.put(Where::UnderWay, parcel, mass),
                Move::Refused(parcel, mass) => {
                    self.take(Where::Refused, parcel);
                    self.put(Where::UnderWay, parcel, mass);
                }
                Move::TookBack(parcel, mass, place) => self.put(place, parcel, mass),
                Move::Entered { from, left, brought } => {
                    self.sums[ledger].founded -= units(brought);
                    self.sums[ledger].held -= units(holds);
                    self.sums[from].lost_with_nodes -= units(left);
                    self.sums[from].held += units(left);
                    (ledger, holds) = (from, left);
                }
            }
        }
        self.sums[ledger].held -= units(holds);
        if let Some(account) = self.accounts.get_mut(&id) {
            (account.ledger, account.seen.mass) = (ledger, Mass::ZERO);
        }
    }

    fn ledger_of(&mut self, generation: Generation) -> usize {
        let known = self.generations.iter().rposition(|known| *known == generation);
        known.unwrap_or_else(|| {
            self.generations.push(generation);
            self.sums.push(Sums::default());
            self.generations.len() - 1
        })
    }

    fn is_void(&self, ledger: usize) -> bool {
        self.void.is_some_and(|void| !self.generations[ledger].replaces(&void))
    }
}

fn units(mass: Mass) -> i128 {
    i128::from(mass.units())
}

#[cfg(test)]
mod tests;
