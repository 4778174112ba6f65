//! The push-sum pair (x, w) and its three operations.
//!
//! Push-sum (Kempe, Dobra, Gehrke, FOCS 2003) keeps a numerator x and a weight w; their ratio z = x / w is a node's
//! model or estimate. Stochastic gradient push (Assran, Loizou, Ballas, Rabbat, ICML 2019; Nedic and Olshevsky, IEEE
//! TAC 2016) adds the local step to the numerator.
//!
//! ```text
//!   split     payload = x / w          x -= (sum of w_m) payload     w -= sum of w_m
//!   absorb    x += w_m payload         w += w_m
//!   step      x += min(1, w / w*) delta
//! ```
//!
//! A parcel's mass is *defined* as (w_m, w_m payload), and the sender debits exactly that, so whatever rounding the
//! ratio suffers stays with the sender and x is conserved along with w. Every operation is one pass over the vectors.
//!
//! A ratio that is handed down to nodes without weight (see `reference`) is taken over by all of them: z is then the
//! payload's vector to the bit, although x / w differs from it by what rounding left in x. The next step or absorption
//! ends that, and the remainder is part of z again.

#[doc(hidden)]
#[cfg(feature = "kernels")]
pub mod bench;

use std::sync::Arc;

use crate::codec::{self, Absorbed, BufferPool, Codec, Distance, Dither, Encoded, MOST_IDLE_BYTES, Unwritten};
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::payload::{MAX_MAGNITUDE, Payload};
use crate::reference::{Reference, References};
use crate::window::WINDOW;

/// Below this weight (2^-20) the rounding left over in x by earlier splits could outweigh the mass itself, so the
/// ratio is not formed: the node keeps reporting its last one, neither trains nor sends, and waits for mass.
pub const SMALLEST_WORKING_MASS: Mass = Mass::from_units(UNITS_PER_ONE >> 20);

/// Numerator, weight and the ratio last formed.
#[derive(Clone, Debug)]
pub(crate) struct PushSum {
    /// Shared with records that are on their way to the disk: it is copied when it changes before they are there.
    numerator: Arc<[f32]>,
    /// The largest magnitude in the numerator, measured by the pass that changed it last.
    largest: f32,
    mass: Mass,
    last_ratio: Arc<[f32]>,
    last_ratio_is_current: bool,
    /// Payloads made here: one being written, and those that wait in outboxes.
    payloads: BufferPool<u8>,
    /// Earlier numerators, which are on their way to the disk.
    numerators: BufferPool<f32>,
    /// Earlier ratios that others hold.
    ratios: BufferPool<f32>,
    /// A parcel's ratio while it is clipped; empty before the first one that was.
    clipped: Vec<f32>,
    /// The payload whose vector the ratio is, to the bit, while it is.
    taken_over: Option<Payload>,
    references: References,
}

/// The form in which a split sends the ratio.
#[derive(Clone, Debug)]
pub(crate) enum RatioForm {
    /// The ratio, in a codec that suits the share of the weight that stays.
    Whole(Codec),
    /// The difference to a reference.
    Difference(Codec, Reference),
    /// The ratio in 16 bits, whatever stays: a receiver has no reference in common with the sender.
    Keyframe,
}

impl PushSum {
    /// A node that starts with `mass` and the ratio `initial`; with no mass its numerator is zero.
    pub(crate) fn new(initial: Vec<f32>, mass: Mass) -> Self {
        let weight = weight(mass);
        let numerator: Arc<[f32]> = initial.iter().map(|z| z * weight).collect();
        let last_ratio = Arc::from(initial);
        let largest = codec::largest_of(&numerator);
        Self {
            numerator,
            largest,
            mass,
            last_ratio,
            last_ratio_is_current: true,
            payloads: BufferPool::new(WINDOW + 1),
            numerators: BufferPool::new(2),
            ratios: BufferPool::new(2),
            clipped: Vec::new(),
            taken_over: None,
            references: References::default(),
        }
    }

    /// The pair of a node that begins anew with the ratio `initial`. The references stay.
    pub(crate) fn begin_anew(&mut self, initial: Vec<f32>, mass: Mass) {
        let references = std::mem::take(&mut self.references);
        *self = Self { references, ..Self::new(initial, mass) };
    }

    /// The pair as a record has it; `ratio` is the last one where the numerator is not enough to form it, or where it was
    /// taken over.
    pub(crate) fn restored(numerator: &[f32], mass: Mass, ratio: Option<Arc<[f32]>>) -> Self {
        let mut pair = Self::new(numerator.to_vec(), Mass::ONE);
        pair.mass = mass;
        pair.last_ratio_is_current = false;
        if let Some(ratio) = ratio.filter(|ratio| ratio.len() == numerator.len()) {
            pair.last_ratio = ratio;
            pair.last_ratio_is_current = pair.has_working_mass();
        }
        pair
    }

    /// The vectors that differences may refer to.
    pub(crate) fn references(&self) -> &References {
        &self.references
    }

    /// Makes the present ratio a reference.
    pub(crate) fn refer_to_ratio(&mut self) {
        let ratio = self.ratio();
        Reference::new(ratio).into_iter().for_each(|reference| self.references.add(reference));
    }

    /// Gives up all mass; the last ratio stays what it is.
    pub(crate) fn discard(&mut self) {
        self.ratio();
        self.taken_over = None;
        self.numerator_mut().fill(0.0);
        self.largest = 0.0;
        self.mass = Mass::ZERO;
    }

    pub(crate) fn mass(&self) -> Mass {
        self.mass
    }

    pub(crate) fn dimension(&self) -> usize {
        self.numerator.len()
    }

    pub(crate) fn numerator(&self) -> &[f32] {
        &self.numerator
    }

    /// Returns `true` if the ratio follows from numerator and mass.
    pub(crate) fn forms_its_ratio(&self) -> bool {
        self.has_working_mass() && self.taken_over.is_none()
    }

    /// Returns `true` if there is enough mass to form a ratio.
    pub(crate) fn has_working_mass(&self) -> bool {
        self.mass >= SMALLEST_WORKING_MASS
    }

    /// z = x / w, or the last one formed while there is no mass to speak of.
    pub(crate) fn ratio(&mut self) -> Arc<[f32]> {
        if !self.last_ratio_is_current && self.has_working_mass() {
            let inverse = 1.0 / weight(self.mass);
            if self.last_ratio.len() != self.numerator.len() || Arc::get_mut(&mut self.last_ratio).is_none() {
                let unused = self.ratios.take(self.numerator.len());
                self.ratios.put(std::mem::replace(&mut self.last_ratio, unused));
            }
            // No other reference to it is left now.
            let last = Arc::get_mut(&mut self.last_ratio).unwrap_or_default();
            last.iter_mut().zip(&*self.numerator).for_each(|(last, x)| *last = x * inverse);
            self.last_ratio_is_current = true;
        }
        Arc::clone(&self.last_ratio)
    }

    /// An upper bound on the norm of the ratio, without a pass over it.
    pub(crate) fn largest_norm(&self) -> f64 {
        if !self.has_working_mass() {
            return f64::INFINITY;
        }
        f64::from(self.largest) / self.mass.to_f64() * (self.dimension() as f64).sqrt()
    }

    /// Takes `outgoing` out of the pair and returns the ratio it is worth, in the given form or a finer one; `None`, with
    /// nothing changed, when there is too little mass or the ratio is not finite.
    ///
    /// One pass: the ratio is formed, encoded and debited while it is in the cache.
    pub(crate) fn split(&mut self, outgoing: Mass, form: &RatioForm, dither: &mut Dither) -> Option<Payload> {
        let rest = self.mass.checked_sub(outgoing).filter(|_| self.has_working_mass())?;
        let inverse = 1.0 / weight(self.mass);
        let largest = self.largest * inverse;
        if largest.is_nan() || largest > MAX_MAGNITUDE {
            return None;
        }
        if rest < SMALLEST_WORKING_MASS {
            // No ratio will be formed of what is left: keep the present one.
            self.ratio();
        }
        let (codec, reference) = match form {
            RatioForm::Difference(codec, reference) if Reference::can_have(largest) => (*codec, Some(reference)),
            RatioForm::Difference(..) | RatioForm::Keyframe => (Codec::F16.suited_to(largest, 0.0, 1.0), None),
            RatioForm::Whole(codec) => (codec.suited_to(largest, outgoing.to_f64(), rest.to_f64()), None),
        };
        let mut buffer = self.payloads.take(codec.encoded_len(self.dimension()));
        let bytes = Arc::get_mut(&mut buffer)?;
        let base = reference.map_or(&[][..], |reference| reference.values());
        let unwritten = Unwritten { codec, bytes, base };
        self.largest = codec::emit(self.numerator_mut(), unwritten, (weight(outgoing), inverse), dither);
        self.mass = rest;
        // Rounding stays here and changes the ratio; without any it is what it was.
        if codec != Codec::F32 {
            self.forget_ratio();
        }
        self.taken_over = None;
        self.payloads.put(Arc::clone(&buffer));
        let payload = Payload::of(codec, self.dimension(), buffer);
        Some(match reference {
            Some(reference) => payload.against(reference),
            None => payload,
        })
    }

    /// As [`split`](Self::split), for receivers without weight, which take the ratio over to the bit: so does this node.
    /// A node that has taken a ratio over itself sends the same payload again, if all receivers can decode it, or else
    /// the same vector.
    pub(crate) fn hand_down(
        &mut self,
        outgoing: Mass,
        form: &RatioForm,
        can_decode: impl Fn(&Payload) -> bool,
        dither: &mut Dither,
    ) -> Option<Payload> {
        let Some(payload) = self.taken_over.take().filter(|_| self.last_ratio_is_current) else {
            let payload = self.split(outgoing, form, dither)?;
            self.take_over(&payload);
            return Some(payload);
        };
        let sent = if can_decode(&payload) { payload.clone() } else { Payload::new(&self.last_ratio).ok()? };
        self.mass = self.mass.checked_sub(outgoing)?;
        let ratio = Arc::clone(&self.last_ratio);
        self.largest = codec::add(self.numerator_mut(), -weight(outgoing), &ratio);
        self.taken_over = Some(payload);
        Some(sent)
    }

    /// Makes the vector of a payload the ratio, to the bit, and a reference.
    fn take_over(&mut self, payload: &Payload) {
        let mut ratio = self.ratios.take(self.dimension());
        codec::decode(payload.encoded_vector(), Arc::get_mut(&mut ratio).unwrap_or_default());
        self.ratios.put(std::mem::replace(&mut self.last_ratio, ratio));
        self.last_ratio_is_current = true;
        self.taken_over = Some(payload.clone());
        self.refer_to_ratio();
    }

    /// Takes all mass out, however little, in full precision; a pair with too little mass to form a ratio sends its last
    /// one.
    pub(crate) fn split_all(&mut self, dither: &mut Dither) -> Option<Payload> {
        if self.has_working_mass() {
            return self.split(self.mass, &RatioForm::Whole(Codec::F32), dither);
        }
        let payload = Payload::new(&self.last_ratio).ok()?;
        self.discard();
        Some(payload)
    }

    /// The numerator as it is now, `[dimension]`. It is not copied unless it changes while this is held.
    pub(crate) fn snapshot(&self) -> Arc<[f32]> {
        Arc::clone(&self.numerator)
    }

    /// The numerator, to be changed: a copy of it where somebody holds it as it is.
    fn numerator_mut(&mut self) -> &mut [f32] {
        if Arc::get_mut(&mut self.numerator).is_none() {
            let mut copy = self.numerators.take(self.numerator.len());
            Arc::get_mut(&mut copy).unwrap_or_default().copy_from_slice(&self.numerator);
            self.numerators.put(std::mem::replace(&mut self.numerator, copy));
        }
        // No other reference to it is left now.
        Arc::get_mut(&mut self.numerator).unwrap_or_default()
    }

    /// Adds a parcel of `mass` at `payload`; returns its distance from this node's own ratio, `None` when there was no
    /// own ratio to compare with. `Err` when the weights would exceed 2^64 units, with nothing changed.
    pub(crate) fn absorb(&mut self, mass: Mass, payload: &Payload) -> Result<Option<Distance>, MassOverflow> {
        self.absorb_vector(mass, payload.encoded_vector())
    }

    /// As [`absorb`](Self::absorb), of a parcel that was handed down: a node without weight takes its ratio over.
    pub(crate) fn absorb_handed_down(
        &mut self,
        mass: Mass,
        payload: &Payload,
    ) -> Result<Option<Distance>, MassOverflow> {
        let had_none = self.mass.is_zero();
        let distance = self.absorb(mass, payload)?;
        if had_none && self.has_working_mass() {
            self.take_over(payload);
        }
        Ok(distance)
    }

    fn absorb_vector(&mut self, mass: Mass, encoded: Encoded<'_>) -> Result<Option<Distance>, MassOverflow> {
        let total = self.mass.checked_add(mass).ok_or(MassOverflow)?;
        let has_ratio = self.has_working_mass();
        let inverse = if has_ratio { 1.0 / weight(self.mass) } else { 0.0 };
        let Absorbed { apart, own, largest } = codec::absorb(self.numerator_mut(), encoded, weight(mass), inverse);
        self.mass = total;
        self.largest = largest;
        self.taken_over = None;
        self.forget_ratio();
        Ok(has_ratio.then_some(Distance { apart, own }))
    }

    /// The distance of `payload` from this node's own ratio, or from the last one formed while there is no mass to
    /// speak of.
    pub(crate) fn distance_of(&self, payload: &Payload) -> Distance {
        let (center, inverse) = self.center();
        codec::distance(center, payload.encoded_vector(), inverse)
    }

    /// Absorbs a parcel as if its ratio were `z + scale (payload - z)`, where z is this node's own: self-centred
    /// clipping (He, Karimireddy, Jaggi, arXiv 2202.01545, equation 4), for a `scale` of radius over distance. The
    /// weight is that of the parcel, exactly; what is left out of x is gone.
    pub(crate) fn absorb_scaled(
        &mut self,
        mass: Mass,
        payload: &Payload,
        scale: f64,
    ) -> Result<Option<Distance>, MassOverflow> {
        let mut values = std::mem::take(&mut self.clipped);
        values.resize(self.dimension(), 0.0);
        codec::decode(payload.encoded_vector(), &mut values);
        let ((center, inverse), scale) = (self.center(), scale as f32);
        for (value, x) in values.iter_mut().zip(center) {
            let ratio = x * inverse;
            *value = ratio + scale * (*value - ratio);
        }
        let bytes = bytemuck::cast_slice(&values);
        let absorbed = self.absorb_vector(mass, Encoded { codec: Codec::F32, bytes, base: &[] });
        self.clipped = values;
        absorbed
    }

    /// The vector that distances are measured from, and the factor it is to be multiplied by.
    fn center(&self) -> (&[f32], f32) {
        if self.has_working_mass() { (&self.numerator, 1.0 / weight(self.mass)) } else { (&self.last_ratio, 1.0) }
    }

    /// x += `scale` times `delta`.
    pub(crate) fn step(&mut self, scale: f32, delta: &[f32]) {
        self.largest = codec::add(self.numerator_mut(), scale, delta);
        self.taken_over = None;
        self.forget_ratio();
    }

    /// Notes that the ratio has changed. A large one is freed, where it can be formed again.
    fn forget_ratio(&mut self) {
        self.last_ratio_is_current = false;
        if self.has_working_mass() && size_of_val(&*self.last_ratio) > MOST_IDLE_BYTES {
            self.last_ratio = Arc::from([]);
        }
    }
}

/// The weights of a node would not fit: only a neighbour that makes mass up can cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MassOverflow;

fn weight(mass: Mass) -> f32 {
    mass.to_f64() as f32
}

#[cfg(test)]
mod tests;
