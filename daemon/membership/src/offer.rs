//! A plan offer, the form in which peers exchange a plan: the plan with its generation, its first round, and its
//! signature.

pub(crate) mod file;
mod length;

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU32;

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_planner::Plan;
use mingle_protocol::Generation;
use serde::{Deserialize, Serialize};

pub(crate) use length::TrainingLength;

use crate::authority::Authority;
use crate::early_end::EarlyEnd;
use crate::revocations::Revocations;
use crate::swarm::{NotSigned, Signer, SwarmIdentity};

/// Largest kept offer: the largest plan, the longest list of revocations, and room for its envelope.
pub(crate) const MAX_OFFER_BYTES: usize = (2 << 20) + 768;

/// Hint where the key that signed may no longer do so.
const SIGN_ANEW: &str =
    "who may sign now gives the swarm a plan with mingle plan apply; mingle operator show says who that is";

/// Most plans of one [term](Authority::term), more than any swarm makes. The number of the term is above these bits.
const PLANS_OF_TERM: u64 = (1 << 32) - 1;

/// A plan with its signature and its place among the plans of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOffer {
    /// Number of the plan, counted from 1 within its [term](Authority::term), plus 2^32 times the term; 0 in a swarm
    /// without an operator, whose plan never changes.
    counter: u64,
    /// Rounds that were over when the plan was made: it trains the remaining ones.
    first_round: u64,
    plan: Vec<u8>,
    /// Peers and invitations that the members refuse from now on.
    revoked: Revocations,
    /// The [hash](PlanOffer::hash) of the previous plan; zeros in the first one.
    previous: [u8; 32],
    signature: Vec<u8>,
    /// Length of the training in local steps; `None` if each round counts for one, whatever its local steps.
    length: Option<TrainingLength>,
    /// The author of the plan.
    planner: PlannedBy,
    /// Authority certificate at the time of signing.
    authority: Authority,
    /// The end of the training before its last round, if the members have agreed on one.
    early_end: Option<EarlyEnd>,
}

/// The author of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannedBy {
    /// A person, with `mingle plan apply`. The plan stays until a person applies another.
    Person,
    /// The operator's peer. It makes another plan when a peer comes or goes.
    Peer,
}

/// A plan on its way, with the sender's newest authority certificate of the swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanNews {
    /// The plan.
    pub offer: PlanOffer,
    /// The certificate.
    pub authority: Authority,
}

/// A plan's number as people read it: `3`, or `3 of term 1.2` if the recovery key has named one operator and that one
/// has signed two delegations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanNumber(pub u64);

impl fmt::Display for PlanNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = term_of(self.0);
        let number = self.0 & PLANS_OF_TERM;
        match (term >> 16, term & 0xffff) {
            (0, 0) => write!(f, "{number}"),
            (recovery, delegation) => write!(f, "{number} of term {recovery}.{delegation}"),
        }
    }
}

/// The term of the plan with this number.
fn term_of(counter: u64) -> u64 {
    counter >> 32
}

/// A valid plan, signed by the operator or its delegate if the swarm has an operator.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    /// The plan.
    pub plan: Plan,
    /// The offer to pass on to others.
    pub offer: PlanOffer,
}

impl PlanOffer {
    /// The plan of a swarm without an operator.
    ///
    /// # Errors
    /// The plan is too large to be sent.
    pub fn unsigned(plan: &Plan) -> Result<Self> {
        let plan = plan.to_postcard().context(ErrorKind::BadInput, "the plan cannot be given to other peers")?;
        let revoked = Revocations::default();
        Ok(Self {
            counter: 0,
            first_round: 0,
            plan,
            revoked,
            previous: [0; 32],
            signature: Vec::new(),
            authority: Authority::default(),
            length: None,
            planner: PlannedBy::Peer,
            early_end: None,
        })
    }

    /// Signs the plan of the signer's swarm after `previous`, which is `None` for the first one. Its members refuse the
    /// peers and invitations in `revoked`.
    ///
    /// # Errors
    /// The plan is too large to be sent or names an expelled peer; it would be the 2^32nd of its term; `previous` is of
    /// a later term than the signer knows; or the time of a delegate is over.
    pub fn sign(
        signer: &Signer,
        previous: Option<&Self>,
        first_round: u64,
        plan: &Plan,
        revoked: Revocations,
        planner: PlannedBy,
    ) -> Result<Self> {
        if let Some(peer) = revoked.first_in(plan) {
            let message = format!("the plan names {peer}, which was expelled");
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("make a plan without it, or let it in again: mingle expel --undo PEER"));
        }
        let authority = signer.swarm().authority().clone();
        let counter = number_after(previous.map_or(0, |previous| previous.counter), authority.term())?;
        let before = previous.map_or([0; 32], Self::hash);
        let length = TrainingLength::from_round(first_round, plan, previous);
        let early_end = previous.and_then(|previous| {
            let rounds = first_round.saturating_sub(previous.first_round);
            Some(previous.early_end?.after(rounds))
        });
        let unsigned = Self::unsigned(plan)?;
        let mut offer =
            Self { counter, first_round, revoked, previous: before, authority, length, planner, early_end, ..unsigned };
        offer.signature = signer.sign(&offer.words(signer.swarm()))?;
        Ok(offer)
    }

    /// Signs this plan once more, as the one after it, with an end before the last round.
    ///
    /// # Errors
    /// As [`sign`](Self::sign), and the plan does not hold.
    pub(crate) fn sign_to_end(&self, signer: &Signer, first_round: u64, early_end: EarlyEnd) -> Result<Self> {
        let signed = Self::sign(signer, Some(self), first_round, &self.plan()?, self.revoked.clone(), self.planner)?;
        let mut offer = Self { early_end: Some(early_end), ..signed };
        offer.signature = signer.sign(&offer.words(signer.swarm()))?;
        Ok(offer)
    }

    /// Returns `true` if a task of so many rounds ends early by this plan.
    pub(crate) fn ends_early(&self, of_task: u64) -> bool {
        self.early_end.is_some_and(|end| end.of_task == of_task)
    }

    /// Checks the whole offer: the plan is valid and, if the swarm has an operator, signed by a key that may sign now.
    ///
    /// # Errors
    /// The first condition that does not hold, in one sentence.
    pub fn check(mut self, swarm: Option<&SwarmIdentity>) -> Result<CheckedPlan> {
        if let Some(swarm) = swarm {
            self.check_signature(swarm).map_err(|why| {
                let message = format!("this plan of the swarm {} {why}", swarm.name);
                let failure = Error::new(ErrorKind::Integrity, message);
                if why == NotSigned::ByAnybody { failure } else { failure.hint(SIGN_ANEW) }
            })?;
            // Keep the newest authority certificate: the relay may have stripped it.
            self.authority = swarm.newest(&self.authority).clone();
        } else if self.counter > 0 {
            return Err(Error::new(ErrorKind::Refused, "this plan belongs to a swarm with an operator")
                .hint("join that swarm with a ticket: mingle join TICKET"));
        }
        self.check_plan()
    }

    /// Checks a plan whose signer could sign once: a plan that this peer has followed before, or that others follow.
    ///
    /// # Errors
    /// The condition that does not hold, in one sentence.
    pub fn check_past(self, swarm: &SwarmIdentity) -> Result<CheckedPlan> {
        if !self.was_signed(swarm) {
            let message = format!("this plan of the swarm {} {}", swarm.name, NotSigned::ByAnybody);
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        self.check_plan()
    }

    fn check_plan(self) -> Result<CheckedPlan> {
        let plan = self.plan()?;
        if let Some(peer) = self.revoked.first_in(&plan) {
            let message = format!("the plan names {peer}, which was expelled");
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        Ok(CheckedPlan { plan, offer: self })
    }

    /// Checks that a key that may sign for this swarm now, by the certificates known here or sent with the plan, signed
    /// it in a term that has begun.
    pub(crate) fn check_signature(&self, swarm: &SwarmIdentity) -> Result<(), NotSigned> {
        let newest = swarm.newest(&self.authority);
        swarm.check_signature(&self.words(swarm), &self.signature, &self.authority)?;
        match self.place_in(newest) {
            Some(Ordering::Less) => Err(NotSigned::ByFormer),
            Some(Ordering::Equal) => Ok(()),
            Some(Ordering::Greater) | None => Err(NotSigned::ByAnybody),
        }
    }

    /// Returns `true` if the key that signed it could do so at some time.
    pub(crate) fn was_signed(&self, swarm: &SwarmIdentity) -> bool {
        self.signed_by(swarm).is_some()
    }

    /// Compares the plan's operator with that of `authority`: `Equal`, `Less` for an earlier one, `Greater` for a later
    /// one. `None` if the plan has no number, or belongs to a delegation that the certificate does not know.
    fn place_in(&self, authority: &Authority) -> Option<Ordering> {
        let term = term_of(self.counter);
        let is_number = self.counter & PLANS_OF_TERM > 0;
        let order = (term >> 16).cmp(&u64::from(authority.recovery_number()));
        let is_known = order != Ordering::Equal || term <= u64::from(authority.term());
        (is_number && is_known).then_some(order)
    }

    /// The key that signed it, of those that could in its term, by the certificates known here or sent with it.
    pub fn signed_by(&self, swarm: &SwarmIdentity) -> Option<PeerId> {
        let words = self.words(swarm);
        let of_its_term = [&self.authority, swarm.authority()].into_iter();
        let mut of_its_term = of_its_term.filter(|authority| self.place_in(authority) == Some(Ordering::Equal));
        of_its_term.find_map(|authority| swarm.signer_under(authority, &words, &self.signature))
    }

    /// Number of the plan in its swarm.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Peers and invitations that its members refuse.
    pub fn revoked(&self) -> &Revocations {
        &self.revoked
    }

    /// Authority certificate at the time of signing.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The generation, computed without parsing the plan.
    pub(crate) fn generation(&self) -> Generation {
        Generation { counter: self.counter, plan_hash: *blake3::hash(&self.plan).as_bytes() }
    }

    /// Hash of everything but the signature. It identifies the plan in its swarm, and the next plan names it.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 signed plan");
        hasher.update(&self.counter.to_le_bytes());
        hasher.update(&self.first_round.to_le_bytes());
        hasher.update(blake3::hash(&self.plan).as_bytes());
        hasher.update(&self.revoked.hash());
        hasher.update(&self.previous);
        if let Some(TrainingLength { steps_per_round, steps_before }) = self.length {
            hasher.update(&steps_per_round.to_le_bytes());
            hasher.update(&steps_before.to_le_bytes());
        }
        if self.planner == PlannedBy::Person {
            hasher.update(&[1]);
        }
        if let Some(EarlyEnd { of_task, rounds }) = self.early_end {
            hasher.update(&[2]);
            hasher.update(&of_task.to_le_bytes());
            hasher.update(&rounds.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// Parses the plan.
    ///
    /// # Errors
    /// The plan is not valid.
    pub(crate) fn plan(&self) -> Result<Plan> {
        Plan::from_postcard(&self.plan).context(ErrorKind::Integrity, "the plan does not hold")
    }

    /// The author of the plan.
    pub fn planner(&self) -> PlannedBy {
        self.planner
    }

    /// The hash of the previous plan; zeros in the first one.
    pub fn previous(&self) -> [u8; 32] {
        self.previous
    }

    /// The number of which two plans are signed, if these two prove that: the two themselves, or one and the
    /// predecessor of the other.
    pub fn fork(&self, other: &Self) -> Option<u64> {
        let (older, newer) = if self.counter <= other.counter { (self, other) } else { (other, self) };
        let is_fork = match newer.counter - older.counter {
            0 => newer.hash() != older.hash(),
            1 => newer.previous != older.hash(),
            _ => false,
        };
        (is_fork && older.counter > 0).then_some(older.counter)
    }

    fn words(&self, swarm: &SwarmIdentity) -> Vec<u8> {
        [b"mingle plan 3\0".as_slice(), &swarm.id(), &self.hash()].concat()
    }
}

impl CheckedPlan {
    /// The generation that the plan begins.
    pub fn generation(&self) -> Generation {
        Generation { counter: self.offer.counter, plan_hash: *self.plan.hash().as_bytes() }
    }

    /// Rounds that were over when the plan was made.
    pub fn first_round(&self) -> u64 {
        self.offer.first_round
    }

    /// Rounds to run with this plan, for a task of `of_task` rounds; at least one, so that every peer mixes once.
    pub fn rounds(&self, of_task: u64) -> u64 {
        let left = self.offer.length.zip(NonZeroU32::new(self.plan.local_steps()));
        let left = match left {
            Some((length, local_steps)) => length.steps_left(of_task).div_ceil(u64::from(local_steps.get())),
            None => of_task.saturating_sub(self.offer.first_round),
        };
        let early = self.offer.early_end.filter(|end| end.of_task == of_task);
        early.map_or(left, |end| end.rounds.min(left)).max(1)
    }

    /// Returns `true` if a task of so many rounds ends before its last one, as the members have agreed.
    pub fn ends_early(&self, of_task: u64) -> bool {
        self.offer.ends_early(of_task)
    }

    /// Rounds over when a task of `of_task` rounds is done: fewer where this plan has more local steps in a round than
    /// the first one.
    pub fn last_round(&self, of_task: u64) -> u64 {
        self.offer.first_round.saturating_add(self.rounds(of_task))
    }
}

/// The number of the plan after `last`, in this term.
fn number_after(last: u64, term: u32) -> Result<u64> {
    let before_first = u64::from(term) << 32;
    if term_of(last) > u64::from(term) {
        let message = format!("plan {} is there, of a later term than this home knows", PlanNumber(last));
        return Err(Error::new(ErrorKind::Refused, message).hint(
            "the operator has changed, or its delegate: mingle operator accept APPOINTMENT, or ask the operator",
        ));
    }
    let last = last.max(before_first);
    if last & PLANS_OF_TERM == PLANS_OF_TERM {
        let message = format!("no plan can follow plan {} of the swarm", PlanNumber(last));
        return Err(Error::new(ErrorKind::Integrity, message).hint(
            "a key has signed that number, which no swarm comes to: the operator begins a new term with mingle operator revoke, the \
             recovery key with mingle operator recover",
        ));
    }
    Ok(last + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use libp2p::identity::Keypair;
    use mingle_home::home::Home;
    use mingle_planner::{DesignOptions, Method};

    use super::file::{FILE_HEAD, path};
    use super::*;
    use crate::authority::CLOCK_SKEW_S;
    use crate::times::now_unix_s;

    /// Three nodes in a ring, not bound to peers.
    fn plan() -> Plan {
        let topology = mingle_planner::Topology::generate("ring:n=3").unwrap();
        mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap()
    }

    fn swarm(operator: &Keypair) -> SwarmIdentity {
        SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap()
    }

    fn signer(swarm: &SwarmIdentity, key: &Keypair) -> Signer {
        Signer::new(swarm.clone(), key.clone()).unwrap()
    }

    fn sign(signer: &Signer, previous: Option<&PlanOffer>, round: u64) -> PlanOffer {
        PlanOffer::sign(signer, previous, round, &plan(), Revocations::default(), PlannedBy::Person).unwrap()
    }

    /// A plan of that number, under any key.
    fn made_up(swarm: &SwarmIdentity, counter: u64, key: &Keypair) -> PlanOffer {
        let mut offer = PlanOffer { counter, ..PlanOffer::unsigned(&plan()).unwrap() };
        offer.authority = swarm.authority().clone();
        offer.signature = key.sign(&offer.words(swarm)).unwrap();
        offer
    }

    #[test]
    fn only_what_the_operator_signed_is_followed_and_nothing_of_it_can_be_changed() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let offer = sign(&signer(&swarm, &operator), None, 40);
        let checked = offer.clone().check(Some(&swarm)).unwrap();
        assert_eq!(checked.generation(), offer.generation(), "what is told early is what is followed");
        assert_eq!((checked.rounds(100), checked.rounds(40), checked.rounds(7)), (60, 1, 1));
        let stranger = Keypair::generate_ed25519();
        let changed = [
            PlanOffer { counter: 4, ..offer.clone() },
            PlanOffer { first_round: 41, ..offer.clone() },
            PlanOffer { plan: vec![1], ..offer.clone() },
            PlanOffer { previous: [1; 32], ..offer.clone() },
            PlanOffer { signature: Vec::new(), ..offer.clone() },
            PlanOffer { length: None, ..offer.clone() },
            PlanOffer {
                length: offer.length.map(|length| TrainingLength { steps_before: 1, ..length }),
                ..offer.clone()
            },
            PlanOffer { planner: PlannedBy::Peer, ..offer.clone() },
            PlanOffer { early_end: Some(EarlyEnd { of_task: 100, rounds: 1 }), ..offer.clone() },
            made_up(&swarm, 1, &stranger),
            sign(&signer(&self::swarm(&operator), &operator), None, 40),
            PlanOffer::unsigned(&plan()).unwrap(),
        ];
        for offer in changed {
            assert!(offer.clone().check(Some(&swarm)).unwrap_err().is(ErrorKind::Integrity), "{offer:?}");
        }
        assert!(offer.check(None).unwrap_err().to_string().contains("operator"));
        PlanOffer::unsigned(&plan()).unwrap().check(None).unwrap();
    }

    fn with_steps(local_steps: u32) -> Plan {
        let topology = mingle_planner::Topology::generate("ring:n=3").unwrap();
        let options = DesignOptions { local_steps, ..DesignOptions::default() };
        mingle_planner::design(&topology, Method::DPsgd, &options).unwrap()
    }

    #[test]
    fn a_training_keeps_its_length_in_local_steps_when_a_plan_has_others_in_a_round() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let signer = signer(&swarm, &operator);
        let mut previous: Option<PlanOffer> = None;
        // A task of 100 rounds, 10 steps each: 1,000 steps, of which 200, 700 and 870 are over.
        let plans = [
            (10, 0, 100, 100),
            (50, 20, 16, 36),
            (17, 30, 18, 48),
            (0, 40, 60, 100),
            (7, 40, 19, 59),
            (7, 200, 1, 201),
        ];
        for (local_steps, first_round, rounds, last) in plans {
            let plan = with_steps(local_steps);
            let none = Revocations::default();
            let offer = PlanOffer::sign(&signer, previous.as_ref(), first_round, &plan, none, PlannedBy::Peer).unwrap();
            let checked = offer.clone().check(Some(&swarm)).unwrap();
            assert_eq!(
                (checked.rounds(100), checked.last_round(100)),
                (rounds, last),
                "{local_steps} from {first_round}"
            );
            previous = Some(offer);
        }
    }

    #[test]
    fn a_plan_with_an_early_end_is_over_then_and_so_are_those_after_it_unless_the_task_grows() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let signer = signer(&swarm, &operator);
        let first = sign(&signer, None, 0);
        let end = EarlyEnd { of_task: 100, rounds: 21 };
        let ending = first.sign_to_end(&signer, 40, end).unwrap();
        let checked = |offer: &PlanOffer| offer.clone().check(Some(&swarm)).unwrap();
        assert_eq!((checked(&ending).rounds(100), checked(&ending).last_round(100)), (21, 61));
        assert_eq!((ending.counter(), ending.planner(), ending.plan().unwrap()), (2, first.planner(), plan()));
        assert!(checked(&ending).ends_early(100) && !checked(&first).ends_early(100));
        assert_eq!(checked(&ending).last_round(150), 150, "a longer task is trained in full");
        let after = sign(&signer, Some(&ending), 50);
        assert_eq!((checked(&after).rounds(100), checked(&after).last_round(100)), (11, 61), "the end stays");
        let late = first.sign_to_end(&signer, 90, end).unwrap();
        assert_eq!(checked(&late).last_round(100), 100, "no end is after the last round");
    }

    #[test]
    fn two_plans_for_one_number_are_seen_in_themselves_and_in_the_plan_after_one_of_them() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let signer = signer(&swarm, &operator);
        let sign = |previous, round| sign(&signer, previous, round);
        let first = sign(None, 0);
        let (second, other) = (sign(Some(&first), 10), sign(Some(&first), 11));
        assert_eq!((second.counter(), second.previous()), (2, first.hash()));
        assert_eq!(second.generation(), other.generation(), "the same plan, from another round on");
        assert_eq!(second.fork(&other), Some(2));
        assert_eq!((second.fork(&second), second.fork(&first), first.fork(&second)), (None, None, None));
        let after_other = sign(Some(&other), 20);
        assert_eq!(
            (second.fork(&after_other), after_other.fork(&second), other.fork(&after_other)),
            (Some(2), Some(2), None)
        );
        assert_eq!(first.fork(&after_other), None, "what lies between is not known");
    }

    #[test]
    fn no_plan_is_the_last_one_that_there_can_be() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        for counter in [0, 1 << 32, (1 << 32) + 1, 1 << 48, u64::MAX] {
            let offer = made_up(&swarm, counter, &operator);
            assert!(!offer.was_signed(&swarm), "{counter}");
            assert!(offer.check(Some(&swarm)).unwrap_err().is(ErrorKind::Integrity), "{counter}");
        }
        let last = made_up(&swarm, PLANS_OF_TERM, &operator);
        let mut operator = signer(&swarm, &operator);
        let next = PlanOffer::sign(&operator, Some(&last), 0, &plan(), Revocations::default(), PlannedBy::Peer);
        assert!(next.unwrap_err().to_string().contains("no plan can follow plan 4294967295"));
        // A new term is ahead of all plans of the last one.
        operator.delegate(None, 0).unwrap();
        let next = sign(&operator, Some(&last), 0);
        assert_eq!(
            (next.counter(), PlanNumber(next.counter()).to_string()),
            ((1 << 32) + 1, "1 of term 0.1".to_owned())
        );
        assert!(next.generation().replaces(&last.generation()));
        next.check(Some(&swarm)).unwrap();
    }

    #[test]
    fn the_operator_is_ahead_of_a_delegate_whose_key_was_stolen() {
        let [operator, delegate] = [(); 2].map(|()| Keypair::generate_ed25519());
        let mut swarm = swarm(&operator);
        let mut owner = signer(&swarm, &operator);
        let first = sign(&owner, None, 0);
        let until = now_unix_s() + 60;
        owner.delegate(Some(&delegate.public().to_peer_id()), until).unwrap();
        let second = sign(&signer(owner.swarm(), &delegate), Some(&first), 5);
        second.clone().check(Some(&swarm)).unwrap();
        assert_eq!((second.signed_by(&swarm), second.previous()), (Some(delegate.public().to_peer_id()), first.hash()));
        // Both sign a plan after it: members that receive both see the fork.
        let (theirs, ours) =
            (sign(&signer(owner.swarm(), &delegate), Some(&second), 6), sign(&owner, Some(&second), 7));
        assert_eq!(ours.fork(&theirs), Some(ours.counter()));
        // The thief signs the last number there is, and one of a term that has not begun.
        swarm.learn(owner.swarm().authority());
        let of_thief = made_up(&swarm, (1 << 32) + PLANS_OF_TERM, &delegate);
        of_thief.clone().check(Some(&swarm)).unwrap();
        assert!(made_up(&swarm, (2 << 32) + 1, &delegate).check(Some(&swarm)).is_err());
        owner.delegate(None, 0).unwrap();
        let ours = sign(&owner, Some(&of_thief), 8);
        assert!(ours.generation().replaces(&of_thief.generation()));
        // A peer that knows the certificate refuses what the thief signs, and knows that it could sign once.
        let told = owner.swarm();
        for theirs in [&of_thief, &theirs, &made_up(&swarm, (1 << 32) + 9, &delegate)] {
            assert!(theirs.clone().check(Some(told)).unwrap_err().to_string().contains("replaced since"));
            assert!(theirs.was_signed(told) && theirs.clone().check_past(told).is_ok());
        }
        ours.check(Some(&swarm)).unwrap();
    }

    #[test]
    fn no_number_that_the_old_key_signs_is_ahead_of_the_operator_that_the_recovery_key_names() {
        let [founder, recovery, next] = [(); 3].map(|()| Keypair::generate_ed25519());
        let swarm = swarm(&founder).recoverable_by(&recovery.public().to_peer_id()).unwrap();
        let mut thief = signer(&swarm, &founder);
        for _ in 0..3 {
            thief.delegate(None, 0).unwrap();
        }
        let last = made_up(thief.swarm(), (3 << 32) + PLANS_OF_TERM, &founder);
        let mut away = swarm.clone();
        last.clone().check(Some(&away)).unwrap();
        let authority = Authority::default().succeed(&swarm.id(), 1, &next.public().to_peer_id(), &recovery).unwrap();
        let mut told = swarm.clone();
        assert!(told.learn(&authority));
        let ours = sign(&signer(&told, &next), Some(&last), 9);
        assert_eq!(PlanNumber(ours.counter()).to_string(), "1 of term 1.0");
        assert!(ours.generation().replaces(&last.generation()));
        // The old key signs on, also under the number of the new term.
        let signed = [last.clone(), made_up(&swarm, 7, &founder), made_up(&told, (1 << 48) + 2, &founder)];
        for theirs in &signed {
            assert!(theirs.clone().check(Some(&told)).is_err(), "{}", PlanNumber(theirs.counter()));
        }
        assert!(!signed[2].was_signed(&told) && !signed[2].was_signed(&away));
        // A peer that was away meanwhile needs only the new plan itself, and the thief cannot make one like it.
        ours.clone().check(Some(&away)).unwrap();
        away.learn(ours.authority());
        assert!(last.check(Some(&away)).unwrap_err().to_string().contains("replaced since"));
        let behind = PlanOffer::sign(
            &signer(&swarm, &founder),
            Some(&ours),
            0,
            &plan(),
            Revocations::default(),
            PlannedBy::Peer,
        );
        assert!(behind.unwrap_err().to_string().contains("of a later term than this home knows"));
    }

    #[test]
    fn a_home_gives_back_the_plan_it_kept_and_notices_damage() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        assert!(CheckedPlan::kept(&home, &swarm).unwrap().is_none());
        let kept = sign(&signer(&swarm, &operator), None, 0).check(Some(&swarm)).unwrap();
        kept.keep(&home).unwrap();
        assert_eq!(CheckedPlan::kept(&home, &swarm).unwrap().unwrap().offer, kept.offer);
        let mut bytes = fs::read(path(&home)).unwrap();
        for at in [0, FILE_HEAD.len(), FILE_HEAD.len() + 1, bytes.len() / 2, bytes.len() - 1] {
            bytes[at] ^= 1;
            fs::write(path(&home), &bytes).unwrap();
            assert!(CheckedPlan::kept(&home, &swarm).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn a_plan_of_a_delegate_whose_time_is_over_stays_in_the_home_that_followed_it_and_is_given_to_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let [operator, delegate] = [(); 2].map(|()| Keypair::generate_ed25519());
        let mut swarm = swarm(&operator);
        let mut owner = signer(&swarm, &operator);
        owner.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() - CLOCK_SKEW_S - 1).unwrap();
        let late = made_up(owner.swarm(), (1 << 32) + 1, &delegate);
        assert!(late.clone().check(Some(&swarm)).unwrap_err().to_string().contains("whose time ended"));
        late.clone().check_past(&swarm).unwrap().keep(&home).unwrap();
        assert_eq!(CheckedPlan::kept(&home, &swarm).unwrap().unwrap().offer, late);
        // Passed on without its certificate to a peer that has it, and kept until another plan replaces it.
        owner.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() + 60).unwrap();
        let bare = PlanOffer { authority: Authority::default(), ..late.clone() };
        bare.clone().check(Some(owner.swarm())).unwrap().keep(&home).unwrap();
        let mut later = owner.clone();
        later.delegate(None, 0).unwrap();
        assert!(bare.check(Some(later.swarm())).is_err());
        assert_eq!(CheckedPlan::kept(&home, later.swarm()).unwrap().unwrap().offer.hash(), late.hash());
        // The operator names it again: what it had signed counts again.
        owner.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() + 60).unwrap();
        swarm.learn(owner.swarm().authority());
        late.check(Some(&swarm)).unwrap();
    }
}
