//! Differences to references: which form a ratio is sent in, and parcels that cannot be decoded.
//!
//! By the plan all nodes get a new reference in the same steps, so a neighbour that has once stated the newest one is
//! expected to follow. If it cannot decode a difference all the same (it was started again, or missed an exact average),
//! the parcel goes back to its sender like any refused one, and the neighbour gets keyframes until its statements show
//! that it has caught up. So no mass depends on a guess.

use super::Node;
use crate::codec::Dither;
use crate::codec_choice::ChosenCodec;
use crate::effect::NodeEvent;
use crate::link::{QueuedParcel, Returned};
use crate::mass::Mass;
use crate::payload::Payload;
use crate::push_sum::RatioForm;
use crate::reference::{Reference, ReferenceId};
use crate::schedule::NodeId;

impl Node {
    /// The codec of this node under its present plan.
    pub fn codec(&self) -> ChosenCodec {
        self.config.chosen_codec(self.dimension())
    }

    /// Returns `true` if the node sends and decodes differences: it is configured to, and the plan hands ratios down.
    pub(super) fn keeps_references(&self) -> bool {
        self.codec().codec.sends_differences() && self.config.schedule.hands_ratios_down()
    }

    /// This node's statement of the references that it has.
    pub(super) fn stated_references(&self) -> Option<[ReferenceId; 2]> {
        self.keeps_references().then(|| self.push_sum.references().ids())
    }

    /// Takes a neighbour's statement of its references.
    pub(super) fn note_references(&mut self, from: NodeId, stated: Option<[ReferenceId; 2]>) {
        let newest = self.push_sum.references().newest();
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.references.state(stated, newest);
        }
    }

    /// Notes that parcels came back from a neighbour, perhaps since it could not decode them.
    pub(super) fn note_undecoded(&mut self, by: NodeId, returned: &Returned) {
        if returned.parcels.iter().any(|(_, payload)| payload.reference().is_some())
            && let Some(peer) = self.peers.get_mut(&by)
        {
            peer.references.falls_behind();
        }
    }

    /// Splits `outgoing` off for the receivers of this step.
    pub(super) fn split_off(&mut self, outgoing: Mass, cuts: &[(NodeId, Mass)]) -> Option<Payload> {
        let mut dither = Dither::of(self.config.id, self.step);
        let form = self.form_for(cuts);
        if !self.is_handed_down(self.config.id, self.step) {
            return self.push_sum.split(outgoing, &form, &mut dither);
        }
        let peers = &self.peers;
        let has_it = |to: &NodeId, id| peers.get(to).is_some_and(|peer| peer.references.can_decode(id));
        let all_have = |id| cuts.iter().all(|(to, _)| has_it(to, id));
        let can_decode = |payload: &Payload| payload.reference().is_none_or(all_have);
        self.push_sum.hand_down(outgoing, &form, can_decode, &mut dither)
    }

    /// Returns `true` if `from` hands its ratio down in `step`, and this node takes part in that.
    pub(super) fn is_handed_down(&self, from: NodeId, step: u64) -> bool {
        self.keeps_references() && self.config.schedule.hands_down(from, step)
    }

    /// The form in which all of these receivers can decode the ratio.
    fn form_for(&self, receivers: &[(NodeId, Mass)]) -> RatioForm {
        let codec = self.codec().codec;
        if !self.keeps_references() {
            return RatioForm::Whole(codec.of_wholes());
        }
        let has_it = |to: &NodeId, id| self.peers.get(to).is_some_and(|peer| peer.references.can_decode(id));
        let is_common = |reference: &&Reference| receivers.iter().all(|(to, _)| has_it(to, reference.id()));
        let common = self.push_sum.references().iter().find(is_common);
        common.map_or(RatioForm::Keyframe, |reference| RatioForm::Difference(codec, reference.clone()))
    }

    /// Looks up the reference of the next parcel of a link, which may have become known since the parcel came. A parcel
    /// that cannot be decoded, or that shows its excessive norm only now, goes back to its sender.
    pub(super) fn resolve_next(&mut self, from: NodeId) {
        let bound = self.config.largest_norm;
        let references = self.push_sum.references();
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        let is_open = |parcel: &&mut QueuedParcel| !parcel.is_refused && !parcel.payload.is_resolved();
        let Some(parcel) = peer.incoming.as_mut().and_then(|link| link.front_mut()).filter(is_open) else {
            return;
        };
        parcel.payload.resolve(references);
        let is_decodable = parcel.payload.is_resolved();
        let is_offence = bound.is_some_and(|bound| parcel.payload.exceeds(bound));
        parcel.is_refused = is_offence || !is_decodable;
        let mass = parcel.mass;
        peer.offences.note(is_offence, is_decodable);
        if is_offence {
            self.on_refusal(from, mass);
        } else if !is_decodable {
            self.report(NodeEvent::ReferenceMissing { peer: from, mass });
        } else if !self.books_in_step() {
            self.note_received(from, mass);
        }
    }
}
