//! Patches between model files: they lead to the same bits, they are small where few numbers changed, and no bytes from
//! elsewhere do any harm.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use half::bf16;
use mingle_mutations::for_each_input;
use mingle_patch::{ModelBytes, PatchError, apply, encode};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A model file of tensors by name, type, shape and bytes, with a remark in its header.
fn file(tensors: &[(&str, Dtype, Vec<usize>, &[u8])], remark: &str) -> ModelBytes {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (name.to_string(), TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    let metadata = HashMap::from([("remark".to_owned(), remark.to_owned())]);
    ModelBytes::parse(safetensors::serialize(views, Some(metadata)).unwrap()).unwrap()
}

fn of_f32(values: &[f32], remark: &str) -> ModelBytes {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    file(&[("w", Dtype::F32, vec![values.len()], &bytes)], remark)
}

fn of_bf16(values: &[f32], remark: &str) -> ModelBytes {
    let bytes: Vec<u8> = values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
    file(&[("w", Dtype::BF16, vec![values.len()], &bytes)], remark)
}

fn normal(rng: &mut ChaCha8Rng, count: usize, deviation: f32) -> Vec<f32> {
    StandardNormal.sample_iter(rng).take(count).map(|value: f32| value * deviation).collect()
}

/// The bytes of a patch that was checked to lead from one file to the other.
fn checked(before: &ModelBytes, after: &ModelBytes) -> Vec<u8> {
    let patch = encode(before, after).unwrap();
    let found = apply(before, &patch).unwrap();
    assert_eq!(found.bytes(), after.bytes());
    assert_eq!(found.digest(), *blake3::hash(after.bytes()).as_bytes());
    patch
}

#[test]
fn any_two_files_of_one_layout_are_a_patch_apart() {
    let seed = 7;
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let layouts: [&[(&str, Dtype, Vec<usize>)]; 5] = [
        &[("a", Dtype::F32, vec![3, 5]), ("b", Dtype::BF16, vec![7]), ("c", Dtype::U8, vec![3])],
        &[("a", Dtype::F16, vec![0]), ("b", Dtype::F64, vec![2]), ("c", Dtype::I64, vec![1])],
        &[("a", Dtype::F32, vec![])],
        &[("a", Dtype::F32, vec![300, 100])],
        &[],
    ];
    for layout in layouts {
        for changed in [0.0, 0.001, 0.1, 0.5, 1.0] {
            let count: Vec<usize> =
                layout.iter().map(|(_, dtype, shape)| shape.iter().product::<usize>() * dtype.bitsize() / 8).collect();
            let before: Vec<Vec<u8>> = count.iter().map(|count| (0..*count).map(|_| rng.random()).collect()).collect();
            let mut after = before.clone();
            for byte in after.iter_mut().flatten() {
                if rng.random_bool(changed) {
                    *byte = rng.random();
                }
            }
            let of = |bytes: &[Vec<u8>], remark: &str| {
                let tensors: Vec<_> = layout
                    .iter()
                    .zip(bytes)
                    .map(|((name, dtype, shape), bytes)| (*name, *dtype, shape.clone(), bytes.as_slice()))
                    .collect();
                file(&tensors, remark)
            };
            checked(&of(&before, "round 1"), &of(&after, "round 22"));
        }
    }
}

#[test]
fn a_model_of_more_numbers_than_a_block_comes_back() {
    let mut before = vec![0.25_f32; (1 << 20) + 12_345];
    let mut after = before.clone();
    for index in (0..after.len()).step_by(777) {
        after[index] = -after[index];
    }
    before[0] = f32::NAN;
    let patch = checked(&of_f32(&before, ""), &of_f32(&after, ""));
    assert!(patch.len() < after.len() * 4 / 500, "{} bytes", patch.len());
    assert!(checked(&of_f32(&after, ""), &of_f32(&after, "")).len() < 250, "nothing changed");
}

/// Shares of a file after one step of AdamW or SGD, by the rule of each: AdamW moves each number by about the learning
/// rate, SGD by the learning rate times a gradient.
#[test]
fn after_a_step_at_a_small_learning_rate_a_patch_of_bf16_is_small() {
    let (seed, count) = (11, 2_000_000);
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let weights = normal(&mut rng, count, 0.02);
    let directions = normal(&mut rng, count, 1.0);
    let shares = |name: &str, moved: &[f32]| {
        let share =
            |before: &ModelBytes, after: &ModelBytes| checked(before, after).len() as f64 / after.bytes().len() as f64;
        let bf16 = share(&of_bf16(&weights, ""), &of_bf16(moved, ""));
        let f32 = share(&of_f32(&weights, ""), &of_f32(moved, ""));
        println!("{name}: {:.2} % of a bf16 file, {:.2} % of an f32 file", 100.0 * bf16, 100.0 * f32);
        (bf16, f32)
    };
    let moved = |step: &dyn Fn(f32) -> f32| -> Vec<f32> {
        weights.iter().zip(&directions).map(|(weight, direction)| weight - step(*direction)).collect()
    };
    let sgd = shares("SGD at 1e-5, gradients of 0.01", &moved(&|direction| 1e-5 * 0.01 * direction));
    assert!(sgd.0 < 0.01, "most numbers are the same");
    let slow = shares("AdamW at 1e-6", &moved(&|direction| 1e-6 * direction.clamp(-1.0, 1.0)));
    assert!(slow.0 < 0.014, "most numbers are the same");
    let adamw = shares("AdamW at 1e-5", &moved(&|direction| 1e-5 * direction.clamp(-1.0, 1.0)));
    // A file of bf16 has half the bytes of one of f32, and int4 an eighth.
    assert!(adamw.0 / 2.0 < 0.125 / 3.0, "a third of int4");
    // What an ideal coder of independent bits would need is no less: the low bytes are noise.
    assert!((0.125..0.5).contains(&adamw.1), "no lossless patch of f32 is as small as int4");
}

#[test]
fn a_patch_of_another_model_or_another_layout_is_refused() {
    let [one, two, three] = [1.0, 2.0, 3.0].map(|value| of_f32(&[value; 100], ""));
    let patch = encode(&one, &two).unwrap();
    assert!(matches!(apply(&three, &patch).unwrap_err(), PatchError::OtherModel { .. }));
    let longer = of_f32(&[1.0; 101], "");
    assert!(matches!(encode(&one, &longer).unwrap_err(), PatchError::OtherLayout));
    let renamed = file(&[("v", Dtype::F32, vec![100], &[0; 400])], "");
    assert!(matches!(encode(&one, &renamed).unwrap_err(), PatchError::OtherLayout));
    let reshaped = file(&[("w", Dtype::F32, vec![10, 10], &[0; 400])], "");
    assert!(matches!(encode(&one, &reshaped).unwrap_err(), PatchError::OtherLayout));
}

#[test]
fn a_patch_with_any_changed_byte_or_cut_anywhere_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let before = normal(&mut rng, 400, 0.02);
    let mut few = before.clone();
    few.iter_mut().step_by(37).for_each(|value| *value += 1e-4);
    let many: Vec<f32> = before.iter().map(|value| value + 1e-4).collect();
    for after in [few, many] {
        let (before, after) = (of_f32(&before, "before"), of_f32(&after, "after"));
        let patch = checked(&before, &after);
        for at in 0..patch.len() {
            assert!(apply(&before, &patch[..at]).is_err(), "cut at {at}");
            for change in [1, 0x80, 0xff] {
                let mut changed = patch.clone();
                changed[at] ^= change;
                // A stream of deflate has bits that do not matter: the digest says whether the model is the same.
                if let Ok(found) = apply(&before, &changed) {
                    assert_eq!(found.bytes(), after.bytes(), "byte {at}");
                }
            }
        }
        assert!(matches!(apply(&before, &[patch, vec![0]].concat()).unwrap_err(), PatchError::Trailing));
    }
}

#[test]
fn mutated_patches_break_nothing() {
    let before = of_f32(&[0.5; 300], "");
    let mut changed = [0.5; 300];
    changed[7] = 0.75;
    let seeds: Vec<Vec<u8>> = [of_f32(&changed, ""), of_f32(&[0.25; 300], "x"), before.clone()]
        .map(|after| encode(&before, &after).unwrap())
        .into();
    for_each_input("patches of models", &seeds, |input| match apply(&before, input) {
        Ok(after) => assert!(after.has_layout_of(&before)),
        Err(error) => assert!(!error.to_string().is_empty()),
    });
}

#[test]
fn a_short_patch_that_claims_much_is_refused_before_it_takes_room() {
    let before = of_f32(&[0.5; 8], "");
    let head = [b"mingpat1".as_slice(), &before.digest(), &[0; 32]].concat();
    let long = |length: u32| [head.as_slice(), &length.to_le_bytes(), &[1], &2_u32.to_le_bytes(), &[3, 0]].concat();
    assert!(matches!(apply(&before, &long(u32::MAX)).unwrap_err(), PatchError::LongHeader { .. }));
    assert!(matches!(apply(&before, &long(1000)).unwrap_err(), PatchError::Piece));
}
