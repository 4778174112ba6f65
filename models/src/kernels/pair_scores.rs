//! Scores of pairs of rows by a perceptron with one hidden layer, whose inputs are both rows and their product (neural
//! collaborative filtering, He and others, WWW 2017).

use std::sync::Arc;

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, TensorData};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::tanh::tanh_in_place;
use super::tape::{Operation, apply_all};
use super::tensors::{floats, tensor};

/// The number of first rows computed at once; their values fit in the cache.
const CHUNK: usize = 64;

/// The pairing of rows.
#[derive(Clone, Debug)]
pub struct Pairs {
    first: Arc<[u32]>,
    second: Arc<[u32]>,
    each: usize,
}

impl Pairs {
    /// Pairs each of the first rows with an equal number of the second, which are consecutive. `None` if the second
    /// cannot be divided so, or there are none.
    pub fn new(first: &[u32], second: &[u32]) -> Option<Self> {
        let each = second.len().checked_div(first.len()).filter(|each| *each > 0)?;
        (each * first.len() == second.len()).then(|| Self { first: first.into(), second: second.into(), each })
    }
}

/// `tanh(u A + v B + (u * v) C + b) w` of each pair of rows `u` and `v`; `[pairs, 1]`. The weights are `A`, `B`, `C` (`[width, hidden]`),
/// `b` (`[1, hidden]`) and `w` (`[hidden, 1]`).
///
/// # Panics
/// When a row number is out of bounds, or the shapes do not fit.
pub fn pair_scores(pairs: &Pairs, rows: &Tensor<2>, weights: [Tensor<2>; 5]) -> Tensor<2> {
    let [a, b, c, bias, output] = weights.clone();
    let own = apply_all(pairs.clone(), [rows.clone(), a, b, c, bias, output]);
    own.unwrap_or_else(|| with_burn(pairs, rows, weights))
}

/// Scores computed with burn's operations, for other devices and to compare with.
pub(super) fn with_burn(pairs: &Pairs, rows: &Tensor<2>, [a, b, c, bias, output]: [Tensor<2>; 5]) -> Tensor<2> {
    let [_, width] = rows.dims();
    let [_, hidden] = bias.dims();
    let count = pairs.first.len();
    let each = pairs.each;
    let select = |of: &[u32]| {
        let numbers: Vec<i32> = of.iter().map(|number| *number as i32).collect();
        rows.clone().select(0, Tensor::<1, Int>::from_data(TensorData::new(numbers, [of.len()]), &rows.device()))
    };
    let first = select(&pairs.first);
    let second = select(&pairs.second);
    let both = second.clone().reshape([count, each, width]) * first.clone().reshape([count, 1, width]);
    let both = both.reshape([count * each, width]).matmul(c);
    let both = (second.matmul(b) + both).reshape([count, each, hidden]);
    let of_first = (first.matmul(a) + bias).reshape([count, 1, hidden]);
    (both + of_first).tanh().reshape([count * each, hidden]).matmul(output)
}

/// The values that the backward pass needs: all inputs, and the hidden layer.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    inputs: [FlexTensor; 6],
    hidden: Arc<Vec<f32>>,
}

impl Operation<6> for Pairs {
    type Seen = Seen;

    fn forward(&self, inputs: [FlexTensor; 6]) -> (FlexTensor, Seen) {
        let network = Weights::of(&inputs);
        let count = self.second.len();
        let mut scores = vec![0.0; count];
        let mut hidden = vec![0.0; count * network.hidden];
        let size = CHUNK * self.each;
        let places = scores.par_chunks_mut(size).zip(hidden.par_chunks_mut(size * network.hidden));
        self.chunks().zip(places).for_each(|(chunk, (scores, hidden))| chunk.forward(&network, scores, hidden));
        (tensor(scores, [count, 1]), Seen { inputs, hidden: Arc::new(hidden) })
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, _: [bool; 6]) -> [Option<FlexTensor>; 6] {
        let network = Weights::of(&seen.inputs);
        let Weights { width, hidden, .. } = network;
        let slopes = floats(gradient);
        let mut of_first = vec![0.0; self.first.len() * width];
        let mut of_second = vec![0.0; self.second.len() * width];
        let size = CHUNK * self.each;
        let places = of_first.par_chunks_mut(CHUNK * width).zip(of_second.par_chunks_mut(size * width));
        let seen_of = slopes.par_chunks(size).zip(seen.hidden.par_chunks(size * hidden));
        let parts: Vec<[Vec<f32>; 5]> = self
            .chunks()
            .zip(places.zip(seen_of))
            .map(|(chunk, (places, (slopes, hidden)))| chunk.backward(&network, slopes, hidden, places))
            .collect();
        let mut of_rows = vec![0.0; network.rows.len()];
        add_rows(&mut of_rows, &self.first, &of_first, width);
        add_rows(&mut of_rows, &self.second, &of_second, width);
        // Summed in the order of the chunks, whatever thread was first.
        let mut sums = [width * hidden, width * hidden, width * hidden, hidden, hidden].map(|size| vec![0.0; size]);
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| add(sum, part));
        }
        let mut gradients = std::iter::once(of_rows).chain(sums).zip(&seen.inputs);
        std::array::from_fn(|_| gradients.next().map(|(values, like)| tensor(values, like.layout().shape().clone())))
    }
}

impl Pairs {
    fn chunks(&self) -> impl IndexedParallelIterator<Item = Chunk<'_>> {
        let seconds = self.second.par_chunks(CHUNK * self.each);
        self.first.par_chunks(CHUNK).zip(seconds).map(|(first, second)| Chunk { first, second, each: self.each })
    }
}

/// The inputs as slices and matrices.
struct Weights<'a> {
    rows: &'a [f32],
    first: MatRef<'a, f32>,
    second: MatRef<'a, f32>,
    product: MatRef<'a, f32>,
    bias: &'a [f32],
    output: &'a [f32],
    width: usize,
    hidden: usize,
}

impl<'a> Weights<'a> {
    fn of([rows, first, second, product, bias, output]: &'a [FlexTensor; 6]) -> Self {
        let [rows, first, second, product, bias, output] = [rows, first, second, product, bias, output].map(floats);
        let hidden = bias.len();
        let width = first.len() / hidden.max(1);
        let [first, second, product] =
            [first, second, product].map(|weight| MatRef::from_row_major_slice(weight, width, hidden));
        Self { rows, first, second, product, bias, output, width, hidden }
    }
}

/// Some of the first rows, and the second ones paired with each.
struct Chunk<'a> {
    first: &'a [u32],
    second: &'a [u32],
    each: usize,
}

impl Chunk<'_> {
    /// The first rows, the second ones, and their products.
    fn gather(&self, network: &Weights<'_>) -> [Vec<f32>; 3] {
        let width = network.width;
        let row = |number: &u32| &network.rows[*number as usize * width..][..width];
        let first: Vec<f32> = self.first.iter().flat_map(row).copied().collect();
        let second: Vec<f32> = self.second.iter().flat_map(row).copied().collect();
        let mut product = second.clone();
        for (products, first) in product.chunks_exact_mut(self.each * width).zip(first.chunks_exact(width)) {
            for row in products.chunks_exact_mut(width) {
                row.iter_mut().zip(first).for_each(|(value, first)| *value *= first);
            }
        }
        [first, second, product]
    }

    fn forward(&self, network: &Weights<'_>, scores: &mut [f32], hidden: &mut [f32]) {
        let Weights { width, hidden: size, .. } = *network;
        let [first, second, product] = self.gather(network);
        let mut of_first = network.bias.repeat(self.first.len());
        multiply(&mut of_first, Accum::Add, view(&first, width), network.first);
        for (rows, of_first) in hidden.chunks_exact_mut(self.each * size).zip(of_first.chunks_exact(size)) {
            rows.chunks_exact_mut(size).for_each(|row| row.copy_from_slice(of_first));
        }
        multiply(hidden, Accum::Add, view(&second, width), network.second);
        multiply(hidden, Accum::Add, view(&product, width), network.product);
        tanh_in_place(hidden);
        multiply(scores, Accum::Replace, view(hidden, size), view(network.output, 1));
    }

    /// Returns the gradients of the weights, given those of the scores, and writes those of the rows to their places.
    fn backward(
        &self,
        network: &Weights<'_>,
        slopes: &[f32],
        hidden: &[f32],
        (of_first, of_second): (&mut [f32], &mut [f32]),
    ) -> [Vec<f32>; 5] {
        let Weights { width, hidden: size, .. } = *network;
        let [first, second, product] = self.gather(network);
        let mut of_inner = hidden.to_vec();
        for (row, slope) in of_inner.chunks_exact_mut(size).zip(slopes) {
            row.iter_mut()
                .zip(network.output)
                .for_each(|(value, weight)| *value = (1.0 - *value * *value) * weight * slope);
        }
        let mut of_sums = vec![0.0; self.first.len() * size];
        for (sum, rows) in of_sums.chunks_exact_mut(size).zip(of_inner.chunks_exact(self.each * size)) {
            rows.chunks_exact(size).for_each(|row| add(sum, row));
        }
        let mut bias = vec![0.0; size];
        of_sums.chunks_exact(size).for_each(|row| add(&mut bias, row));

        // The gradient of the products first: it is passed on to both factors.
        let mut of_product = vec![0.0; second.len()];
        multiply(&mut of_product, Accum::Replace, view(&of_inner, size), network.product.transpose());
        multiply(of_second, Accum::Replace, view(&of_inner, size), network.second.transpose());
        multiply(of_first, Accum::Replace, view(&of_sums, size), network.first.transpose());
        let places = of_first.chunks_exact_mut(width).zip(of_second.chunks_exact_mut(self.each * width));
        let seen = first.chunks_exact(width).zip(second.chunks_exact(self.each * width));
        for ((places, (first, seconds)), slopes) in places.zip(seen).zip(of_product.chunks_exact(self.each * width)) {
            let (of_first, of_seconds) = places;
            let rows = of_seconds.chunks_exact_mut(width).zip(seconds.chunks_exact(width));
            for ((of_second, second), slope) in rows.zip(slopes.chunks_exact(width)) {
                for at in 0..width {
                    of_second[at] += slope[at] * first[at];
                    of_first[at] += slope[at] * second[at];
                }
            }
        }
        let of_weight = |seen: &[f32], slopes: &[f32]| {
            let mut values = vec![0.0; width * size];
            multiply(&mut values, Accum::Replace, view(seen, width).transpose(), view(slopes, size));
            values
        };
        let mut output = vec![0.0; size];
        multiply(&mut output, Accum::Replace, view(hidden, size).transpose(), view(slopes, 1));
        [of_weight(&first, &of_sums), of_weight(&second, &of_inner), of_weight(&product, &of_inner), bias, output]
    }
}

fn view(rows: &[f32], columns: usize) -> MatRef<'_, f32> {
    MatRef::from_row_major_slice(rows, rows.len() / columns.max(1), columns)
}

fn multiply(place: &mut [f32], accumulate: Accum, left: MatRef<'_, f32>, right: MatRef<'_, f32>) {
    let place = MatMut::from_row_major_slice_mut(place, left.nrows(), right.ncols());
    matmul(place, accumulate, left, right, 1.0, Par::Seq);
}

fn add(sum: &mut [f32], terms: &[f32]) {
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
}

/// Adds each row of `terms` to the row with its number.
fn add_rows(rows: &mut [f32], numbers: &[u32], terms: &[f32], width: usize) {
    for (number, terms) in numbers.iter().zip(terms.chunks_exact(width)) {
        add(&mut rows[*number as usize * width..][..width], terms);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use burn::tensor::Device;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn scores_of_pairs_and_all_their_gradients_are_those_of_burn() {
        // Fewer rows than a chunk, and more, some of them repeated.
        for (first, each, width, hidden) in [(3, 1, 4, 3), (70, 5, 9, 17), (CHUNK, 2, 16, 8)] {
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let shapes = [[41, width], [width, hidden], [width, hidden], [width, hidden], [1, hidden], [hidden, 1]];
            let inputs: Vec<Vec<f32>> = shapes
                .iter()
                .map(|[rows, columns]| (0..rows * columns).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect())
                .collect();
            let mut numbers = |count: usize| (0..count).map(|_| rng.random::<u32>() % 41).collect::<Vec<_>>();
            let pairs = Pairs::new(&numbers(first), &numbers(first * each)).unwrap();
            let device = Device::flex().autodiff();
            let run = |own: bool| {
                let tensors: Vec<Tensor<2>> = inputs
                    .iter()
                    .zip(shapes)
                    .map(|(values, shape)| {
                        Tensor::from_data(TensorData::new(values.clone(), shape), &device).require_grad()
                    })
                    .collect();
                let weights = std::array::from_fn(|at| tensors[at + 1].clone());
                let rows = tensors[0].clone();
                let scores = if own { pair_scores(&pairs, &rows, weights) } else { with_burn(&pairs, &rows, weights) };
                let slopes: Vec<f32> = (0..first * each).map(|at| (at % 7) as f32 - 3.0).collect();
                let slopes = Tensor::<2>::from_data(TensorData::new(slopes, [first * each, 1]), &device);
                let gradients = (scores.clone() * slopes).sum().backward();
                let all = tensors.iter().map(|tensor| tensor.grad(&gradients).unwrap());
                let all = std::iter::once(scores.inner()).chain(all);
                all.map(|tensor| tensor.into_data().try_into_vec::<f32>().unwrap()).collect::<Vec<_>>()
            };
            for (at, (one, other)) in run(true).into_iter().zip(run(false)).enumerate() {
                let most = other.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
                assert_eq!(one.len(), other.len());
                let distance = one.iter().zip(&other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
                assert!(distance < 2e-5 * most, "{at}: {distance} of {most}");
            }
        }
    }

    #[test]
    fn pairs_are_whole() {
        assert!(Pairs::new(&[1, 2], &[3, 4, 5]).is_none());
        assert!(Pairs::new(&[], &[]).is_none() && Pairs::new(&[1], &[]).is_none());
    }
}
