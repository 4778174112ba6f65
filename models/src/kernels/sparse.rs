//! Sparse sums of runs of numbers, the arithmetic of the backward pass.

use pulp::{Arch, Simd, WithSimd};

/// The runs to add to each sum, and their factors: for each target, a list of places of runs and factors.
#[derive(Clone, Debug)]
pub(crate) struct RunSums {
    /// `room` entries for each target.
    entries: Vec<(u32, f32)>,
    room: usize,
    counts: Vec<usize>,
}

impl RunSums {
    /// No shares, for `targets` targets that get at most `room` each.
    pub(crate) fn new(targets: usize, room: usize) -> Self {
        Self { entries: vec![(0, 0.0); targets * room], room, counts: vec![0; targets] }
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
    }

    pub(crate) fn push(&mut self, target: usize, place: usize, factor: f32) {
        let count = &mut self.counts[target];
        self.entries[target * self.room + *count] = (place as u32, factor);
        *count += 1;
    }

    /// The places and factors of each target.
    pub(crate) fn of(&self, target: usize) -> &[(u32, f32)] {
        &self.entries[target * self.room..][..self.counts[target]]
    }
}

/// The layout of runs: `rows` of them, one each `stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) rows: usize,
    /// The length of a run.
    pub(crate) length: usize,
    /// The distance from one run of a target to its next.
    pub(crate) sum_stride: usize,
    /// The distance from one run of terms to the next.
    pub(crate) term_stride: usize,
}

/// Adds to the runs of `sums` at each of `targets` the runs of `terms` that `shares` name, times
/// their factors. A column of runs is done for all targets before the next, so that it stays in the
/// cache, and sums stay in registers.
pub(crate) fn add_shares(sums: &mut [f32], targets: &[u32], terms: &[f32], shares: &RunSums, runs: Runs) {
    Arch::new().dispatch(AddShares { sums, targets, terms, shares, runs });
}

struct AddShares<'a> {
    sums: &'a mut [f32],
    targets: &'a [u32],
    terms: &'a [f32],
    shares: &'a RunSums,
    runs: Runs,
}

impl WithSimd for AddShares<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for row in 0..self.runs.rows {
            let mut begin = 0;
            begin = self.add_columns::<S, 10>(simd, row, begin);
            begin = self.add_columns::<S, 4>(simd, row, begin);
            begin = self.add_columns::<S, 2>(simd, row, begin);
            begin = self.add_columns::<S, 1>(simd, row, begin);
            self.add_rest(row, begin);
        }
    }
}

impl AddShares<'_> {
    /// Adds columns of `N` vectors from `begin` on, as long as whole ones remain; returns the end of the last.
    #[inline(always)]
    fn add_columns<S: Simd, const N: usize>(&mut self, simd: S, row: usize, mut begin: usize) -> usize {
        let width = N * S::F32_LANES;
        while begin + width <= self.runs.length {
            let terms = &self.terms[row * self.runs.term_stride + begin..];
            for (target, place) in self.targets.iter().enumerate() {
                let sums = &mut self.sums[*place as usize + row * self.runs.sum_stride + begin..][..width];
                let (sums, _) = S::as_mut_simd_f32s(sums);
                let Some(sums) = sums.first_chunk_mut::<N>() else { continue };
                let mut total = *sums;
                for &(place, factor) in self.shares.of(target) {
                    let factor = simd.splat_f32s(factor);
                    let (terms, _) = S::as_simd_f32s(&terms[place as usize..][..width]);
                    for (total, term) in total.iter_mut().zip(terms) {
                        *total = simd.mul_add_f32s(factor, *term, *total);
                    }
                }
                *sums = total;
            }
            begin += width;
        }
        begin
    }

    /// Adds the remaining columns of the runs of a row.
    #[inline(always)]
    fn add_rest(&mut self, row: usize, begin: usize) {
        let width = self.runs.length - begin;
        if width == 0 {
            return;
        }
        let terms = &self.terms[row * self.runs.term_stride + begin..];
        for (target, place) in self.targets.iter().enumerate() {
            let sums = &mut self.sums[*place as usize + row * self.runs.sum_stride + begin..][..width];
            for (lane, sum) in sums.iter_mut().enumerate() {
                for &(place, factor) in self.shares.of(target) {
                    *sum += factor * terms[place as usize + lane];
                }
            }
        }
    }
}
