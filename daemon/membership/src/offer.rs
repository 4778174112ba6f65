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
        Ok(Self { counter: 0, first_round: 0, plan, revoked: Revocations::default(), signature: Vec::new() })
    }

    /// A plan of this swarm, whose members turn away who is revoked.
    ///
    /// # Errors
    /// The plan is too large to be sent, or names a peer that was expelled.
    pub fn sign(
        swarm: &Swarm,
        (counter, first_round): (u64, u64),
        plan: &Plan,
        revoked: Revocations,
        operator: &Keypair,
    ) -> Result<Self> {
        if let Some(peer) = revoked.first_in(plan) {
            let message = format!("the plan names {peer}, which was expelled");
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("make a plan without it, or let it in again: mingle expel --undo PEER"));
        }
        let mut offer = Self { counter, first_round, revoked, ..Self::unsigned(plan)? };
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
        self.counter > 0 && swarm.is_signed(&self.words(swarm), &self.signature)
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

    fn words(&self, swarm: &Swarm) -> Vec<u8> {
        let mut words = b"mingle plan 2\0".to_vec();
        words.extend(swarm.id());
        words.extend(self.counter.to_le_bytes());
        words.extend(self.first_round.to_le_bytes());
        words.extend(blake3::hash(&self.plan).as_bytes());
        words.extend(self.revoked.hash());
        words
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
        write_file(&path, &bytes)
    }

    /// The plan that the home kept, checked anew.
    pub fn kept(home: &Home, swarm: &Swarm) -> Result<Option<Self>> {
        let path = path(home);
        let doing = format!("cannot read {}", path.display());
        let bytes = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MAX_OFFER_BYTES as u64 => {
                return Err(Error::new(ErrorKind::Integrity, format!("{doing}: it is too long")));
            }
            Ok(_) => fs::read(&path).context(ErrorKind::BadInput, &doing)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, doing),
        };
        let offer: PlanOffer = postcard::from_bytes(&bytes).context(ErrorKind::Integrity, doing)?;
        offer.check(Some(swarm)).map(Some)
    }
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
        let offer = PlanOffer::sign(&swarm, (3, 40), &plan(), Revocations::default(), &operator).unwrap();
        let checked = offer.clone().check(Some(&swarm)).unwrap();
        assert_eq!(checked.generation(), offer.generation(), "what is told early is what is followed");
        assert_eq!((checked.rounds(100), checked.rounds(40), checked.rounds(7)), (60, 1, 1));
        let stranger = Keypair::generate_ed25519();
        let changed = [
            PlanOffer { counter: 4, ..offer.clone() },
            PlanOffer { first_round: 41, ..offer.clone() },
            PlanOffer { plan: vec![1], ..offer.clone() },
            PlanOffer { signature: Vec::new(), ..offer.clone() },
            PlanOffer::sign(&swarm, (3, 40), &plan(), Revocations::default(), &stranger).unwrap(),
            PlanOffer::sign(&self::swarm(&operator), (3, 40), &plan(), Revocations::default(), &operator).unwrap(),
            PlanOffer::unsigned(&plan()).unwrap(),
        ];
        for offer in changed {
            assert!(offer.clone().check(Some(&swarm)).unwrap_err().is(ErrorKind::Integrity), "{offer:?}");
        }
        assert!(offer.check(None).unwrap_err().to_string().contains("operator"));
        PlanOffer::unsigned(&plan()).unwrap().check(None).unwrap();
    }

    #[test]
    fn a_home_gives_back_the_plan_it_kept_and_notices_damage() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = swarm(&operator);
        assert!(CheckedPlan::kept(&home, &swarm).unwrap().is_none());
        let kept = PlanOffer::sign(&swarm, (1, 0), &plan(), Revocations::default(), &operator)
            .unwrap()
            .check(Some(&swarm))
            .unwrap();
        kept.keep(&home).unwrap();
        assert_eq!(CheckedPlan::kept(&home, &swarm).unwrap().unwrap().offer, kept.offer);
        let mut bytes = fs::read(path(&home)).unwrap();
        for at in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            bytes[at] ^= 1;
            fs::write(path(&home), &bytes).unwrap();
            assert!(CheckedPlan::kept(&home, &swarm).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
    }
}
