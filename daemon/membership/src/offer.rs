//! A plan as peers give it to each other: which generation it begins, at which round, and the operator's signature.

use std::fs;
use std::io;
use std::path::PathBuf;

use libp2p::identity::Keypair;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_file};
use mingle_planner::Plan;
use mingle_protocol::Generation;
use serde::{Deserialize, Serialize};

use crate::revocations::Revocations;
use crate::swarm::Swarm;

/// No kept offer is longer: the largest plan, the longest list of revocations, and room for its envelope.
pub(crate) const MAX_OFFER_BYTES: usize = (2 << 20) + 256;

/// No swarm comes to more plans, and the numbers of plans stay far from the top of theirs.
const MOST_PLANS: u64 = 1 << 32;

/// How the file in a home begins that keeps a plan; another form has another number.
const FILE_HEAD: &[u8] = b"mingle.plan-signed/3\n";

/// A plan on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOffer {
    /// Counts the plans of a swarm from 1; 0 in a swarm without an operator, whose plan never changes.
    counter: u64,
    /// Rounds that were over when it was made: what is left is trained with it.
    first_round: u64,
    plan: Vec<u8>,
    /// Whom the members turn away from now on.
    revoked: Revocations,
    /// The [hash](PlanOffer::hash) of the plan before it; zeros in the first one.
    previous: [u8; 32],
    signature: Vec<u8>,
}

/// A plan that holds, and that the operator stands for where there is one.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    /// The plan.
    pub plan: Plan,
    /// What to give others.
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
        Ok(Self { counter: 0, first_round: 0, plan, revoked, previous: [0; 32], signature: Vec::new() })
    }

    /// The plan of this swarm after `previous`, which is none for the first one. Its members turn away who is revoked.
    ///
    /// # Errors
    /// The plan is too large to be sent, names a peer that was expelled, or would be the 2^32nd.
    pub fn sign(
        swarm: &Swarm,
        previous: Option<&Self>,
        first_round: u64,
        plan: &Plan,
        revoked: Revocations,
        operator: &Keypair,
    ) -> Result<Self> {
        if let Some(peer) = revoked.first_in(plan) {
            let message = format!("the plan names {peer}, which was expelled");
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("make a plan without it, or let it in again: mingle expel --undo PEER"));
        }
        let last = previous.map_or(0, |previous| previous.counter);
        if last >= MOST_PLANS {
            return Err(Error::new(ErrorKind::Integrity, format!("no plan can follow plan {last} of the swarm"))
                .hint("the operator's key has signed that number, which no swarm comes to: found a new swarm"));
        }
        let before = previous.map_or([0; 32], Self::hash);
        let mut offer = Self { counter: last + 1, first_round, revoked, previous: before, ..Self::unsigned(plan)? };
        offer.signature = operator.sign(&offer.words(swarm)).context(ErrorKind::Unexpected, "cannot sign the plan")?;
        Ok(offer)
    }

    /// Checks everything: that the operator of the swarm signed it, if it has one, and that the plan holds.
    ///
    /// # Errors
    /// What does not hold, in one sentence.
    pub fn check(self, swarm: Option<&Swarm>) -> Result<CheckedPlan> {
        match swarm {
            Some(swarm) if !self.is_signed(swarm) => {
                return Err(Error::new(
                    ErrorKind::Integrity,
                    format!("this plan is not signed by the operator of the swarm {}", swarm.name),
                ));
            }
            None if self.counter > 0 => {
                return Err(Error::new(ErrorKind::Refused, "this plan belongs to a swarm with an operator")
                    .hint("join that swarm with a ticket: mingle join TICKET"));
            }
            _ => {}
        }
        let plan = Plan::from_postcard(&self.plan).context(ErrorKind::Integrity, "the plan does not hold")?;
        if let Some(peer) = self.revoked.first_in(&plan) {
            let message = format!("the plan names {peer}, which was expelled");
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        Ok(CheckedPlan { plan, offer: self })
    }

    /// Whether the operator of this swarm signed it.
    pub(crate) fn is_signed(&self, swarm: &Swarm) -> bool {
        (1..=MOST_PLANS).contains(&self.counter) && swarm.is_signed(&self.words(swarm), &self.signature)
    }

    /// Its number among the plans of its swarm.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Whom its members turn away.
    pub fn revoked(&self) -> &Revocations {
        &self.revoked
    }

    /// The generation as it is told before the plan is read.
    pub(crate) fn generation(&self) -> Generation {
        Generation { counter: self.counter, plan_hash: *blake3::hash(&self.plan).as_bytes() }
    }

    /// What tells it from all other plans of its swarm, and what the next one names: everything but the signature.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 signed plan");
        hasher.update(&self.counter.to_le_bytes());
        hasher.update(&self.first_round.to_le_bytes());
        hasher.update(blake3::hash(&self.plan).as_bytes());
        hasher.update(&self.revoked.hash());
        hasher.update(&self.previous);
        *hasher.finalize().as_bytes()
    }

    /// The hash of the plan before it; zeros in the first one.
    pub fn previous(&self) -> [u8; 32] {
        self.previous
    }

    /// The number of which the operator's key has signed two plans, if these two show that: the plans themselves, or the one
    /// and the plan before the other.
    pub fn fork(&self, other: &Self) -> Option<u64> {
        let (older, newer) = if self.counter <= other.counter { (self, other) } else { (other, self) };
        let is_fork = match newer.counter - older.counter {
            0 => newer.hash() != older.hash(),
            1 => newer.previous != older.hash(),
            _ => false,
        };
        (is_fork && older.counter > 0).then_some(older.counter)
    }

    fn words(&self, swarm: &Swarm) -> Vec<u8> {
        [b"mingle plan 3\0".as_slice(), &swarm.id(), &self.hash()].concat()
    }
}

impl CheckedPlan {
    /// The generation that it begins.
    pub fn generation(&self) -> Generation {
        Generation { counter: self.offer.counter, plan_hash: *self.plan.hash().as_bytes() }
    }

    /// Rounds that were over when it was made.
    pub fn first_round(&self) -> u64 {
        self.offer.first_round
    }

    /// Rounds to run with it, of so many in all; at least one, so that everybody mixes once.
    pub fn rounds(&self, in_all: u64) -> u64 {
        in_all.saturating_sub(self.offer.first_round).max(1)
    }

    /// Keeps it in the home, for the next start and for others.
    pub fn keep(&self, home: &Home) -> Result {
        let path = path(home);
        let bytes = postcard::to_stdvec(&self.offer).context(ErrorKind::Unexpected, "cannot encode the plan")?;
        write_file(&path, &[FILE_HEAD, &bytes].concat())
    }

    /// The plan that the home kept, checked anew.
    pub fn kept(home: &Home, swarm: &Swarm) -> Result<Option<Self>> {
        let path = path(home);
        let doing = format!("cannot read {}", path.display());
        let bytes = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > (FILE_HEAD.len() + MAX_OFFER_BYTES) as u64 => {
                return Err(Error::new(ErrorKind::Integrity, format!("{doing}: it is too long")));
            }
            Ok(_) => fs::read(&path).context(ErrorKind::BadInput, &doing)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, doing),
        };
        let Some(bytes) = bytes.strip_prefix(FILE_HEAD) else {
            let message = format!("{doing}: it is damaged, or another release of Mingle wrote it");
            return Err(Error::new(ErrorKind::Integrity, message).hint(
                "remove the file: a member gets the plan from others, and the operator signs one with mingle plan apply",
            ));
        };
        let offer: PlanOffer = postcard::from_bytes(bytes).context(ErrorKind::Integrity, doing)?;
        offer.check(Some(swarm)).map(Some)
    }
}

/// Whom the operator turns away: the list that its home keeps, and where that is lost, the one of the signed plan there.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub fn known_revocations(home: &Home, swarm: &Swarm) -> Result<Revocations> {
    if let Some(kept) = Revocations::kept(home)? {
        return Ok(kept);
    }
    Ok(CheckedPlan::kept(home, swarm)?.map(|plan| plan.offer.revoked).unwrap_or_default())
}

fn path(home: &Home) -> PathBuf {
    home.root().join("plan.signed")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use mingle_planner::{DesignOptions, Method};

    /// Three nodes in a ring, bound to nobody.
    fn plan() -> Plan {
        let topology = mingle_planner::Topology::generate("ring:n=3").unwrap();
        mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap()
    }

    fn swarm(operator: &Keypair) -> Swarm {
        Swarm::found("ward7", operator.public().to_peer_id()).unwrap()
    }

    #[test]
    fn only_what_the_operator_signed_is_followed_and_nothing_of_it_can_be_changed() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let offer = PlanOffer::sign(&swarm, None, 40, &plan(), Revocations::default(), &operator).unwrap();
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
            PlanOffer::sign(&swarm, None, 40, &plan(), Revocations::default(), &stranger).unwrap(),
            PlanOffer::sign(&self::swarm(&operator), None, 40, &plan(), Revocations::default(), &operator).unwrap(),
            PlanOffer::unsigned(&plan()).unwrap(),
        ];
        for offer in changed {
            assert!(offer.clone().check(Some(&swarm)).unwrap_err().is(ErrorKind::Integrity), "{offer:?}");
        }
        assert!(offer.check(None).unwrap_err().to_string().contains("operator"));
        PlanOffer::unsigned(&plan()).unwrap().check(None).unwrap();
    }

    #[test]
    fn two_plans_for_one_number_are_seen_in_themselves_and_in_the_plan_after_one_of_them() {
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        let sign = |previous: Option<&PlanOffer>, round: u64| {
            PlanOffer::sign(&swarm, previous, round, &plan(), Revocations::default(), &operator).unwrap()
        };
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
        for counter in [MOST_PLANS + 1, u64::MAX] {
            let mut offer = PlanOffer { counter, ..PlanOffer::unsigned(&plan()).unwrap() };
            offer.signature = operator.sign(&offer.words(&swarm)).unwrap();
            assert!(offer.check(Some(&swarm)).unwrap_err().is(ErrorKind::Integrity), "{counter}");
        }
        let last = PlanOffer { counter: MOST_PLANS, ..PlanOffer::unsigned(&plan()).unwrap() };
        let next = PlanOffer::sign(&swarm, Some(&last), 0, &plan(), Revocations::default(), &operator);
        assert!(next.unwrap_err().to_string().contains("no plan can follow plan 4294967296"));
    }

    #[test]
    fn a_home_gives_back_the_plan_it_kept_and_notices_damage() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        assert!(CheckedPlan::kept(&home, &swarm).unwrap().is_none());
        let kept = PlanOffer::sign(&swarm, None, 0, &plan(), Revocations::default(), &operator)
            .unwrap()
            .check(Some(&swarm))
            .unwrap();
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
}
