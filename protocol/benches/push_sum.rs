//! The passes a round makes over a model of 1,663,370 parameters (a small convolutional network), and the wire.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mingle_protocol::bench::Pair;
use mingle_protocol::wire::{MessageReader, encode};
use mingle_protocol::{Chain, Codec, Generation, Mac, Mass, Message, Parcel, ParcelHeader, Payload, UNITS_PER_ONE};

const DIMENSION: usize = 1_663_370;

fn vector() -> Vec<f32> {
    (0..DIMENSION).map(|i| (i as f32 * 0.1).sin()).collect()
}

fn half() -> Mass {
    Mass::from_units(UNITS_PER_ONE / 2)
}

fn push_sum(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("push_sum");
    group.sample_size(30).throughput(Throughput::Bytes(4 * DIMENSION as u64));
    let payload = Payload::new(&vector()).expect("finite");
    let delta = vector();
    let mut pair = Pair::new(vector());
    group.bench_function("absorb", |b| {
        b.iter(|| pair.absorb(Mass::from_units(1 << 20), black_box(&payload)));
    });
    let mut pair = Pair::new(vector());
    group.bench_function("step", |b| b.iter(|| pair.step(1e-6, black_box(&delta))));
    let mut pair = Pair::new(vector());
    group.bench_function("step and ratio", |b| {
        b.iter(|| {
            pair.step(1e-6, black_box(&delta));
            pair.ratio()
        });
    });
    group.bench_function("step and split", |b| {
        b.iter_batched_ref(
            || Pair::new(vector()),
            |pair| {
                pair.step(1e-6, black_box(&delta));
                pair.split(half(), Codec::F32, 0)
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn wire(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire");
    group.sample_size(30).throughput(Throughput::Bytes(4 * DIMENSION as u64));
    let header = ParcelHeader {
        generation: Generation { counter: 0, plan_hash: [0; 32] },
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: 0,
        acked: 0,
        seq: 1,
        previous: Chain::default(),
        chain: Chain([9; 32]),
        step: 0,
        mass: half(),
        mac: Mac::default(),
    };
    let parcel = Message::Parcel(Parcel { header, payload: Payload::new(&vector()).expect("finite") });
    let bytes: Vec<u8> = encode(parcel.clone()).slices().flatten().copied().collect();
    let shared = Arc::clone(Payload::new(&vector()).expect("finite").shared());
    group.bench_function("payload check and hash", |b| {
        b.iter(|| Payload::from_bytes(Codec::F32, DIMENSION, Arc::clone(&shared)));
    });
    group.bench_function("encode", |b| {
        b.iter(|| encode(parcel.clone()).slices().map(<[u8]>::len).sum::<usize>());
    });
    group.bench_function("decode", |b| {
        b.iter(|| {
            let mut reader = MessageReader::new(DIMENSION);
            bytes.chunks(64 * 1024).map(|piece| reader.feed(piece).expect("sound").len()).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, push_sum, wire);
criterion_main!(benches);
