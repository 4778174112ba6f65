#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn half() -> Mass {
    Mass::from_units(UNITS_PER_ONE / 2)
}

fn split(pair: &mut PushSum, outgoing: Mass) -> Option<Payload> {
    pair.split(outgoing, &RatioForm::Whole(Codec::F32), &mut Dither::seeded(0))
}

#[test]
fn a_split_and_its_return_restore_the_pair() {
    let start: Vec<f32> = (0..5000).map(|i| (i as f32 * 0.37).sin()).collect();
    let mut pair = PushSum::new(start.clone(), Mass::ONE);
    let payload = split(&mut pair, half()).unwrap();
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
    split(&mut pair, Mass::ONE).unwrap();
    assert_eq!(pair.mass(), Mass::ZERO);
    assert_eq!(*pair.ratio(), [3.0, -1.0]);
    assert_eq!(split(&mut pair, Mass::ZERO), None);
}

#[test]
fn a_node_without_mass_takes_the_ratio_of_the_first_parcel() {
    let mut pair = PushSum::new(vec![9.0, 9.0], Mass::ZERO);
    assert_eq!(*pair.ratio(), [9.0, 9.0]);
    assert_eq!(pair.absorb(half(), &Payload::new(&[1.0, 2.0]).unwrap()), Ok(None));
    assert_eq!(*pair.ratio(), [1.0, 2.0]);
}

#[test]
fn a_ratio_that_is_not_finite_is_never_sent() {
    let mut pair = PushSum::new(vec![1.0], Mass::ONE);
    pair.step(1.0, &[f32::INFINITY]);
    assert_eq!(split(&mut pair, half()), None);
    assert_eq!(pair.mass(), Mass::ONE);
}

#[test]
fn mass_that_does_not_fit_changes_nothing() {
    let mut pair = PushSum::new(vec![1.0], Mass::from_units(u64::MAX));
    let before = pair.numerator().to_vec();
    assert_eq!(pair.absorb(Mass::from_units(1), &Payload::new(&[1.0]).unwrap()), Err(MassOverflow));
    assert_eq!(pair.numerator(), before);
}

#[test]
fn a_snapshot_is_the_numerator_of_its_moment_whatever_happened_before_and_after() {
    let start: Vec<f32> = (0..40_001).map(|i| (i as f32 * 0.37).sin()).collect();
    for codec in Codec::ALL {
        let mut pair = PushSum::new(start.clone(), Mass::ONE);
        let payload = pair.split(half(), &RatioForm::Whole(codec), &mut Dither::seeded(0)).unwrap();
        let after_split = pair.numerator().to_vec();
        let first = pair.snapshot();
        assert_eq!(*first, after_split, "{codec}");
        let _ = pair.split(half(), &RatioForm::Whole(codec), &mut Dither::seeded(1));
        pair.absorb(half(), &payload).unwrap();
        assert_eq!(*pair.snapshot(), *pair.numerator(), "{codec}: a copy that was made is out of date by now");
        pair.step(0.5, &start);
        assert_eq!(*pair.snapshot(), *pair.numerator(), "{codec}");
        assert_eq!(*first, after_split, "{codec}: who has one keeps it");
    }
}

#[test]
fn a_snapshot_is_no_copy_unless_the_numerator_changes_while_it_is_held() {
    let mut pair = PushSum::new(vec![1.0; 1000], Mass::ONE);
    for is_held in [false, true, false] {
        let snapshot = pair.snapshot();
        assert_eq!(snapshot.as_ptr(), pair.numerator().as_ptr());
        let before = snapshot.as_ptr();
        let held = is_held.then_some(snapshot);
        pair.step(1.0, &[1.0; 1000]);
        assert_eq!(pair.numerator().as_ptr() == before, !is_held);
        drop(held);
    }
}

#[test]
fn ratios_that_others_hold_stay_what_they_are() {
    let mut pair = PushSum::new(vec![1.0; 300], Mass::ONE);
    let mut held = Vec::new();
    for step in 1..=6_u8 {
        pair.step(1.0, &[1.0; 300]);
        held.push((f32::from(step) + 1.0, pair.ratio()));
    }
    assert!(held.iter().all(|(value, ratio)| ratio.iter().all(|z| z == value)));
}

/// Numerators of a pair and of parcels under way, added up in f64 from their decoded bytes.
fn total(pairs: &[PushSum], parcels: &[(usize, Mass, Payload)]) -> Vec<f64> {
    let mut total = vec![0.0; pairs[0].dimension()];
    for pair in pairs {
        total.iter_mut().zip(pair.numerator()).for_each(|(total, x)| *total += f64::from(*x));
    }
    for (_, mass, payload) in parcels {
        total.iter_mut().zip(&*payload.values()).for_each(|(total, u)| *total += mass.to_f64() * f64::from(*u));
    }
    total
}

/// Pairs that split and absorb at random, parcels staying under way for long, for 400 events.
fn churn(codec: Codec, dimension: usize, seed: u64, look: impl Fn(&[PushSum], &[(usize, Mass, Payload)])) {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let initial = |i: usize| (0..dimension).map(|k| ((i * 31 + k * 7) % 50) as f32 - 20.0).collect();
    let mut pairs: Vec<PushSum> = (0..4).map(|i| PushSum::new(initial(i), Mass::ONE)).collect();
    let mut parcels: Vec<(usize, Mass, Payload)> = Vec::new();
    for event in 0..400 {
        if rng.random_bool(0.5) && !parcels.is_empty() {
            let (to, mass, payload) = parcels.swap_remove(rng.random_range(0..parcels.len()));
            pairs[to].absorb(mass, &payload).unwrap();
        } else {
            let from = rng.random_range(0..4);
            let part = Mass::from_units(pairs[from].mass().units() / rng.random_range(2..5));
            // One encoding for two receivers, as in a step with two out-links.
            let both = Mass::from_units(2 * (part.units() / 2));
            if let Some(payload) = pairs[from].split(both, &RatioForm::Whole(codec), &mut Dither::seeded(event)) {
                let half = Mass::from_units(both.units() / 2);
                parcels.extend([1, 2].map(|hop| ((from + hop) % 4, half, payload.clone())));
            }
        }
        look(&pairs, &parcels);
    }
}

#[test]
fn mass_and_numerators_are_conserved_at_every_instant_by_every_codec() {
    for codec in Codec::ALL {
        for (dimension, seed) in [(3, 1), (300, 2)] {
            let start = std::cell::RefCell::new(None);
            churn(codec, dimension, seed, |pairs, parcels| {
                let held: u64 = pairs.iter().map(|pair| pair.mass().units()).sum();
                let moving: u64 = parcels.iter().map(|(_, mass, _)| mass.units()).sum();
                assert_eq!(held + moving, 4 * UNITS_PER_ONE);
                let now = total(pairs, parcels);
                let mut start = start.borrow_mut();
                let before = start.get_or_insert_with(|| now.clone());
                for (now, before) in now.iter().zip(before.iter()) {
                    // Roundings of f32 alone: two per event, of numbers up to 100.
                    assert!((now - before).abs() < 1e-3, "{codec}, seed {seed}: {before} became {now}");
                }
            });
        }
    }
}

#[test]
fn what_the_coarsest_codec_leaves_of_the_sums_is_what_the_finest_does() {
    let drift = |codec| {
        let (first, last) = (std::cell::RefCell::new(None), std::cell::RefCell::new(Vec::new()));
        churn(codec, 600, 7, |pairs, parcels| {
            let now = total(pairs, parcels);
            first.borrow_mut().get_or_insert_with(|| now.clone());
            *last.borrow_mut() = now;
        });
        let first = first.into_inner().unwrap();
        last.into_inner().iter().zip(first).map(|(last, first)| (last - first).powi(2)).sum::<f64>().sqrt()
    };
    let finest = drift(Codec::F32);
    for codec in Codec::ALL {
        let drift = drift(codec);
        assert!(drift < 3.0 * finest, "{codec} drifts by {drift:e}, f32 by {finest:e}");
    }
}

#[test]
fn a_sender_that_keeps_nothing_sends_f32_and_keeps_no_residue_worth_naming() {
    for codec in Codec::ALL {
        let mut pair = PushSum::new(vec![0.1, 1.0 / 3.0, -7.7], Mass::from_units(UNITS_PER_ONE / 3));
        let ratio = pair.ratio();
        let payload = pair.split(pair.mass(), &RatioForm::Whole(codec), &mut Dither::seeded(1)).unwrap();
        assert_eq!(payload.codec(), Codec::F32);
        assert!(pair.numerator().iter().all(|x| x.abs() < 1e-6), "{:?}", pair.numerator());
        assert_eq!(pair.ratio(), ratio);
    }
}

#[test]
fn in_steady_state_a_split_writes_into_the_buffer_of_an_earlier_one() {
    let mut pair = PushSum::new(vec![1.0; 100], Mass::ONE);
    let small = Mass::from_units(1);
    let mut addresses = std::collections::BTreeSet::new();
    for seed in 0..20 {
        // Two parcels are outstanding at any time.
        let split =
            |pair: &mut PushSum| pair.split(small, &RatioForm::Whole(Codec::F16), &mut Dither::seeded(seed)).unwrap();
        let outstanding = [split(&mut pair), split(&mut pair)];
        addresses.extend(outstanding.iter().map(|payload| payload.bytes().as_ptr()));
    }
    assert_eq!(addresses.len(), 2);
}

proptest! {
    #[test]
    fn the_measured_distance_is_the_textbook_one(
        own in prop::collection::vec(-10.0f32..10.0, 1..300), seed in 0.0f32..1.0,
    ) {
        let other: Vec<f32> = own.iter().map(|v| v + (v * 3.0 + seed).sin()).collect();
        let mut pair = PushSum::new(own.clone(), Mass::ONE);
        let distance = pair.absorb(half(), &Payload::new(&other).unwrap()).unwrap().unwrap();
        let apart: f64 = own.iter().zip(&other).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let norm: f64 = own.iter().map(|a| f64::from(*a).powi(2)).sum();
        prop_assert!((distance.apart - apart).abs() <= 1e-4 * (apart + 1e-9));
        prop_assert!((distance.own - norm).abs() <= 1e-4 * (norm + 1e-9));
        for ((x, a), b) in pair.numerator().iter().zip(&own).zip(&other) {
            prop_assert_eq!(*x, a + 0.5 * b);
        }
    }
}

/// A pair after a parcel that was clipped to `radius`, with what its weight and its ratio were before.
fn clipped(own: &[f32], mass: Mass, other: &Payload, radius: f64) -> (PushSum, Arc<[f32]>) {
    let mut pair = PushSum::new(own.to_vec(), Mass::ONE);
    let before = pair.ratio();
    let apart = pair.distance_of(other).apart.sqrt();
    pair.absorb_scaled(mass, other, radius / apart).unwrap();
    (pair, before)
}

fn apart(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

proptest! {
    /// For any weight and content of a parcel, the weight is taken to the unit, and the ratio stays within the radius.
    #[test]
    fn a_clipped_parcel_moves_the_ratio_by_no_more_than_the_radius(
        own in prop::collection::vec(-4.0_f32..4.0, 1..600),
        factor in prop::sample::select(vec![-1.0_f32, 10.0, 1e6, 1e30]),
        units in 1..16 * UNITS_PER_ONE,
        radius in 1e-3..10.0_f64,
        codec in prop::sample::select(Codec::ALL.to_vec()),
    ) {
        let said: Vec<f32> = own.iter().map(|z| (z * factor + 1.0).clamp(-MAX_MAGNITUDE, MAX_MAGNITUDE)).collect();
        let other = Payload::encoded(codec, &said, 7).unwrap();
        let mass = Mass::from_units(units);
        let far = PushSum::new(own.clone(), Mass::ONE).distance_of(&other).apart.sqrt();
        prop_assume!(far > radius);
        let (mut pair, before) = clipped(&own, mass, &other, radius);
        prop_assert_eq!(pair.mass().units(), UNITS_PER_ONE + units);
        let moved = apart(&pair.ratio(), &before);
        let share = mass.to_f64() / (1.0 + mass.to_f64());
        let rounding = 1e-5 * (1.0 + apart(&before, &vec![0.0; before.len()]));
        prop_assert!((moved - share * radius).abs() <= 1e-3 * radius + rounding, "{} of {}", moved, radius);
    }
}

#[test]
fn a_pair_without_weight_clips_around_the_last_ratio_it_had() {
    let mut pair = PushSum::new(vec![3.0, 0.0], Mass::ONE);
    split(&mut pair, Mass::ONE).unwrap();
    let far = Payload::new(&[3.0, 100.0]).unwrap();
    assert_eq!(pair.distance_of(&far), Distance { apart: 1e4, own: 9.0 });
    assert_eq!(pair.absorb_scaled(half(), &far, 0.01), Ok(None));
    assert_eq!((pair.mass(), &*pair.ratio()), (half(), &[3.0, 1.0][..]));
}

/// A founder with two coordinates a thousandth beside its reference, after it has handed half of its weight down in four
/// bits.
fn handed_down() -> (PushSum, Payload) {
    let mut pair = PushSum::new(vec![0.25, -3.0], Mass::ONE);
    pair.refer_to_ratio();
    let reference = pair.references().newest().unwrap().clone();
    pair.step(1.0, &[0.001, 0.0003]);
    let form = RatioForm::Difference(Codec::Int4, reference);
    let payload = pair.hand_down(half(), &form, |_| true, &mut Dither::seeded(0)).unwrap();
    (pair, payload)
}

#[test]
fn sender_and_receivers_of_a_ratio_that_is_handed_down_hold_its_bits() {
    let (mut sender, payload) = handed_down();
    let mut receiver = PushSum::new(vec![7.0, 7.0], Mass::ZERO);
    receiver.absorb_handed_down(half(), &payload).unwrap();
    assert_eq!(*sender.ratio(), *payload.values());
    assert_eq!(*receiver.ratio(), *payload.values());
    assert_eq!(sender.references().ids()[0], receiver.references().ids()[0]);
    // The receiver sends on what it got, and not what its numerator has after rounding.
    let quarter = Mass::from_units(UNITS_PER_ONE / 4);
    let again = receiver.hand_down(quarter, &RatioForm::Keyframe, |_| true, &mut Dither::seeded(1)).unwrap();
    assert_eq!(again, payload);
    let whole = receiver.hand_down(Mass::from_units(1), &RatioForm::Keyframe, |_| false, &mut Dither::seeded(2));
    assert_eq!((whole.as_ref().unwrap().codec(), &*whole.unwrap().values()), (Codec::F32, &*payload.values()));
}

#[test]
fn a_pair_goes_on_from_a_record_with_the_ratio_that_it_took_over() {
    let (mut pair, _) = handed_down();
    assert!(!pair.forms_its_ratio());
    let ratio = pair.ratio();
    let restored = |ratio| PushSum::restored(pair.numerator(), pair.mass(), ratio).ratio();
    assert_eq!(restored(Some(ratio.clone())), ratio);
    assert_ne!(restored(None), ratio, "rounding is left in the numerator");
}
