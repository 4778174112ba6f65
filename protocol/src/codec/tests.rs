#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::payload::{Payload, PayloadError};

/// Dimensions around the lengths of a block and of a stretch of partial sums.
const DIMENSIONS: [usize; 9] = [1, 2, 255, 256, 257, 511, 1000, 64 * 256, 64 * 256 + 77];

fn wave(dimension: usize) -> Vec<f32> {
    (0..dimension).map(|i| (i as f32 * 0.37).sin() * (1.0 + i as f32)).collect()
}

/// The vector that a receiver decodes from an encoding of `values`.
fn round_trip(codec: Codec, values: &[f32], seed: u64) -> Vec<f32> {
    let payload = Payload::encoded(codec, values, seed).unwrap();
    assert_eq!(payload.codec(), codec);
    assert_eq!((payload.dimension(), payload.bytes().len()), (values.len(), codec.encoded_len(values.len())));
    payload.values().into_owned()
}

/// The largest error that `codec` may make at every coordinate.
fn error_bounds(codec: Codec, values: &[f32]) -> Vec<f32> {
    let of = |value: &f32, block: &[f32]| match codec {
        Codec::F32 => 0.0,
        Codec::F16 => (value.abs() / 2048.0).max(2.0_f32.powi(-25)),
        Codec::Bf16 => (value.abs() / 256.0).max(f32::MIN_POSITIVE / 128.0),
        Codec::Int8 => largest_of(block) * (1.0001 / 127.0),
        Codec::Int4 => largest_of(block) * (1.0001 / 14.0),
        Codec::Int3 => largest_of(block) * (1.0001 / 6.0),
    };
    values.chunks(BLOCK).flat_map(|block| block.iter().map(move |value| of(value, block))).collect()
}

#[test]
fn every_codec_stays_within_its_error_at_any_length() {
    for codec in Codec::ALL {
        for dimension in DIMENSIONS {
            let values = wave(dimension);
            let decoded = round_trip(codec, &values, 1);
            for (i, bound) in error_bounds(codec, &values).into_iter().enumerate() {
                let error = (decoded[i] - values[i]).abs();
                assert!(error <= bound, "{codec}, {dimension}, {i}: {} became {}", values[i], decoded[i]);
            }
        }
    }
}

#[test]
fn what_a_codec_can_express_comes_back_to_the_bit() {
    for codec in [Codec::F32, Codec::F16, Codec::Bf16] {
        let values = round_trip(codec, &wave(1000), 0);
        assert_eq!(round_trip(codec, &values, 0), values, "{codec}");
    }
    for codec in [Codec::Int8, Codec::Int4, Codec::Int3] {
        assert_eq!(round_trip(codec, &[0.0, -0.0, 1e-40], 0), [0.0; 3], "{codec}");
    }
    // Whole multiples of the scale, the largest of them on either side of zero.
    for (codec, steps) in [(Codec::Int4, 7), (Codec::Int3, 3)] {
        let values: Vec<f32> = (0..700).map(|i| ((i % (2 * steps + 1)) - steps) as f32).collect();
        assert_eq!(round_trip(codec, &values, 0), values, "{codec}");
    }
}

#[test]
fn the_largest_coordinate_of_a_block_never_overflows_its_byte() {
    for seed in 0..200 {
        let largest = 1.0 + seed as f32 / 7.0;
        let values: Vec<f32> = (0..BLOCK).map(|i| if i % 2 == 0 { largest } else { -largest }).collect();
        for (decoded, value) in round_trip(Codec::Int8, &values, seed).iter().zip(&values) {
            // One unit at most; ±128 would come back with the other sign.
            assert!((decoded - value).abs() <= largest * (1.0001 / 127.0), "seed {seed}: {value} became {decoded}");
        }
    }
}

#[test]
fn stochastic_rounding_is_right_on_average() {
    let values: Vec<f32> = (0..BLOCK).map(|i| (i as f32 - 100.0) / 155.0).collect();
    let rounds = 20_000_u64;
    let mut sums = vec![0.0_f64; BLOCK];
    for seed in 0..rounds {
        for (sum, decoded) in sums.iter_mut().zip(round_trip(Codec::Int8, &values, seed)) {
            *sum += f64::from(decoded);
        }
    }
    // The deviation of one rounding is at most half a unit; of 256 means none is five standard errors off.
    let unit = f64::from(largest_of(&values)) / 127.0;
    let tolerance = 5.0 * 0.5 * unit / (rounds as f64).sqrt();
    for (value, sum) in values.iter().zip(sums) {
        let bias = sum / rounds as f64 - f64::from(*value);
        assert!(bias.abs() < tolerance, "the mean of {value} is off by {bias:e}, more than {tolerance:e}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let encode = |seed| Payload::encoded(Codec::Int8, &wave(1000), seed).unwrap();
    assert_eq!(encode(7), encode(7));
    assert_ne!(encode(7), encode(8));
}

/// Pinned: members of a swarm, and a run and its replay, must agree on every bit.
#[test]
fn the_bytes_of_every_codec_are_what_they_were() {
    for (codec, expected) in [
        (Codec::F32, "1566a42f0163bfa7"),
        (Codec::F16, "24cfe7b5d72a8f3d"),
        (Codec::Bf16, "ff8c3794da0522cb"),
        (Codec::Int8, "eb410e8a26754b80"),
        (Codec::Int4, "a0815a0117f4ec4a"),
        (Codec::Int3, "97632d76c2888915"),
    ] {
        // Products and sums alone: a sine differs from one mathematical library to the next.
        let values: Vec<f32> = (0..1000).map(|i| ((i * i * 37) % 1009) as f32 / 1009.0 - 0.5).collect();
        let hash = blake3::hash(Payload::encoded(codec, &values, 42).unwrap().bytes());
        assert_eq!(&hash.to_hex()[..16], expected, "{codec}");
    }
}

#[test]
fn bytes_that_are_no_finite_vector_are_refused_at_the_coordinate() {
    let cases: [(Codec, usize, &[u8]); 13] = [
        (Codec::F32, 5, &f32::NAN.to_le_bytes()),
        (Codec::F32, 1023, &f32::INFINITY.to_le_bytes()),
        (Codec::F32, 0, &(-2e30_f32).to_le_bytes()),
        (Codec::F16, 999, &[0x00, 0x7c]),
        (Codec::F16, 256, &[0x01, 0xfe]),
        (Codec::Bf16, 700, &[0x80, 0x7f]),
        (Codec::Bf16, 3, &[0xc0, 0xff]),
        (Codec::Bf16, 3, &[0x7f, 0x7f]),
        (Codec::Int8, 256, &f32::NAN.to_le_bytes()),
        (Codec::Int8, 0, &(-0.0_f32).to_le_bytes()),
        (Codec::Int8, 768, &1e29_f32.to_le_bytes()),
        (Codec::Int4, 512, &f32::INFINITY.to_le_bytes()),
        (Codec::Int3, 256, &(-1.0_f32).to_le_bytes()),
    ];
    for (codec, index, bad) in cases {
        let mut bytes = Payload::encoded(codec, &[1.0; 1024], 0).unwrap().bytes().to_vec();
        let (unit_bytes, unit) = codec.unit();
        let at = index / unit * unit_bytes;
        bytes[at..at + bad.len()].copy_from_slice(bad);
        let refused = Payload::from_bytes(codec, 1024, bytes.into());
        assert_eq!(refused, Err(PayloadError::Unreadable { codec, index }), "{bad:?}");
    }
}

#[test]
fn bytes_of_another_length_are_refused() {
    for codec in Codec::ALL {
        for dimension in DIMENSIONS {
            let expected = codec.encoded_len(dimension);
            for bytes in [0, expected - 1, expected + 1] {
                let refused = Payload::from_bytes(codec, dimension, vec![0; bytes].into());
                assert_eq!(refused, Err(PayloadError::Length { codec, dimension, bytes, expected }));
            }
            assert!(Payload::from_bytes(codec, dimension, vec![0; expected].into()).is_ok());
        }
    }
}

#[test]
fn a_codec_gives_way_to_a_finer_one_where_it_is_too_coarse() {
    let even = |codec: Codec, largest| codec.suited_to(largest, 0.5, 0.5);
    let wholes = [Codec::F32, Codec::F16, Codec::Bf16, Codec::Int8];
    assert_eq!(wholes.map(|codec| even(codec, 1.0)), wholes);
    assert_eq!([Codec::Int4, Codec::Int3].map(|codec| even(codec, 1.0)), [Codec::Int8; 2]);
    assert_eq!(even(Codec::F16, 65504.0), Codec::F16);
    assert_eq!(even(Codec::F16, 65505.0), Codec::Bf16, "out of range for a binary16");
    assert_eq!(even(Codec::Int8, 1e20), Codec::Int8, "a scale has the range of a binary32");
    assert_eq!(even(Codec::Bf16, 9e29), Codec::F32, "rounding up could leave the range");
    // What is kept of 1/100 would be off by 100 errors of the codec.
    assert_eq!(
        Codec::ALL.map(|codec| codec.suited_to(1.0, 0.99, 0.01)),
        [Codec::F32, Codec::F16, Codec::F16, Codec::F16, Codec::F16, Codec::F16]
    );
    assert_eq!(Codec::F16.suited_to(1e6, 0.99, 0.01), Codec::F32);
    assert_eq!(Codec::ALL.map(|codec| codec.suited_to(1.0, 1.0, 0.0)), [Codec::F32; 6]);
}

#[test]
fn names_and_numbers_are_one_to_one() {
    for (number, codec) in Codec::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(codec.id()), number);
        assert_eq!(codec.to_string().parse(), Ok(codec));
        assert_eq!(postcard::to_allocvec(&codec).unwrap(), [codec.id()]);
        assert_eq!(serde_json::to_string(&codec).unwrap(), format!("\"{codec}\""));
    }
    assert_eq!("F16".parse::<Codec>(), Err(UnknownCodec { name: "F16".to_owned() }));
    assert!(postcard::from_bytes::<Codec>(&[Codec::ALL.len() as u8]).is_err());
}

/// A sender's pass: the bytes, the numerator that is left, and its largest magnitude.
fn emitted(codec: Codec, numerator: &[f32], base: &[f32], weight: f32, inverse: f32) -> (Vec<u8>, Vec<f32>, f32) {
    let mut left = numerator.to_vec();
    let mut bytes = vec![0; codec.encoded_len(numerator.len())];
    let mut dither = Dither::seeded(3);
    let unwritten = Unwritten { codec, bytes: &mut bytes, base };
    let largest = emit(&mut left, unwritten, (weight, inverse), &mut dither);
    (bytes, left, largest)
}

fn any_codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(Codec::ALL.to_vec())
}

proptest! {
    #[test]
    fn the_sender_debits_to_the_bit_what_the_receiver_decodes(
        codec in any_codec(), has_base: bool, numerator in prop::collection::vec(-100.0_f32..100.0, 1..700), weight in 0.01_f32..0.9,
    ) {
        let inverse = 1.0 / 0.9;
        let base: Vec<f32> = if has_base { numerator.iter().map(|x| 0.9 * x + 1.0).collect() } else { Vec::new() };
        let (bytes, left, largest) = emitted(codec, &numerator, &base, weight, inverse);
        let mut decoded = vec![f32::NAN; numerator.len()];
        decode(Encoded { codec, bytes: &bytes, base: &base }, &mut decoded);
        let expected: Vec<f32> = numerator.iter().zip(&decoded).map(|(x, u)| x - weight * u).collect();
        prop_assert_eq!(&left, &expected);
        prop_assert_eq!(largest, left.iter().fold(0.0_f32, |largest, x| largest.max(x.abs())));
    }

    #[test]
    fn what_is_emitted_and_absorbed_adds_up_whatever_the_codec(
        codec in any_codec(), has_base: bool, numerator in prop::collection::vec(-100.0_f32..100.0, 1..700), weight in 0.01_f32..0.9,
    ) {
        let base: Vec<f32> = if has_base { vec![7.0; numerator.len()] } else { Vec::new() };
        let (bytes, mut left, _) = emitted(codec, &numerator, &base, weight, 1.0);
        absorb(&mut left, Encoded { codec, bytes: &bytes, base: &base }, weight, 1.0);
        for (x, before) in left.iter().zip(&numerator) {
            // Two roundings of f32, nothing of the codec's error.
            prop_assert!((x - before).abs() <= 200.0 * f32::EPSILON, "{} became {}", before, x);
        }
    }

    #[test]
    fn absorbing_measures_what_it_adds(
        codec in any_codec(), own in prop::collection::vec(-9.0_f32..9.0, 1..700), weight in 0.01_f32..0.9, by in 0.1_f32..3.0,
    ) {
        let other: Vec<f32> = own.iter().map(|value| value * by - 0.5).collect();
        let payload = Payload::encoded(codec, &other, 9).unwrap();
        let mut numerator = own.clone();
        let found = absorb(&mut numerator, payload.encoded_vector(), weight, 1.0);
        let expected: Vec<f32> = own.iter().zip(&*payload.values()).map(|(x, u)| x + weight * u).collect();
        let apart: f64 = own.iter().zip(&*payload.values()).map(|(x, u)| f64::from(x - u).powi(2)).sum();
        prop_assert_eq!(&numerator, &expected);
        prop_assert!((found.apart - apart).abs() <= 1e-4 * (apart + 1e-9));
        prop_assert_eq!(found.largest, largest_of(&expected));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_are_a_finite_vector(
        codec in any_codec(), dimension in 1_usize..600, seed: u64, is_exact: bool, length in 0_usize..2500,
    ) {
        let length = if is_exact { codec.encoded_len(dimension) } else { length };
        let mut state = seed;
        let noise: Vec<u8> = (0..length).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        }).collect();
        if let Ok(payload) = Payload::from_bytes(codec, dimension, noise.into()) {
            prop_assert!(payload.values().iter().all(|value| value.abs() <= MAX_MAGNITUDE));
            prop_assert_eq!(payload.values().len(), dimension);
        }
    }
}

#[test]
fn a_coordinate_that_is_not_finite_shows_in_the_largest_magnitude() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for dimension in DIMENSIONS {
            let mut values = wave(dimension);
            values[dimension / 2] = bad;
            assert!(!largest_of(&values).is_finite());
            assert!(!add(&mut wave(dimension), 1.0, &values).is_finite());
        }
    }
}

#[test]
fn the_norm_and_the_largest_magnitude_are_the_textbook_ones_at_every_length_and_scale() {
    for dimension in [0, 1, 255, 256, 257, 16_384, 40_001] {
        for scale in [0.0, 1e-30, 1e-13, 1e-6, 1.0, 1e6, 1e20, 1e30_f32] {
            let values: Vec<f32> = (0..dimension).map(|i| scale * (i as f32 * 0.7).sin()).collect();
            let norm = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let largest = values.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
            let extent = super::extent_of(&values);
            assert_eq!(extent.largest, largest, "{dimension} of {scale:e}");
            assert!((extent.norm - norm).abs() <= 1e-5 * norm, "{dimension} of {scale:e}: {} is {norm}", extent.norm);
        }
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in [0, 300, 700] {
            let mut values = vec![1.0; 701];
            values[place] = bad;
            assert!(!super::extent_of(&values).largest.is_finite(), "{bad} at {place}");
        }
    }
}
