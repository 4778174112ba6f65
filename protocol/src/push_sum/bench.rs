//! The kernels under names the benchmark can call; not part of the interface.

use std::sync::Arc;

use super::{Codec, Dither, Encoded, Mass, Payload, PushSum, RatioForm, Unwritten, codec};

/// A push-sum pair to run the kernels on.
#[derive(Debug)]
pub struct Pair(PushSum);

impl Pair {
    /// A founder with the given ratio.
    pub fn new(initial: Vec<f32>) -> Self {
        Self(PushSum::new(initial, Mass::ONE))
    }

    /// Sends `outgoing` away.
    pub fn split(&mut self, outgoing: Mass, codec: Codec, seed: u64) -> Option<Payload> {
        self.0.split(outgoing, &RatioForm::Whole(codec), &mut Dither::seeded(seed))
    }

    /// Absorbs a parcel.
    pub fn absorb(&mut self, mass: Mass, payload: &Payload) {
        let _ = self.0.absorb(mass, payload);
    }

    /// Adds a local step.
    pub fn step(&mut self, scale: f32, delta: &[f32]) {
        self.0.step(scale, delta);
    }

    /// Forms the ratio.
    pub fn ratio(&mut self) -> Arc<[f32]> {
        self.0.ratio()
    }
}

/// The pass of a split, without hashing: writes `numerator` to `bytes` and subtracts `weight` times the decoded bytes.
pub fn emit(codec: Codec, numerator: &mut [f32], bytes: &mut [u8], weight: f32) -> f32 {
    let unwritten = Unwritten { codec, bytes, base: &[] };
    codec::emit(numerator, unwritten, (weight, 1.0), &mut Dither::seeded(0))
}

/// The pass of an absorption: adds `weight` times the decoded bytes to `numerator`.
pub fn absorb(codec: Codec, numerator: &mut [f32], bytes: &[u8], weight: f32) -> f64 {
    codec::absorb(numerator, Encoded { codec, bytes, base: &[] }, weight, 1.0).apart
}

/// The pass of a payload that is taken over: writes the decoded bytes to `values`.
pub fn decode(codec: Codec, bytes: &[u8], values: &mut [f32]) {
    codec::decode(Encoded { codec, bytes, base: &[] }, values);
}
