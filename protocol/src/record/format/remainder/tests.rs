#![allow(clippy::unwrap_used)]
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::codec::{Codec, Dither};
use crate::push_sum::{PushSum, RatioForm};
use crate::record::tests::{books, owing};
use crate::schedule::NodeId;

/// Books of a node that holds this weight after a split of that weight.
fn after_split(mass: Mass, given: Mass) -> Books {
    let mut books = Books { mass, ..books(7) };
    let mut link = owing(3, &[7]);
    link.outbox[0].mass = given;
    books.outgoing = [(NodeId(1), link)].into();
    books
}

/// A split of real numbers: the numerator that it leaves, its payload, and its books.
fn split(seed: u64, dimension: usize, mass: Mass, given: Mass) -> (Vec<f32>, Vec<u8>, Books) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let initial = (0..dimension).map(|_| rng.random_range(-1.0_f32..1.0) / rng.random_range(1.0..1000.0)).collect();
    let mut pair = PushSum::new(initial, mass);
    // A numerator that is no product of the weight.
    let change: Vec<f32> = (0..dimension).map(|_| rng.random_range(-0.1..0.1)).collect();
    pair.step(1.0, &change);
    let form = RatioForm::Whole(Codec::F32);
    let payload = pair.split(given, &form, &mut Dither::seeded(0)).unwrap();
    let numerator = pair.numerator().to_vec();
    (numerator, payload.bytes().to_vec(), after_split(pair.mass(), given))
}

fn units(share: f64) -> Mass {
    Mass::from_units((share * Mass::ONE.units() as f64) as u64)
}

#[test]
fn a_split_of_weight_one_leaves_nothing_to_write_and_any_other_a_sixth_of_a_vector_at_most() {
    let (none, sixth) = (1000_usize.div_ceil(BLOCK), 4 * 1000 / 6);
    for seed in 0..20 {
        for (mass, given, most) in [
            (Mass::ONE, units(0.5), none),
            (Mass::ONE, units(0.75), none),
            (units(1.25), units(1.25 / 3.0), sixth),
            (units(0.7), units(0.7 * 0.75), sixth),
        ] {
            let (numerator, payload, books) = split(seed, 1000, mass, given);
            let expected = Expected::of(&books, &payload);
            let bytes = encode(&numerator, &expected).unwrap();
            assert!(bytes.len() <= most, "seed {seed}, {mass} of which {given} are given: {} bytes", bytes.len());
            assert_eq!(*decode(&bytes, &expected).unwrap(), *numerator, "seed {seed}");
        }
    }
}

#[test]
fn any_numerator_comes_back_to_the_bit_or_is_written_whole() {
    let special = [0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE, 1e-45, -1e-45, f32::MAX, f32::MIN, 1e30, f32::EPSILON];
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dimension = rng.random_range(0..700);
        let (mut numerator, payload, books) = split(seed, dimension, units(1.3), units(0.4));
        let spoiled = if rng.random_bool(0.5) { rng.random_range(0..=dimension) } else { 0 };
        for x in numerator.iter_mut().take(spoiled) {
            *x = special[rng.random_range(0..special.len())];
        }
        let expected = Expected::of(&books, &payload);
        let Some(bytes) = encode(&numerator, &expected) else {
            assert!(dimension < 2 || spoiled > 0, "seed {seed}: nothing was in the way");
            continue;
        };
        assert!(bytes.len() + LENGTH_BYTES < 4 * dimension, "seed {seed}");
        let read = decode(&bytes, &expected).unwrap();
        let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(&numerator), "seed {seed}");
    }
}

#[test]
fn a_numerator_that_has_nothing_to_do_with_its_payload_is_written_whole() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let numerator: Vec<f32> = (0..1000).map(|_| f32::from_bits(rng.random::<u32>() >> 2)).collect();
    let (_, payload, books) = split(1, 1000, Mass::ONE, units(0.5));
    assert_eq!(encode(&numerator, &Expected::of(&books, &payload)), None);
}

#[test]
fn bytes_that_are_not_written_are_not_read() {
    let (numerator, payload, books) = split(3, 300, units(0.7), units(0.5));
    let expected = Expected::of(&books, &payload);
    let bytes = encode(&numerator, &expected).unwrap();
    let read = |bytes: &[u8]| decode(bytes, &expected);
    assert!(read(&bytes).is_ok() && bytes[0] > 0);
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "{cut} bytes");
    }
    assert_eq!(read(&[&bytes[..], &[0]].concat()), Err(RecordError::Remainder { index: 300 }));
    let with_bits = |bits: u8| [&[bits][..], &bytes[1..]].concat();
    for bits in [0, bytes[0] + 1, 33, 255] {
        assert!(read(&with_bits(bits)).is_err(), "{bits} bits");
    }
    // A width that no difference needs, and bits behind the last difference.
    let wide = [&[9][..], &[0; 256 * 9 / 8], &[0]].concat();
    assert_eq!(read(&wide), Err(RecordError::Remainder { index: 0 }));
    let mut behind = [&[0][..], &[3], &[3; 17]].concat();
    behind[18] = 0xf0;
    assert_eq!(read(&behind), Err(RecordError::Remainder { index: 256 }));
}

#[test]
fn differences_are_integers_in_the_order_of_the_numbers() {
    let numbers = [f32::MIN, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX];
    assert!(numbers.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
    assert!(numbers.iter().all(|x| number(ordered(*x)).to_bits() == x.to_bits()));
    assert_eq!([0, -1, 1, -2, i32::MAX, i32::MIN].map(zigzag), [0, 1, 2, 3, u32::MAX - 1, u32::MAX]);
    assert!([0, -1, 1, i32::MAX, i32::MIN].iter().all(|x| unzigzag(zigzag(*x)) == *x));
}
