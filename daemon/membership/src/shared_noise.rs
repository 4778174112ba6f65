//! The noise that a private peer shares with other members, from plan to plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use mingle_home::identity::public_key;
use mingle_masking::lasting_secret;
use mingle_privacy::{CorrelatedNoise, NoiseDesign, NoiseDesignError, NoiseGraph, NoisePair, PrivacySettings};
use mingle_protocol::{NodeId, Schedule};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The use of the secret of a pair.
const PURPOSE: &[u8] = b"correlated noise";

/// Rounds over which the noise in the models is foreseen,
const FORESEEN_ROUNDS: u64 = 40;
/// and mixing steps, if those of so many rounds are more: one round at least.
const FORESEEN_STEPS: u64 = 2_000;

/// The stationary weight below which a node has none, but for rounding.
const NO_WEIGHT: f64 = 1e-9;

/// The noise on the changes of a private peer, a part of which other members share. Standard deviations are multiples of
/// the clip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseInUse {
    /// The members that share noise with this peer; 0 where it would leave more in the models than noise of its own.
    pub partners: usize,
    /// The part that stays in the mean of the models.
    pub own: f64,
    /// The part that this peer shares with each of these members.
    pub pair: f64,
    /// The noise that the other members see, against so many colluders among them.
    pub noise: f64,
    /// The number of colluders.
    pub colluders: u32,
}

/// A reason for which the members of a plan share no noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotShared {
    /// The noise cannot be divided among these members.
    #[error(transparent)]
    Design(#[from] NoiseDesignError),
    /// A member with which no secret can be agreed on.
    #[error("the identity of a member is no Ed25519 key, or one with which no secret can be shared")]
    Identity,
}

/// A place in a plan.
#[derive(Clone, Copy)]
pub struct PlaceOfNoise<'a> {
    /// The hash of the plan.
    pub plan: &'a [u8; 32],
    /// The plan as the protocol runs it.
    pub schedule: &'a Schedule,
    /// This peer's node.
    pub node: NodeId,
    /// All members.
    pub members: &'a BTreeMap<NodeId, PeerId>,
    /// This peer's identity.
    pub own: &'a Keypair,
}

/// The correlated noise of a peer under the present plan, if its changes are private and members share noise.
#[derive(Debug, Default)]
pub struct NoiseOfPeer {
    now: Option<Arc<CorrelatedNoise>>,
}

impl NoiseOfPeer {
    /// Goes on under another plan. `None` where nothing is to be shared.
    ///
    /// # Errors
    /// The members of the plan cannot share noise. Then each change has all of its noise from this peer.
    pub fn renew(
        &mut self,
        settings: Option<PrivacySettings>,
        place: PlaceOfNoise<'_>,
    ) -> Result<Option<NoiseInUse>, NotShared> {
        self.now = None;
        let Some((noise, colluders)) = settings.and_then(|settings| Some((settings.noise(), settings.colluders()?)))
        else {
            return Ok(None);
        };
        let links = linked(place.schedule);
        let design = NoiseDesign::new(&links, || mixed(place.schedule), noise, colluders.max(1) as usize)?;
        let partners: Vec<NodeId> =
            design.graph.neighbours(place.node.index()).map(|node| NodeId(node as u32)).collect();
        let pairs = pairs(place.own, place.members, &partners).ok_or(NotShared::Identity)?;
        let parts = design.parts;
        let in_use = NoiseInUse { partners: pairs.len(), own: parts.own, pair: parts.pair, noise, colluders };
        self.now = (!pairs.is_empty()).then(|| Arc::new(CorrelatedNoise::new(*place.plan, &design, pairs)));
        Ok(Some(in_use))
    }

    /// The noise under the present plan.
    pub fn now(&self) -> Option<Arc<CorrelatedNoise>> {
        self.now.clone()
    }
}

/// The links of a schedule, in either direction.
fn linked(schedule: &Schedule) -> NoiseGraph {
    let links = (0..schedule.nodes()).flat_map(|node| {
        let receivers = schedule.all_out_neighbours(NodeId(node as u32)).iter();
        receivers.map(move |receiver| (node, receiver.index()))
    });
    NoiseGraph::new(schedule.nodes(), links)
}

/// For each of some rounds the matrix, `[nodes][nodes]`, by which changes of that many rounds ago are in the models.
fn mixed(schedule: &Schedule) -> Vec<Vec<f64>> {
    let nodes = schedule.nodes();
    let mut sums: Vec<Vec<f64>> = (0..nodes).map(|node| unit(nodes, node)).collect();
    let mut matrices = Vec::new();
    let rounds = (FORESEEN_STEPS / schedule.round_length().max(1)).clamp(1, FORESEEN_ROUNDS);
    for round in 1..=rounds {
        let end = round * schedule.round_length();
        for step in end - schedule.round_length()..end {
            sums = after_step(&sums, schedule, step);
        }
        let of_model = |(node, sum): (u32, &Vec<f64>)| {
            let weight = schedule.stationary_weight(NodeId(node), end);
            // A node without weight has no model then.
            sum.iter().map(|share| if weight > NO_WEIGHT { share / weight } else { 0.0 }).collect::<Vec<_>>()
        };
        matrices.push((0..).zip(&sums).flat_map(of_model).collect());
    }
    matrices
}

/// The vector with a one at this place.
fn unit(length: usize, place: usize) -> Vec<f64> {
    let mut vector = vec![0.0; length];
    vector[place] = 1.0;
    vector
}

/// The numerators of all nodes after a step, from those before it, `[nodes][nodes]`.
fn after_step(before: &[Vec<f64>], schedule: &Schedule, step: u64) -> Vec<Vec<f64>> {
    let mut after = vec![vec![0.0; before.len()]; before.len()];
    let mut add = |to: NodeId, share: f64, held: &[f64]| {
        after[to.index()].iter_mut().zip(held).for_each(|(sum, value)| *sum += share * value);
    };
    for (node, held) in (0..).map(NodeId).zip(before) {
        add(node, schedule.share_kept(node, step), held);
        schedule.out_links(node, step).iter().for_each(|link| add(link.to, link.share.to_f64(), held));
    }
    after
}

/// This peer's end of the pair with each of these members. `None` if an identity is not an Ed25519 key.
fn pairs(own: &Keypair, members: &BTreeMap<NodeId, PeerId>, partners: &[NodeId]) -> Option<Vec<NoisePair>> {
    let own = own.clone().try_into_ed25519().ok()?;
    let me = own.public().to_bytes();
    let seed: [u8; 32] = own.secret().as_ref().try_into().ok()?;
    let pair = |partner: &NodeId| {
        let other = public_key(members.get(partner)?)?.try_into_ed25519().ok()?.to_bytes();
        let secret = *lasting_secret(&seed, &other, PURPOSE)?;
        Some(NoisePair { adds: me < other, secret })
    };
    partners.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_privacy::NoiseSource;
    use mingle_protocol::Step;

    use super::*;

    const PLAN: [u8; 32] = [5; 32];

    /// A ring of members with keys, each with the noise of these settings, or the reason for which there is none.
    fn ring(members: usize, settings: PrivacySettings) -> Vec<Result<Arc<CorrelatedNoise>, NotShared>> {
        let node = |place: usize| NodeId((place % members) as u32);
        let links = (0..members).map(|place| (node(place), node(place + 1), 0.5)).collect();
        let schedule = Schedule::new(members, &[Step { keep: vec![0.5; members], links }], 1).unwrap();
        let keypairs: Vec<_> = (0..members).map(|_| Keypair::generate_ed25519()).collect();
        let peers: BTreeMap<_, _> =
            (0..).map(NodeId).zip(keypairs.iter().map(|keypair| keypair.public().to_peer_id())).collect();
        let noise = |(node, own): (u32, &Keypair)| {
            let node = NodeId(node);
            let place = PlaceOfNoise { plan: &PLAN, schedule: &schedule, node, members: &peers, own };
            let mut noise = NoiseOfPeer::default();
            noise.renew(Some(settings), place).map(|_| noise.now().unwrap())
        };
        (0..).zip(&keypairs).map(noise).collect()
    }

    fn settings(colluders: u32) -> PrivacySettings {
        PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).unwrap().against(Some(colluders))
    }

    #[test]
    fn the_noise_that_members_of_a_plan_share_is_gone_from_the_sum_of_their_changes() {
        const DIMENSION: usize = 4_000;
        let mut sum = vec![0.0_f64; DIMENSION];
        let mut own = 0.0;
        for (seed, noise) in (0..).zip(ring(5, settings(1))) {
            let noise = noise.unwrap();
            own = noise.parts().own;
            let mut change = vec![0.0; DIMENSION];
            noise.clip_and_noise(&mut change, 1.0, 3, &mut NoiseSource::known(seed).generator().unwrap());
            let variance = change.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / DIMENSION as f64;
            assert!(variance > 16.0, "{variance}");
            sum.iter_mut().zip(&change).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let variance = sum.iter().map(|value| value * value).sum::<f64>() / DIMENSION as f64;
        assert!((variance / (5.0 * own * own) - 1.0).abs() < 0.12, "{variance}, of parts of {own}");
    }

    #[test]
    fn changes_are_in_the_models_as_the_steps_of_the_plan_mix_them() {
        let links = vec![(NodeId(0), NodeId(1), 0.25), (NodeId(1), NodeId(0), 0.5)];
        let schedule = Schedule::new(2, &[Step { keep: vec![0.75, 0.5], links }], 1).unwrap();
        let matrices = mixed(&schedule);
        // Stationary weights are 4/3 and 2/3.
        let expected = [0.75 / (4.0 / 3.0), 0.5 / (4.0 / 3.0), 0.25 / (2.0 / 3.0), 0.5 / (2.0 / 3.0)];
        assert!(matrices[0].iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9));
        assert!(matrices[39].iter().all(|share| (share - 0.5).abs() < 1e-9), "{:?}", matrices[39]);
    }

    #[test]
    fn too_few_members_to_share_noise_are_refused() {
        let refused = ring(3, settings(2)).remove(0).unwrap_err();
        assert_eq!(refused, NotShared::Design(NoiseDesignError::NobodyHonest { members: 3, colluders: 2 }));
    }
}
