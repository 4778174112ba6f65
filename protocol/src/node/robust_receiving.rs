//! Robust receiving: an incoming ratio counts only as far as it is near the receiver's own.
//!
//! Self-centred clipping (He, Karimireddy, Jaggi, "Byzantine-robust decentralized learning via self-centered clipping",
//! arXiv 2202.01545):
//!
//! ```text
//!   z' = z + min(1, tau / |z_in - z|) (z_in - z)        x += w_m z'        w += w_m
//! ```
//!
//! The weight of the parcel is added unchanged, so the mass ledger stays exact. The sum of all x is no longer
//! conserved: the clipped part is in no node's x, and is booked against the sender.
//!
//! The paper leaves tau to a user who knows how many neighbours lie. Here it is the lower median of one number for each
//! in-link and one for the node itself:
//!
//! - of a link, the median distance of its latest parcels before clipping. A link that always lies contributes one
//!   number, however large;
//! - of the node itself, [`OWN_STEPS`] times the median norm of its latest local steps, on which no other node has
//!   influence.
//!
//! With d in-links tau is therefore no larger than an honest number as long as at least half of all d + 1 numbers,
//! rounded up, are honest: with one in-link it is never larger than the node's own. Distances are remembered before
//! clipping, and those of a link that was silent for long are forgotten. So parts of a swarm that were cut off from
//! each other can converge again.

use super::Node;
use super::in_distances::lower_median;
use super::peer::Neighbour;
use crate::codec::Distance;
use crate::config::Robust;
use crate::effect::Clipped;
use crate::mass::Mass;
use crate::payload::Payload;
use crate::schedule::NodeId;

/// The number of the node itself, in local steps: two neighbours that step in opposite directions from one model are no
/// further apart than that.
const OWN_STEPS: f64 = 2.0;
/// The smallest radius, over the norm of the node's own ratio. Without it a swarm in full agreement would accept
/// nothing from a part of it that was away.
const SMALLEST_RADIUS: f64 = 1.0 / 1024.0;

impl Node {
    /// Absorbs a parcel as configured. Returns the distance of the absorbed ratio from this node's own.
    pub(super) fn absorb_parcel(&mut self, from: NodeId, step: u64, mass: Mass, payload: &Payload) -> Option<Distance> {
        // The sum of weights cannot overflow: parcels that would exceed the swarm's whole mass are never queued.
        match self.config.robust {
            Robust::Off => self.absorb_whole(from, step, mass, payload),
            Robust::Clip => self.absorb_clipped(from, step, mass, payload),
        }
    }

    fn absorb_whole(&mut self, from: NodeId, step: u64, mass: Mass, payload: &Payload) -> Option<Distance> {
        let absorbed = if self.is_handed_down(from, step) {
            self.push_sum.absorb_handed_down(mass, payload)
        } else {
            self.push_sum.absorb(mass, payload)
        };
        absorbed.ok().flatten()
    }

    fn absorb_clipped(&mut self, from: NodeId, step: u64, mass: Mass, payload: &Payload) -> Option<Distance> {
        let Distance { apart, own } = self.push_sum.distance_of(payload);
        let distance = apart.sqrt();
        let own = own.sqrt();
        // While no distance is known, a parcel counts for no more than the node's own ratio.
        let radius = self.usual_distance().unwrap_or(own).max(SMALLEST_RADIUS * own);
        let round = self.round();
        let is_near = distance <= radius || distance.is_nan();
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.distances.remember(round, distance);
            if !is_near {
                let clipped = Clipped { parcels: 1, norm: mass.to_f64() * (distance - radius) };
                peer.distances.clipped += clipped;
                self.tally.clipped += clipped;
            }
        }
        if is_near {
            return self.absorb_whole(from, step, mass, payload);
        }
        self.push_sum.absorb_scaled(mass, payload, radius / distance).ok().flatten()
    }

    /// The distance within which an incoming ratio is not clipped; `None` without clipping, or while it is not known.
    pub fn clipping_radius(&self) -> Option<f64> {
        self.usual_distance().filter(|_| self.config.robust == Robust::Clip)
    }

    /// The lower median over the node itself and its in-links. `None` while the node has taken no local step and at
    /// most half of its in-links have recent distances.
    fn usual_distance(&self) -> Option<f64> {
        let round = self.round();
        let in_links = self.peers.values().filter(|peer| peer.incoming.is_some() && !peer.left);
        let mut known: Vec<f64> =
            in_links.clone().filter_map(|peer: &Neighbour| peer.distances.median(round)).collect();
        let own = self.usual_steps.median().map(|norm| OWN_STEPS * norm);
        if own.is_none() && known.len() * 2 <= in_links.count() {
            return None;
        }
        known.extend(own);
        lower_median(known)
    }
}
