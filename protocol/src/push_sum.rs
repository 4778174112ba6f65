//! The push-sum pair (x, w) and the three things that happen to it.
//!
//! Push-sum (Kempe, Dobra, Gehrke, FOCS 2003) keeps a numerator x and a weight w; their ratio z = x / w is what a node
//! believes. Stochastic gradient push (Assran, Loizou, Ballas, Rabbat, ICML 2019; Nedic and Olshevsky, IEEE TAC 2016)
//! adds the local step to the numerator.
//!
//! ```text
//!   split     payload = x / w          x -= (sum of w_m) payload     w -= sum of w_m
//!   absorb    x += w_m payload         w += w_m
//!   step      x += min(1, w / w*) delta
//! ```
//!
//! A parcel's mass is *defined* as (w_m, w_m payload), and the sender debits exactly that, so whatever rounding the
//! ratio suffers stays with the sender and x is conserved along with w. Every operation is one pass over the vectors.

use std::sync::Arc;

use crate::mass::{Mass, UNITS_PER_ONE};
use crate::payload::Payload;

/// Below this weight (2^-20) the rounding left over in x by earlier splits could outweigh the mass itself, so the
/// ratio is not formed: the node keeps reporting its last one, neither trains nor sends, and waits for mass.
pub const SMALLEST_WORKING_MASS: Mass = Mass::from_units(UNITS_PER_ONE >> 20);

/// Coordinates per partial sum of a norm: short enough for f32, long enough to vectorise.
const NORM_BLOCK: usize = 4096;
/// Independent accumulators of a norm; fixed, so that its bits do not depend on the machine.
const LANES: usize = 16;

/// Numerator, weight and the ratio last formed.
#[derive(Clone, Debug)]
pub(crate) struct PushSum {
    numerator: Vec<f32>,
    mass: Mass,
    last_ratio: Arc<[f32]>,
    last_ratio_is_current: bool,
}

impl PushSum {
    /// A node that starts with `mass` and the ratio `initial`; with no mass its numerator is zero.
    pub(crate) fn new(initial: Vec<f32>, mass: Mass) -> Self {
        let last_ratio = Arc::from(initial.as_slice());
        let mut numerator = initial;
        let weight = weight(mass);
        numerator.iter_mut().for_each(|x| *x *= weight);
        Self { numerator, mass, last_ratio, last_ratio_is_current: true }
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

    /// Whether there is enough mass to form a ratio.
    pub(crate) fn has_working_mass(&self) -> bool {
        self.mass >= SMALLEST_WORKING_MASS
    }

    /// z = x / w, or the last one formed while there is no mass to speak of.
    pub(crate) fn ratio(&mut self) -> Arc<[f32]> {
        if !self.last_ratio_is_current && self.has_working_mass() {
            let inverse = 1.0 / weight(self.mass);
            self.last_ratio = self.numerator.iter().map(|x| x * inverse).collect();
            self.last_ratio_is_current = true;
        }
        Arc::clone(&self.last_ratio)
    }

    /// Takes `outgoing` out of the pair and returns the ratio it is worth; `None`, with nothing changed, when there is
    /// too little mass or the ratio is not finite.
    pub(crate) fn split(&mut self, outgoing: Mass) -> Option<Payload> {
        if !self.has_working_mass() {
            return None;
        }
        let rest = self.mass.checked_sub(outgoing)?;
        let payload = Payload::new(self.ratio()).ok()?;
        scaled_add(&mut self.numerator, -weight(outgoing), payload.values());
        self.mass = rest;
        Some(payload)
    }

    /// Adds a parcel of `mass` at `payload`; returns how far it was from this node's own ratio, `None` when there was
    /// no own ratio to compare with. `Err` when the weights would exceed 2^64 units, with nothing changed.
    pub(crate) fn absorb(&mut self, mass: Mass, payload: &Payload) -> Result<Option<Distance>, MassOverflow> {
        let total = self.mass.checked_add(mass).ok_or(MassOverflow)?;
        let distance = if self.has_working_mass() {
            let inverse = 1.0 / weight(self.mass);
            Some(measured_add(&mut self.numerator, weight(mass), payload.values(), inverse))
        } else {
            scaled_add(&mut self.numerator, weight(mass), payload.values());
            None
        };
        self.mass = total;
        self.last_ratio_is_current = false;
        Ok(distance)
    }

    /// x += `scale` times `delta`.
    pub(crate) fn step(&mut self, scale: f32, delta: &[f32]) {
        scaled_add(&mut self.numerator, scale, delta);
        self.last_ratio_is_current = false;
    }
}

/// The weights of a node would not fit: only a neighbour that makes mass up can cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MassOverflow;

/// Squared distance of a payload from the node's own ratio, and the square of that ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Distance {
    pub(crate) apart: f64,
    pub(crate) own: f64,
}

fn weight(mass: Mass) -> f32 {
    mass.to_f64() as f32
}

/// `x += scale * y`.
fn scaled_add(x: &mut [f32], scale: f32, y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += scale * y;
    }
}

/// `x += scale * y` that also measures y against the ratio `x * inverse` as it was before.
fn measured_add(x: &mut [f32], scale: f32, y: &[f32], inverse: f32) -> Distance {
    let mut distance = Distance::default();
    for (x, y) in x.chunks_mut(NORM_BLOCK).zip(y.chunks(NORM_BLOCK)) {
        let (mut apart, mut own) = ([0.0_f32; LANES], [0.0_f32; LANES]);
        let mut add = |x: &mut f32, y: f32, lane: usize| {
            let ratio = *x * inverse;
            apart[lane] += (y - ratio) * (y - ratio);
            own[lane] += ratio * ratio;
            *x += scale * y;
        };
        let (x_rows, x_rest) = x.as_chunks_mut::<LANES>();
        let (y_rows, y_rest) = y.as_chunks::<LANES>();
        for (x, y) in x_rows.iter_mut().zip(y_rows) {
            for lane in 0..LANES {
                add(&mut x[lane], y[lane], lane);
            }
        }
        for (lane, (x, y)) in x_rest.iter_mut().zip(y_rest).enumerate() {
            add(x, *y, lane);
        }
        distance.apart += apart.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        distance.own += own.iter().map(|&sum| f64::from(sum)).sum::<f64>();
    }
    distance
}

/// The kernels under names the benchmark can call; not part of the interface.
#[doc(hidden)]
pub mod bench {
    use super::{Mass, Payload, PushSum};

    /// A push-sum pair to run the kernels on.
    #[derive(Debug)]
    pub struct Pair(PushSum);

    impl Pair {
        /// A founder with the given ratio.
        pub fn new(initial: Vec<f32>) -> Self {
            Self(PushSum::new(initial, Mass::ONE))
        }

        /// Sends `outgoing` away.
        pub fn split(&mut self, outgoing: Mass) -> Option<Payload> {
            self.0.split(outgoing)
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
        pub fn ratio(&mut self) -> std::sync::Arc<[f32]> {
            self.0.ratio()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn half() -> Mass {
        Mass::from_units(UNITS_PER_ONE / 2)
    }

    #[test]
    fn a_split_and_its_return_restore_the_pair() {
        let start: Vec<f32> = (0..5000).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut pair = PushSum::new(start.clone(), Mass::ONE);
        let payload = pair.split(half()).unwrap();
        assert_eq!(pair.mass(), half());
        let distance = pair.absorb(half(), &payload).unwrap().unwrap();
        assert_eq!(pair.mass(), Mass::ONE);
        assert!(distance.apart < 1e-9 * distance.own);
        for (x, start) in pair.numerator().iter().zip(&start) {
            assert!((x - start).abs() <= 1e-6);
        }
    }

    #[test]
    fn a_node_that_sent_everything_keeps_reporting_its_last_ratio() {
        let mut pair = PushSum::new(vec![3.0, -1.0], Mass::ONE);
        pair.split(Mass::ONE).unwrap();
        assert_eq!(pair.mass(), Mass::ZERO);
        assert_eq!(*pair.ratio(), [3.0, -1.0]);
        assert_eq!(pair.split(Mass::ZERO), None);
    }

    #[test]
    fn a_node_without_mass_takes_the_ratio_of_the_first_parcel() {
        let mut pair = PushSum::new(vec![9.0, 9.0], Mass::ZERO);
        assert_eq!(*pair.ratio(), [9.0, 9.0]);
        assert_eq!(pair.absorb(half(), &Payload::new(vec![1.0, 2.0].into()).unwrap()), Ok(None));
        assert_eq!(*pair.ratio(), [1.0, 2.0]);
    }

    #[test]
    fn a_ratio_that_is_not_finite_is_never_sent() {
        let mut pair = PushSum::new(vec![1.0], Mass::ONE);
        pair.step(1.0, &[f32::INFINITY]);
        assert_eq!(pair.split(half()), None);
        assert_eq!(pair.mass(), Mass::ONE);
    }

    #[test]
    fn mass_that_does_not_fit_changes_nothing() {
        let mut pair = PushSum::new(vec![1.0], Mass::from_units(u64::MAX));
        let before = pair.numerator().to_vec();
        assert_eq!(pair.absorb(Mass::from_units(1), &Payload::new(vec![1.0].into()).unwrap()), Err(MassOverflow));
        assert_eq!(pair.numerator(), before);
    }

    proptest! {
        #[test]
        fn the_measured_distance_is_the_textbook_one(
            own in prop::collection::vec(-10.0f32..10.0, 1..300), seed in 0.0f32..1.0,
        ) {
            let other: Vec<f32> = own.iter().map(|v| v + (v * 3.0 + seed).sin()).collect();
            let mut pair = PushSum::new(own.clone(), Mass::ONE);
            let distance = pair.absorb(half(), &Payload::new(other.clone().into()).unwrap()).unwrap().unwrap();
            let apart: f64 = own.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            let norm: f64 = own.iter().map(|a| f64::from(*a).powi(2)).sum();
            prop_assert!((distance.apart - apart).abs() <= 1e-4 * (apart + 1e-9));
            prop_assert!((distance.own - norm).abs() <= 1e-4 * (norm + 1e-9));
            for ((x, a), b) in pair.numerator().iter().zip(&own).zip(&other) {
                prop_assert_eq!(*x, a + 0.5 * b);
            }
        }
    }
}
