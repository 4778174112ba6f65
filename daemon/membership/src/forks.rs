//! Forks: two signed plans of one number, detected by members that receive both, and reported.

use crate::offer::{PlanNumber, PlanOffer};
use crate::service::{MembershipService, Wanted};

/// Most forks and plans that cannot be followed that are reported to a person. So many are evidence enough to stop the
/// swarm.
const MOST_ODDITIES: usize = 64;

impl MembershipService {
    /// Reports to a person that keys of the swarm have signed two plans of one number. Which plan counts does not
    /// change: all members follow the same one of two plans, and where only rounds or lists differ, each keeps the one
    /// that it received first.
    pub fn note_fork(&self, offer: &PlanOffer) {
        let Some(ours) = self.state().plan.as_ref().map(|(ours, _)| ours.clone()) else { return };
        let Some(swarm) = self.swarm() else { return };
        let Some(number) = ours.fork(offer) else { return };
        let pair = [ours.hash(), offer.hash()];
        if !self.is_new_oddity(pair) {
            return;
        }
        let [signed_ours, signed_theirs] = [&ours, offer].map(|offer| offer.signed_by(&swarm));
        let signers = match (signed_ours, signed_theirs) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                format!("the keys {ours} and {theirs} have each signed a plan")
            }
            _ => "the operator's key has signed two plans".to_owned(),
        };
        let [ours, theirs] = [&ours, offer].map(|offer| {
            let [hash, before] = [offer.hash(), offer.previous()].map(|hash| hex::encode(&hash[..8]));
            format!("plan {} ({hash}, after {before})", PlanNumber(offer.counter()))
        });
        let message = format!(
            "{signers} {}: this peer follows {ours}, and another has {theirs}. Two planned at the same \
             time, one of two copies of the operator's home was behind, or a key was stolen",
            PlanNumber(number)
        );
        if self.wanted.try_send(Wanted::Warning(message)).is_err() {
            // The queue of warnings is full: the fork is reported when it is next seen.
            self.state().oddities.remove(&pair);
        }
    }

    /// Records this pair of plans, or a plan paired with itself. Returns `true` if it was not reported to a person yet;
    /// `false` also once `MOST_ODDITIES` are recorded.
    pub(crate) fn is_new_oddity(&self, pair: [[u8; 32]; 2]) -> bool {
        let told = &mut self.state().oddities;
        told.len() < MOST_ODDITIES && told.insert(pair)
    }
}
