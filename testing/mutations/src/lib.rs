//! Changed copies of valid inputs, for tests of all code that reads bytes from elsewhere.
//!
//! The fuzz targets in `fuzz/` are guided by coverage and built on their own. Crates that depend on libp2p, burn or
//! clap would make them slow to build. The decoders of those crates get inputs from here, in their own tests, without
//! coverage. `MINGLE_FUZZ_EXECUTIONS` sets the number of inputs that each test tries.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The number of inputs of each test, unless `MINGLE_FUZZ_EXECUTIONS` sets another.
const EXECUTIONS: u64 = 2_000;
/// The most bytes of a changed copy.
const MAX_BYTES: usize = 8_192;
/// The most changes of one copy.
const MAX_CHANGES: u32 = 6;

/// Bytes at which decoders tend to decide: ends of ranges, signs, quotes, separators.
const EDGES: [u8; 16] = [0, 1, 0x7f, 0x80, 0xff, 0xfe, b'\n', b'\r', b',', b'"', b'{', b'}', b'[', b'-', b'.', b'9'];

/// Calls `check` with each seed, and then with changed copies of them. If it panics, the input is printed and the panic
/// continues. The same name gives the same inputs.
pub fn for_each_input(name: &str, seeds: &[Vec<u8>], mut check: impl FnMut(&[u8])) {
    let asked = std::env::var("MINGLE_FUZZ_EXECUTIONS").ok().and_then(|number| number.parse().ok());
    let executions = asked.unwrap_or(EXECUTIONS);
    let mut mutations = Mutations::of(name, seeds);
    let began = Instant::now();
    for number in 0..executions {
        let input = match seeds.get(number as usize) {
            Some(seed) => seed.clone(),
            None => mutations.next_input(),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            eprintln!("{name}: input {number} broke it: {}", hex::encode(&input));
            resume_unwind(panic);
        }
    }
    println!("{name}: {executions} executions in {:.1} s", began.elapsed().as_secs_f64());
}

/// Changed copies of seeds.
#[derive(Debug)]
pub struct Mutations<'a> {
    seeds: &'a [Vec<u8>],
    rng: ChaCha8Rng,
}

impl<'a> Mutations<'a> {
    /// The changed copies of `seeds` that belong to this name.
    pub fn of(name: &str, seeds: &'a [Vec<u8>]) -> Self {
        let number = name.bytes().fold(0_u64, |number, byte| number.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Self { seeds, rng: ChaCha8Rng::seed_from_u64(number) }
    }

    /// The next changed copy.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.a_seed();
        for _ in 0..self.rng.random_range(1..=MAX_CHANGES) {
            self.change(&mut input);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn a_seed(&mut self) -> Vec<u8> {
        if self.seeds.is_empty() {
            return Vec::new();
        }
        self.seeds[self.rng.random_range(0..self.seeds.len())].clone()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.rng.random_range(0..=input.len());
        let end = self.rng.random_range(at..=input.len().min(at + 64));
        match self.rng.random_range(0..8) {
            0 if at < input.len() => input[at] ^= 1 << self.rng.random_range(0..8),
            1 if at < input.len() => input[at] = self.rng.random(),
            2 if at < input.len() => input[at] = EDGES[self.rng.random_range(0..EDGES.len())],
            3 => drop(input.drain(at..end)),
            4 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            5 => {
                let other = self.a_seed();
                let from = self.rng.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 => {
                // A length or a number of ten bytes, the longest that postcard writes.
                let large = [0xff; 9].into_iter().chain([1]);
                input.splice(at..end, large);
            }
            _ => {
                let byte = EDGES[self.rng.random_range(0..EDGES.len())];
                input.insert(at, byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_inputs_and_they_differ_from_the_seeds() {
        let seeds = [b"one, two, three".to_vec(), vec![0; 40]];
        let inputs = |name| {
            let mut mutations = Mutations::of(name, &seeds);
            (0..200).map(|_| mutations.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs("a"), inputs("a"));
        assert_ne!(inputs("a"), inputs("b"));
        assert!(inputs("a").iter().filter(|input| seeds.contains(input)).count() < 20);
        assert!(Mutations::of("none", &[]).next_input().len() <= MAX_BYTES);
    }
}
