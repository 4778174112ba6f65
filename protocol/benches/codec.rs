//! What a parcel of 1,663,370 coordinates costs its sender and its receiver in each codec, beside the cost of copying the
//! same vector: the passes are meant to be limited by memory, not by arithmetic.
//!
//! Throughput counts the bytes a pass has to read and write, so the figures of one run compare with each other: `copy`
//! reads one f32 vector and writes one; `emit` and `absorb` read and write the numerator, and write or read the parcel.
//! The hash of a parcel is not part of `emit`; `split` is the whole, with its check, its hash and its buffers.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mingle_protocol::bench::{Pair, absorb, emit};
use mingle_protocol::{Codec, Mass};

const DIMENSION: usize = 1_663_370;
const VECTOR_BYTES: u64 = 4 * DIMENSION as u64;
/// So little that the numerator stays what it is for any number of passes.
const WEIGHT: f32 = 1e-12;

fn vector() -> Vec<f32> {
    (0..DIMENSION).map(|i| (i as f32 * 0.1).sin()).collect()
}

fn moved(codec: Codec) -> u64 {
    2 * VECTOR_BYTES + codec.encoded_len(DIMENSION) as u64
}

fn passes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    group.sample_size(30);
    let (source, mut target) = (vector(), vector());
    group.throughput(Throughput::Bytes(2 * VECTOR_BYTES));
    group.bench_function("copy", |b| b.iter(|| black_box(&mut target).copy_from_slice(black_box(&source))));
    let mut numerator = vector();
    for codec in Codec::ALL {
        let mut bytes = vec![0; codec.encoded_len(DIMENSION)];
        group.throughput(Throughput::Bytes(moved(codec)));
        group.bench_function(format!("emit {codec}"), |b| {
            b.iter(|| emit(codec, black_box(&mut numerator), black_box(&mut bytes), WEIGHT));
        });
        group.bench_function(format!("absorb {codec}"), |b| {
            b.iter(|| absorb(codec, black_box(&mut numerator), black_box(&bytes), WEIGHT));
        });
        let mut pair = Pair::new(vector());
        let small = Mass::from_units(1);
        group.bench_function(format!("split {codec}"), |b| b.iter(|| pair.split(small, codec, 0)));
    }
    group.finish();
}

/// The same passes in turn with copies, so that a busy machine disturbs both alike, as a table of ratios.
fn ratios(_: &mut Criterion) {
    let (source, mut target, mut numerator) = (vector(), vector(), vector());
    let mut copy = || black_box(&mut target).copy_from_slice(black_box(&source));
    println!("\nspeed in units of that of copy_from_slice\npass             time  per byte moved  per coordinate");
    for codec in Codec::ALL {
        let mut bytes = vec![0; codec.encoded_len(DIMENSION)];
        let per_byte = moved(codec) as f64 / (2 * VECTOR_BYTES) as f64;
        let mut print = |name: &str, pass: &mut dyn FnMut()| {
            let (copied, passed) = medians(&mut copy, pass);
            let ratio = copied.as_secs_f64() / passed.as_secs_f64();
            println!("{name:<6} {codec:<4} {passed:>9.1?}  {:>14.2}  {ratio:>14.2}", ratio * per_byte);
        };
        print("emit", &mut || {
            emit(codec, black_box(&mut numerator), black_box(&mut bytes), WEIGHT);
        });
        print("absorb", &mut || {
            absorb(codec, black_box(&mut numerator), black_box(&bytes), WEIGHT);
        });
    }
}

fn medians(first: &mut dyn FnMut(), second: &mut dyn FnMut()) -> (Duration, Duration) {
    const ROUNDS: usize = 101;
    let (mut firsts, mut seconds): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (time(first), time(second))).unzip();
    firsts.sort_unstable();
    seconds.sort_unstable();
    (firsts[ROUNDS / 2], seconds[ROUNDS / 2])
}

#[allow(clippy::disallowed_methods)] // What is banned in a node is what a benchmark is for.
fn time(pass: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    pass();
    start.elapsed()
}

criterion_group!(benches, passes, ratios);
criterion_main!(benches);
