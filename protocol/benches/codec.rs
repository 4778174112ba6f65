//! The cost of a parcel of 1,663,370 coordinates to its sender and its receiver in each codec, beside a STREAM triad,
//! `a = b + s c`, over vectors of the same length: the passes are meant to be limited by memory, not by arithmetic.
//!
//! Both count the bytes that they have to read and write. `emit` and `absorb` read and write the numerator, and write
//! or read the parcel; `decode` reads the parcel and writes a vector; `add` reads and writes the numerator and reads a
//! change of it; the triad reads two vectors and writes one. The last rows count the bytes of the vector alone, as the
//! throughput of a codec is usually given. The hash of a parcel is not part of `emit`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mingle_bench::{ComparisonRow, Turns, in_turns, print_head};
use mingle_protocol::bench::{Pair, absorb, decode, emit};
use mingle_protocol::{Codec, Mass};

const DIMENSION: usize = 1_663_370;
const VECTOR_BYTES: usize = 4 * DIMENSION;
const TURNS: usize = 101;
/// So little that the numerator stays what it is for any number of passes.
const WEIGHT: f32 = 1e-12;

fn vector() -> Vec<f32> {
    (0..DIMENSION).map(|i| (i as f32 * 0.1).sin()).collect()
}

fn moved(codec: Codec) -> usize {
    2 * VECTOR_BYTES + codec.encoded_len(DIMENSION)
}

fn passes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    group.sample_size(30);
    let mut numerator = vector();
    for codec in Codec::ALL {
        let mut bytes = vec![0; codec.encoded_len(DIMENSION)];
        group.throughput(Throughput::Bytes(moved(codec) as u64));
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

fn triad(a: &mut [f32], b: &[f32], c: &[f32]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 1.5 * c;
    }
}

fn ratios(_: &mut Criterion) {
    let (mut a, b, c, mut numerator, mut values) = (vector(), vector(), vector(), vector(), vector());
    let mut beside_triad =
        |pass: &mut dyn FnMut()| in_turns(TURNS, pass, || triad(black_box(&mut a), black_box(&b), black_box(&c)));
    let row = |what: String, turns: &Turns, bytes| {
        ComparisonRow::of_bytes("mixing", what, "triad", turns, (bytes, 3 * VECTOR_BYTES)).print();
    };
    print_head("mixing, bytes moved");
    let mut pair = Pair::new(vector());
    row("add f32".to_owned(), &beside_triad(&mut || pair.step(1e-12, black_box(&c))), 3 * VECTOR_BYTES);
    let mut encoding = Vec::new();
    for codec in Codec::ALL {
        let mut bytes = vec![0; codec.encoded_len(DIMENSION)];
        let emitted = beside_triad(&mut || {
            emit(codec, black_box(&mut numerator), black_box(&mut bytes), WEIGHT);
        });
        let absorbed = beside_triad(&mut || {
            absorb(codec, black_box(&mut numerator), black_box(&bytes), WEIGHT);
        });
        row(format!("emit {codec}"), &emitted, moved(codec));
        let decoded = beside_triad(&mut || decode(codec, black_box(&bytes), black_box(&mut values)));
        row(format!("absorb {codec}"), &absorbed, moved(codec));
        row(format!("decode {codec}"), &decoded, VECTOR_BYTES + bytes.len());
        encoding.push((format!("emit {codec}, vector bytes"), emitted));
        encoding.push((format!("absorb {codec}, vector bytes"), absorbed));
    }
    print_head("codecs, bytes of the vector");
    encoding.into_iter().for_each(|(what, turns)| row(what, &turns, VECTOR_BYTES));
}

criterion_group!(benches, passes, ratios);
criterion_main!(benches);
