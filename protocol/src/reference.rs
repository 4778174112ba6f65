//! References: vectors that the nodes of a swarm have in common, to which payloads may be differences.
//!
//! A step in which a node that holds weight sends to nodes that hold none hands its ratio down: the receivers' ratio is
//! that of the parcel, to the bit, and so is the sender's from then on (its rounding error stays in its numerator). At
//! the end of an exact average all nodes have that ratio, and each keeps it as a reference. A reference is named by a
//! hash of its coordinates, so two nodes that name the same one decode the same bits, however they came by it.
//!
//! A difference is small where a ratio is large, so it needs fewer bits for the same error. Its error is part of the
//! sender's numerator like that of any other codec, and goes out with a later parcel: error feedback (Seide et al.,
//! Interspeech 2014; Karimireddy et al., ICML 2019) without a buffer of its own.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::codec::{self, MAX_MAGNITUDE};

/// Largest magnitude of a coordinate of a reference. Far enough from [`MAX_MAGNITUDE`] that no sum of a reference and
/// a difference to it exceeds that.
const LARGEST: f32 = MAX_MAGNITUDE / 1024.0;

/// The name of a reference: the first half of the BLAKE3 of its coordinates as little-endian f32.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReferenceId(pub [u8; 16]);

impl ReferenceId {
    /// The name of a vector.
    pub fn of(values: &[f32]) -> Self {
        let [name, _] = *blake3::hash(bytemuck::cast_slice(values)).as_bytes().as_chunks().0 else {
            return Self::default();
        };
        Self(name)
    }
}

impl fmt::Debug for ReferenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A vector with its name. Cloning shares the vector.
#[derive(Clone)]
pub(crate) struct Reference {
    id: ReferenceId,
    values: Arc<[f32]>,
}

impl Reference {
    /// `None` for a vector with a coordinate that is not finite or too large to be a reference.
    pub(crate) fn new(values: Arc<[f32]>) -> Option<Self> {
        let is_fit = codec::largest_of(&values) <= LARGEST;
        is_fit.then(|| Self { id: ReferenceId::of(&values), values })
    }

    /// Returns `true` for a coordinate that a reference may have.
    pub(crate) fn can_have(value: f32) -> bool {
        value.abs() <= LARGEST
    }

    pub(crate) fn id(&self) -> ReferenceId {
        self.id
    }

    pub(crate) fn values(&self) -> &Arc<[f32]> {
        &self.values
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reference({:?}, {} coordinates)", self.id, self.values.len())
    }
}

/// The two newest references of a node, newest first. The older one is there for neighbours that are a round behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct References {
    newest: [Option<Reference>; 2],
}

impl References {
    pub(crate) fn add(&mut self, reference: Reference) {
        if self.newest().is_none_or(|newest| newest.id != reference.id) {
            let [newest, _] = std::mem::take(&mut self.newest);
            self.newest = [Some(reference), newest];
        }
    }

    pub(crate) fn newest(&self) -> Option<&Reference> {
        self.newest[0].as_ref()
    }

    pub(crate) fn find(&self, id: ReferenceId) -> Option<&Reference> {
        self.iter().find(|reference| reference.id == id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Reference> {
        self.newest.iter().flatten()
    }

    /// The names, newest first; absent ones are all zeros.
    pub(crate) fn ids(&self) -> [ReferenceId; 2] {
        self.newest.each_ref().map(|reference| reference.as_ref().map(Reference::id).unwrap_or_default())
    }
}

/// The knowledge of a neighbour's references.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownReferences {
    /// Its latest statement; `None` if it keeps none, or has stated nothing.
    stated: Option<[ReferenceId; 2]>,
    /// Set while it gets each reference when this node does, by the plan.
    follows: bool,
}

impl KnownReferences {
    /// Takes the neighbour's statement; `newest` is this node's newest reference. Before its first one, the neighbour gets
    /// that when this node does: which form a ratio is sent in does not depend on how soon a statement comes.
    pub(crate) fn state(&mut self, stated: Option<[ReferenceId; 2]>, newest: Option<&Reference>) {
        self.stated = stated;
        self.follows |= newest.is_none_or(|newest| self.has_stated(newest.id));
        self.follows &= stated.is_some();
    }

    /// Notes that the neighbour could not decode a difference: from now on only its statements count.
    pub(crate) fn falls_behind(&mut self) {
        self.follows = false;
    }

    /// Returns `true` if the neighbour can be expected to decode a difference to a reference of this node.
    pub(crate) fn can_decode(&self, id: ReferenceId) -> bool {
        self.follows || self.has_stated(id)
    }

    fn has_stated(&self, id: ReferenceId) -> bool {
        self.stated.is_some_and(|stated| stated.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reference(value: f32) -> Reference {
        Reference::new(Arc::from([value])).unwrap()
    }

    #[test]
    fn equal_bits_have_one_name_and_other_bits_another() {
        assert_eq!(reference(1.0).id(), reference(1.0).id());
        assert_ne!(reference(0.0).id(), reference(-0.0).id());
        assert!(Reference::new(Arc::from([f32::NAN])).is_none());
        assert!(Reference::new(Arc::from([MAX_MAGNITUDE])).is_none());
    }

    #[test]
    fn the_two_newest_are_kept_and_one_that_comes_again_displaces_none() {
        let mut kept = References::default();
        for value in [1.0, 2.0, 2.0, 3.0] {
            kept.add(reference(value));
        }
        assert_eq!(kept.ids(), [reference(3.0).id(), reference(2.0).id()]);
        assert!(kept.find(reference(1.0).id()).is_none());
    }

    #[test]
    fn a_neighbour_is_expected_to_follow_until_it_could_not_decode() {
        let [old, new, newer] = [1.0, 2.0, 3.0].map(reference);
        let mut known = KnownReferences::default();
        assert!(!known.can_decode(old.id()));
        known.state(Some([ReferenceId::default(); 2]), None);
        assert!(known.can_decode(old.id()), "both get the first one in the same round");
        let mut known = KnownReferences::default();
        known.state(Some([old.id(), ReferenceId::default()]), Some(&new));
        assert!(known.can_decode(old.id()) && !known.can_decode(new.id()));
        known.state(Some([new.id(), old.id()]), Some(&new));
        assert!(known.can_decode(newer.id()), "it gets what this node gets");
        known.falls_behind();
        assert!(known.can_decode(new.id()) && !known.can_decode(newer.id()));
        known.state(None, Some(&new));
        assert!(!known.can_decode(new.id()));
    }
}
