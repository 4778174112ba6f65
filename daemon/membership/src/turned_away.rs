//! The revocations that a signer enforces: the list of its home, and that of the newest plan.

use mingle_home::Home;
use mingle_home::error::Result;

use crate::offer::{CheckedPlan, PlanOffer};
use crate::revocations::Revocations;
use crate::swarm::Signer;

/// The list of the signer's home or, if there is none, that of the newest plan. If another key that may sign now signed
/// that plan, as operator and delegate do in turns, both lists are joined.
///
/// # Errors
/// The list of the home cannot be read.
pub fn turned_away(home: &Home, signer: &Signer, newest: Option<&PlanOffer>) -> Result<Revocations> {
    let of_plan = newest.map(PlanOffer::revoked).cloned().unwrap_or_default();
    let Some(mut kept) = Revocations::kept(home)? else { return Ok(of_plan) };
    let swarm = signer.swarm();
    let counting = newest.filter(|offer| offer.check_signature(swarm).is_ok());
    if counting.and_then(|offer| offer.signed_by(swarm)).is_some_and(|other| other != signer.peer_id()) {
        kept.join(of_plan);
    }
    Ok(kept)
}

/// The revocations, where the plan stored in the home is the newest one.
///
/// # Errors
/// A file cannot be read, or is damaged.
pub fn known_revocations(home: &Home, signer: &Signer) -> Result<Revocations> {
    let plan = CheckedPlan::kept(home, signer.swarm())?;
    turned_away(home, signer, plan.as_ref().map(|plan| &plan.offer))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use libp2p::PeerId;
    use libp2p::identity::Keypair;
    use mingle_planner::{DesignOptions, Method, Topology};

    use super::*;
    use crate::offer::PlannedBy;
    use crate::swarm::SwarmIdentity;
    use crate::times::now_unix_s;

    #[test]
    fn operator_and_delegate_have_one_list_and_a_thief_that_was_replaced_adds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let [operator, delegate] = [(); 2].map(|()| Keypair::generate_ed25519());
        let mut owner =
            Signer::new(SwarmIdentity::found("ward7", operator.public().into()).unwrap(), operator).unwrap();
        owner.delegate(Some(&delegate.public().into()), now_unix_s() + 60).unwrap();
        let delegated = Signer::new(owner.swarm().clone(), delegate).unwrap();
        let [ours, theirs] = [(); 2].map(|()| PeerId::random());
        let expelled = |peer: &PeerId| {
            let mut list = Revocations::default();
            list.expel(peer);
            list
        };
        let topology = Topology::generate("ring:n=3").unwrap();
        let plan = mingle_planner::design(&topology, Method::DPsgd, &DesignOptions::default()).unwrap();
        let offer = PlanOffer::sign(&delegated, None, 0, &plan, expelled(&theirs), PlannedBy::Person).unwrap();
        let has = |signer: &Signer| {
            let list = turned_away(&home, signer, Some(&offer)).unwrap();
            [&ours, &theirs].map(|peer| list.has_peer(peer))
        };
        assert_eq!(has(&owner), [false, true], "the home has no list of its own");
        expelled(&ours).keep(&home).unwrap();
        assert_eq!(
            (has(&owner), has(&delegated)),
            ([true, true], [true, false]),
            "whose plan it is takes off its list"
        );
        owner.delegate(None, 0).unwrap();
        assert_eq!(has(&owner), [true, false]);
    }
}
