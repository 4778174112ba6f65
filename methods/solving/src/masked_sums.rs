//! Sums of all nodes' vectors of which no node sees a part: the masks of `mingle-masking` over the collectives.
//!
//! An attempt begins with an exchange of keys that live as long as it. Each sum then takes two reductions: the largest
//! exponent of all nodes' values, in clear, which sets the scale; and the masked integers. A node that is started again
//! has lost its key, and makes all begin another attempt with others: no node sends two inputs under one mask.
//!
//! Behind the values of each sum stands a one of every node. If their total is not the number of nodes, the masks do not
//! cancel: nodes have seen different results before, which relays can bring about, or one of them sent rubbish.

use std::sync::Arc;

use mingle_masking::{
    Announcement, FixedPoint, MaskingError, Roster, SeededSigner, SumKey, SumMember, SumProtection, SumSigner, Width,
};
use mingle_protocol::collective::{CollectiveError, LARGEST_INPUT, Modulus};

use crate::agreed_masks::AgreedMasks;
use crate::collectives::{Collectives, lock};
use crate::error::SolveError;
use crate::sum_scale::{Precision, Scale};

/// The most members among which 32 bits hold all integers that f32 holds.
const MOST_FOR_HALVES: usize = 64;
/// The most values that are summed as wide integers: statistics of columns, whose sizes may be far apart, keep all their
/// bits. Longer vectors are models.
const MOST_WIDE: usize = 1 << 12;
/// The most numbers in a message of the exchange of keys, if the plan has no more nodes than a quarter of that.
const KEYS: usize = 1 << 15;
/// Bytes that a number of a message carries where it stands for bytes.
const BYTES: usize = 4;

/// The protection of the sums that one node takes part in.
#[derive(Clone, Debug)]
pub enum Sums {
    /// In clear, for this reason: a node of the tree sees the sum of each branch below it, so a leaf's own values.
    Plain(SumProtection),
    /// Masked.
    Masked(Arc<SumMember>),
}

impl Sums {
    /// The sums of all nodes of a simulation, by node. Keys follow from the seed.
    pub fn simulated(protection: SumProtection, nodes: usize, seed: u64) -> Vec<Self> {
        if !protection.is_masked() {
            return vec![Self::Plain(protection); nodes];
        }
        let signers: Vec<SeededSigner> = (0..nodes).map(|node| SeededSigner::new(seed, node)).collect();
        let identities: Arc<[[u8; 32]]> = signers.iter().map(SeededSigner::identity).collect();
        let member = |signer| SumMember {
            context: [0; 32],
            identities: Arc::clone(&identities),
            signer: Box::new(signer) as Box<dyn SumSigner>,
        };
        signers.into_iter().map(|signer| Self::Masked(Arc::new(member(signer)))).collect()
    }

    /// The protection.
    pub fn protection(&self) -> SumProtection {
        match self {
            Self::Plain(reason) => *reason,
            Self::Masked(_) => SumProtection::Masked,
        }
    }

    /// The hash of a problem together with the protection: nodes that differ in it refuse each other's messages.
    pub(crate) fn mark(&self, problem: [u8; 32]) -> [u8; 32] {
        match self {
            Self::Plain(_) => problem,
            Self::Masked(_) => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(b"mingle masked sums 2").update(&problem);
                *hasher.finalize().as_bytes()
            }
        }
    }
}

/// The most words of a masked message in which `longest` values are the most, with those of the check, and of the exchange
/// of keys.
pub(crate) fn longest_message(longest: usize, nodes: usize) -> usize {
    let wide = Width::Wide.words(longest.min(MOST_WIDE) + 1);
    (longest + 1).max(wide).max((nodes * Announcement::BYTES / BYTES).min(KEYS.max(nodes)))
}

impl Collectives {
    /// Exchanges keys with all nodes, and agrees with each on masks for the sums of this attempt.
    pub(crate) async fn agree_on_masks(&mut self, sums: &Sums, attempt: u64) -> Result<(), SolveError> {
        let Sums::Masked(member) = sums else { return Ok(()) };
        let roster = Roster::new(&member.context, attempt, Arc::clone(&member.identities))?;
        let nodes = self.communication.schedule.nodes();
        let members = roster.members();
        // A flood, in which every node sends at once: in a reduction an inner node that was started again would wait for
        // its children, and they would never learn of its attempt.
        let most = self.largest(&[members as f64]).await?;
        if members != nodes || most.iter().any(|(most, _)| *most != members as f64) {
            return Err(MaskingError::Announcements { got: nodes, members }.into());
        }
        let key = SumKey::draw(roster, self.me, member.signer.as_ref())?;
        let commitments = match key.needs_commitments() {
            true => Some(self.gather_bytes(&key.commitment()).await?),
            false => None,
        };
        let announced = self.gather_bytes(&key.announcement().to_bytes()).await?;
        let announced: Vec<Announcement> = announced.iter().map(Announcement::from_bytes).collect();
        let masks = key.agree(&announced, commitments.as_deref())?;
        self.masks = Some(AgreedMasks::new(masks, hash_of(member)));
        Ok(())
    }

    /// The bytes of all nodes at every node, by node.
    async fn gather_bytes<const LENGTH: usize>(&self, own: &[u8; LENGTH]) -> Result<Vec<[u8; LENGTH]>, SolveError> {
        let own: Vec<f64> = own.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes).into()).collect();
        let nodes = self.communication.schedule.nodes();
        let mut rows = vec![Vec::with_capacity(LENGTH); nodes];
        for piece in own.chunks((KEYS / nodes).max(1)) {
            for (member, (row, numbers)) in rows.iter_mut().zip(self.gather(piece).await?).enumerate() {
                for number in numbers {
                    let word = word(number).ok_or(MaskingError::Unreadable { member })?;
                    row.extend(word.to_le_bytes());
                }
            }
        }
        let whole = |(member, row): (usize, Vec<u8>)| {
            <[u8; LENGTH]>::try_from(row).map_err(|_| MaskingError::Unreadable { member }.into())
        };
        rows.into_iter().enumerate().map(whole).collect()
    }

    /// The sum of all nodes' values, place by place, in messages of up to `piece` values. The same bits at all nodes.
    /// Masked, unless the user wants it in clear.
    pub(crate) async fn total_in_pieces(
        &self,
        values: &[f64],
        piece: usize,
        scale: Scale,
        precision: Precision,
    ) -> Result<Vec<f64>, SolveError> {
        let Some(masks) = &self.masks else {
            let mut totals = Vec::with_capacity(values.len());
            for piece in values.chunks(piece) {
                totals.extend(self.plain_total(piece).await?);
            }
            return Ok(totals);
        };
        let fixed = self.agree_on_scale(values, scale, precision).await?;
        let mut totals = Vec::with_capacity(values.len());
        for piece in values.chunks(piece) {
            let total = self.masked_total(masks, &fixed, piece).await?;
            totals.extend(fixed.decode(&total).into_iter().take(piece.len()));
        }
        Ok(totals)
    }

    /// Agrees on the exponent of the largest magnitude of all nodes' values. The node above in the tree sees this one
    /// number of a leaf; all see the largest.
    async fn agree_on_scale(
        &self,
        values: &[f64],
        scale: Scale,
        precision: Precision,
    ) -> Result<FixedPoint, SolveError> {
        if let Some(index) = values.iter().position(|value| value.is_nan() || value.abs() > LARGEST_INPUT) {
            return Err(SolveError::NotFinite(CollectiveError::NotFinite { index, value: values[index] }));
        }
        let own = FixedPoint::exponent_of(values);
        let largest = self.most(&[f64::from(own)]).await?;
        let &[agreed] = &largest[..] else { return Err(SolveError::NoResult) };
        scale.check(agreed, own)?;
        let nodes = self.communication.schedule.nodes();
        let width = match precision {
            _ if values.len() <= MOST_WIDE => Width::Wide,
            Precision::Whole if nodes <= MOST_FOR_HALVES => Width::Half,
            _ => Width::Narrow,
        };
        #[allow(clippy::cast_possible_truncation)] // what does not fit is out of range, and refused
        Ok(FixedPoint::new(width, nodes, agreed.floor() as i64, own)?)
    }

    async fn masked_total(
        &self,
        masks: &AgreedMasks,
        fixed: &FixedPoint,
        values: &[f64],
    ) -> Result<Vec<u64>, SolveError> {
        let (check, modulus): (&[u64], Modulus) = match fixed.width() {
            Width::Half => (&[1], Modulus::HalfWord),
            Width::Narrow => (&[1], Modulus::Word),
            Width::Wide => (&[1, 0], Modulus::TwoWords),
        };
        let mut words = fixed.encode(values);
        words.extend(check);
        // The number of the collective, the same at all nodes, is the nonce of its mask.
        let number = lock(&self.channel).collective().operation() + 1;
        masks.mask(number, fixed.width(), &mut words)?;
        self.begin(|sequence| sequence.begin_modular_sum(&self.communication.trees, modulus, words))?;
        let mut total: Vec<u64> = self.result(|sequence| sequence.summed().map(<[u64]>::to_vec)).await?;
        masks.note(total.iter().copied());
        let members = self.communication.schedule.nodes() as u64;
        let found = total.split_off(total.len() - check.len());
        if found.iter().zip(check).any(|(found, one)| *found != one * members) {
            return Err(MaskingError::Uncancelled.into());
        }
        Ok(total)
    }
}

/// A hash of the identities of all members and of what they agreed on, the same at all and in every attempt.
fn hash_of(member: &SumMember) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"mingle members of sums 1").update(&member.context);
    member.identities.iter().for_each(|identity| {
        hasher.update(identity);
    });
    *hasher.finalize().as_bytes()
}

/// The four bytes that a number stands for.
fn word(number: f64) -> Option<u32> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // compared below
    let word = number as u32;
    (f64::from(word).to_bits() == number.to_bits()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stand_for_no_bytes_are_not_read() {
        assert_eq!([0.0, 7.0, 4_294_967_295.0].map(word), [Some(0), Some(7), Some(u32::MAX)]);
        assert_eq!([-0.0, -1.0, 0.5, 4_294_967_296.0, f64::NAN].map(word), [None; 5]);
    }
}
