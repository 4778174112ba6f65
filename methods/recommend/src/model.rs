//! The network of a client: low-pass filters, pooling, and the score of a user and an item.
//!
//! ```text
//!   Z^(l) = P diag(k_l) P^T Z^(l-1)         P: [n, frequencies], k_l: the client's own kernel
//!   Zc    = tanh( tanh( [Z^(0), .., Z^(L)] W1 + b1 ) W2 + b2 )                                       [n, width]
//!   f_ui  = tanh( [U_u, V_i, U_u * V_i] W3 + b3 ) w4 + b4
//! ```
//!
//! Columns of `P` are orthonormal, so that `Z^(l) = P diag(k_1 .. k_l) P^T Z^(0)`: one product with `P^T` and, since the weights of all
//! layers are applied to the few frequencies first, one with `P` serve all layers.

use burn::Tensor;
use burn::tensor::{Device, Int, TensorData};
use mingle_models::operations::{Pairs, RmsProp, pair_scores, rms_prop, tall_product, tanh, transposed_product};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::error::RecommendError;
use crate::filter::LowPass;
use crate::generator::share;
use crate::optimizer::{EPSILON, KEPT};

/// Standard deviations of the first embeddings and kernels.
const EMBEDDING_DEVIATION: f64 = 0.1;
const KERNEL_DEVIATION: f64 = 0.02;

/// The sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecommenderShape {
    pub(crate) nodes: usize,
    pub(crate) width: usize,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) frequencies: usize,
}

/// The private blocks come first: embeddings, kernels.
pub(crate) const PRIVATE: usize = 2;

impl RecommenderShape {
    /// Rows and columns of every block of parameters, in order.
    pub(crate) fn blocks(&self) -> Vec<[usize; 2]> {
        let Self { nodes, width, hidden, layers, frequencies } = *self;
        let mut blocks = vec![[nodes, width], [layers, frequencies]];
        blocks.extend((0..=layers).map(|_| [width, hidden]));
        blocks.extend([[1, hidden], [hidden, width], [1, width]]);
        blocks.extend([[width, hidden], [width, hidden], [width, hidden], [1, hidden], [hidden, 1], [1, 1]]);
        blocks
    }

    /// The number of values in all blocks, and in the shared ones.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sizes: Vec<usize> = self.blocks().iter().map(|[rows, columns]| rows * columns).collect();
        (sizes.iter().sum(), sizes[PRIVATE..].iter().sum())
    }

    /// The mean and standard deviation of the initial values of every block, in order. Kernels begin around 1, which is
    /// the plain filter. Weights of a layer with `n` inputs have a variance of `1 / n` (LeCun and others, Efficient
    /// BackProp, 1998). Biases begin at 0.
    fn distributions(&self) -> Vec<[f64; 2]> {
        let Self { width, hidden, layers, .. } = *self;
        let weights = |inputs: usize| [0.0, (inputs.max(1) as f64).sqrt().recip()];
        let bias = [0.0, 0.0];
        let mut all = vec![[0.0, EMBEDDING_DEVIATION], [1.0, KERNEL_DEVIATION]];
        all.extend((0..=layers).map(|_| weights((layers + 1) * width)));
        all.extend([bias, weights(hidden), bias]);
        all.extend([weights(3 * width), weights(3 * width), weights(3 * width), bias, weights(hidden), bias]);
        all
    }

    /// The initial values: embeddings and kernels from this client's seed, weights from the seed of all.
    pub(crate) fn initial(&self, own_seed: u64, shared_seed: u64) -> Vec<f32> {
        let mut own = ChaCha8Rng::seed_from_u64(own_seed);
        let mut shared = ChaCha8Rng::seed_from_u64(shared_seed);
        let mut values = Vec::with_capacity(self.counts().0);
        for (at, ([rows, columns], [mean, deviation])) in
            self.blocks().into_iter().zip(self.distributions()).enumerate()
        {
            let dice = if at < PRIVATE { &mut own } else { &mut shared };
            values.extend((0..rows * columns).map(|_| (mean + deviation * normal(dice)) as f32));
        }
        values
    }
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(dice: &mut ChaCha8Rng) -> f64 {
    let radius = 1.0 - share(dice);
    let turn = share(dice);
    (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * turn).cos()
}

/// Parameters on a device, with RMSProp's means of squares, and the filter.
#[derive(Clone, Debug)]
pub(crate) struct RecommenderNetwork {
    shape: RecommenderShape,
    device: Device,
    blocks: Vec<Tensor<2>>,
    squares: Vec<Tensor<2>>,
    /// `P`, `[nodes, frequencies]`; `None` for the network without a filter.
    filter: Option<Tensor<2>>,
}

impl RecommenderNetwork {
    /// A network with these values and RMSProp's means of squares.
    pub(crate) fn new(
        shape: RecommenderShape,
        filter: Option<&LowPass>,
        device: &mingle_models::Device,
        values: &[f32],
        squares: &[f32],
    ) -> Self {
        let training = device.training();
        let filter = filter.map(|filter| filter.tensor(&training));
        let mut network = Self { shape, device: device.inference(), blocks: Vec::new(), squares: Vec::new(), filter };
        network.fill(values, squares);
        network
    }

    /// Replaces the values and the means of squares.
    pub(crate) fn fill(&mut self, values: &[f32], squares: &[f32]) {
        self.blocks = self.cut(values).into_iter().map(leaf).collect();
        self.squares = self.cut(squares);
    }

    fn cut(&self, values: &[f32]) -> Vec<Tensor<2>> {
        let mut rest = values;
        let block = |shape: [usize; 2]| {
            let (values, behind) = rest.split_at(shape[0] * shape[1]);
            rest = behind;
            Tensor::from_data(TensorData::new(values.to_vec(), shape), &self.device)
        };
        self.shape.blocks().into_iter().map(block).collect()
    }

    /// All values, and the means of squares.
    pub(crate) fn read(&self) -> Result<(Vec<f32>, Vec<f32>), RecommendError> {
        let values = self.blocks.iter().map(|block| block.clone().inner());
        Ok((read_all(values)?, read_all(self.squares.iter().cloned())?))
    }

    /// The values of the shared blocks.
    pub(crate) fn shared(&self) -> Result<Vec<f32>, RecommendError> {
        read_all(self.blocks[PRIVATE..].iter().map(|block| block.clone().inner()))
    }

    /// Replaces the values of the shared blocks.
    pub(crate) fn set_shared(&mut self, values: &[f32]) {
        let mut rest = values;
        for (block, shape) in self.blocks.iter_mut().zip(self.shape.blocks()).skip(PRIVATE) {
            let (values, behind) = rest.split_at(shape[0] * shape[1]);
            rest = behind;
            *block = leaf(Tensor::from_data(TensorData::new(values.to_vec(), shape), &self.device));
        }
    }

    fn block(&self, at: usize) -> Tensor<2> {
        self.blocks[at].clone()
    }

    /// `Zc`, `[nodes, width]`.
    pub(crate) fn pooled(&self) -> Tensor<2> {
        self.pooled_rows(None)
    }

    /// The rows of `Zc` of these nodes, `[nodes, width]`. The dominant cost is still in the number of all nodes:
    /// `P^T Z^(0)`.
    pub(crate) fn pooled_of(&self, nodes: &[u32]) -> Tensor<2> {
        self.pooled_rows(Some(&self.numbers(nodes)))
    }

    fn pooled_rows(&self, nodes: Option<&Tensor<1, Int>>) -> Tensor<2> {
        let RecommenderShape { layers, frequencies, .. } = self.shape;
        let rows = |of: Tensor<2>| match nodes {
            Some(nodes) => of.select(0, nodes.clone()),
            None => of,
        };
        let embeddings = self.block(0);
        let weights = |layer: usize| self.block(PRIVATE + layer);
        let hidden = match &self.filter {
            Some(vectors) => {
                let mut hidden = tall_product(rows(embeddings.clone()), weights(0));
                let mut low = transposed_product(vectors.clone(), embeddings);
                let mut passed: Option<Tensor<2>> = None;
                for layer in 0..layers {
                    let kernel = self.block(1).slice([layer..layer + 1, 0..frequencies]).reshape([frequencies, 1]);
                    low = low * kernel;
                    let weighted = low.clone().matmul(weights(layer + 1));
                    passed = Some(passed.map_or(weighted.clone(), |passed| passed + weighted));
                }
                if let Some(passed) = passed {
                    hidden = hidden + tall_product(rows(vectors.clone()), passed);
                }
                hidden
            }
            // Without a filter every layer equals the embeddings.
            None => tall_product(rows(embeddings), (1..=layers).fold(weights(0), |sum, layer| sum + weights(layer))),
        };
        let last = PRIVATE + layers + 1;
        let hidden = tanh(hidden + self.block(last));
        tanh(tall_product(hidden, self.block(last + 1)) + self.block(last + 2))
    }

    /// Scores of pairs of rows of `pooled`, users with items; `[pairs]`.
    pub(crate) fn scores(&self, pooled: &Tensor<2>, pairs: &Pairs) -> Tensor<1> {
        let first = PRIVATE + self.shape.layers + 4;
        let scores = pair_scores(pairs, pooled, std::array::from_fn(|at| self.block(first + at)));
        (scores + self.block(first + 5)).flatten(0, 1)
    }

    fn numbers(&self, of: &[u32]) -> Tensor<1, Int> {
        let numbers: Vec<i32> = of.iter().map(|number| *number as i32).collect();
        Tensor::from_data(TensorData::new(numbers, [of.len()]), &self.device.clone().autodiff())
    }

    /// A step of RMSProp down the loss whose derivatives by the scores are `slopes`.
    pub(crate) fn step(&mut self, scores: Tensor<1>, slopes: &[f32], learning_rate: f64) {
        let slopes = TensorData::new(slopes.to_vec(), [slopes.len()]);
        let slopes = Tensor::<1>::from_data(slopes, &self.device.clone().autodiff());
        let mut gradients = (scores * slopes).sum().backward();
        let rule = RmsProp { learning_rate, kept: KEPT, epsilon: EPSILON };
        let blocks = std::mem::take(&mut self.blocks);
        let squares = std::mem::take(&mut self.squares);
        for (block, square) in blocks.into_iter().zip(squares) {
            // The loss does not depend on some blocks, such as the kernels of a network without a filter.
            let (block, square) = match block.grad_remove(&mut gradients) {
                Some(gradient) => {
                    let (values, square) = rms_prop(rule, block.inner(), square, gradient);
                    (leaf(values), square)
                }
                None => (block, square),
            };
            self.blocks.push(block);
            self.squares.push(square);
        }
    }

    /// A scorer with copies of the pooled rows and weights, which needs no device.
    pub(crate) fn scorer(&self) -> Result<Scorer, RecommendError> {
        let first = PRIVATE + self.shape.layers + 4;
        let block = |at: usize| read_all([self.blocks[first + at].clone().inner()].into_iter());
        Ok(Scorer {
            width: self.shape.width,
            hidden: self.shape.hidden,
            pooled: read_all([self.pooled().inner()].into_iter())?,
            user: block(0)?,
            item: block(1)?,
            product: block(2)?,
            bias: block(3)?,
            output: block(4)?,
        })
    }

    /// Scores of each of these users with all items, user by user. `pooled` is that of the present parameters, users
    /// before items.
    pub(crate) fn all_scores(
        &self,
        pooled: &Tensor<2>,
        users: &[u32],
        user_count: usize,
    ) -> Result<Vec<Vec<f32>>, RecommendError> {
        let RecommenderShape { nodes, width, hidden, .. } = self.shape;
        let items = nodes - user_count;
        let chunk = users.len();
        let first = PRIVATE + self.shape.layers + 4;
        let inner = |at: usize| self.blocks[first + at].clone().inner();
        let pooled = pooled.clone().inner();
        let item = pooled.clone().slice([user_count..nodes, 0..width]);
        let numbers: Vec<i32> = users.iter().map(|user| *user as i32).collect();
        let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, [chunk]), &self.device);
        let user = pooled.select(0, numbers);
        // `(U * V) W = V (diag(U) W)`: one product for all users of the chunk.
        let scaled = user.clone().reshape([chunk, width, 1]) * inner(2).reshape([1, width, hidden]);
        let scaled = scaled.swap_dims(0, 1).reshape([width, chunk * hidden]);
        let both = tall_product(item.clone(), scaled).reshape([items, chunk, hidden]);
        let of_item = tall_product(item, inner(1)).reshape([items, 1, hidden]);
        let of_user = (tall_product(user, inner(0)) + inner(3)).reshape([1, chunk, hidden]);
        let scores = tanh((both + of_item + of_user).reshape([items * chunk, hidden])).matmul(inner(4));
        let scores = read_all([scores.reshape([items, chunk]).transpose()].into_iter())?;
        Ok(scores.chunks_exact(items).map(<[f32]>::to_vec).collect())
    }
}

fn leaf(tensor: Tensor<2>) -> Tensor<2> {
    Tensor::from_inner(tensor).require_grad()
}

fn read_all(tensors: impl Iterator<Item = Tensor<2>>) -> Result<Vec<f32>, RecommendError> {
    let mut values = Vec::new();
    for tensor in tensors {
        let data = tensor.try_into_data().map_err(|error| RecommendError::Device(error.to_string()))?;
        let slice = data.as_slice::<f32>().map_err(|error| RecommendError::Device(format!("{error:?}")))?;
        values.extend_from_slice(slice);
    }
    Ok(values)
}

pub(crate) fn read_scores(scores: &Tensor<1>) -> Result<Vec<f32>, RecommendError> {
    read_all([scores.clone().inner().reshape([1, -1])].into_iter())
}

/// The largest absolute value accepted in a scorer: sums of products of three values stay far below the largest f32.
const LARGEST: f32 = 1e9;

/// The last part of the network without a device: pooled rows and the weights of the score. The constant that is added
/// to all scores is left out, since it changes no order.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Scorer {
    pub(crate) width: usize,
    pub(crate) hidden: usize,
    /// `[nodes, width]`.
    pub(crate) pooled: Vec<f32>,
    user: Vec<f32>,
    item: Vec<f32>,
    product: Vec<f32>,
    bias: Vec<f32>,
    output: Vec<f32>,
}

impl Scorer {
    /// A scorer for so many nodes.
    #[cfg(test)]
    pub(crate) fn sized(nodes: usize, width: usize, hidden: usize) -> Self {
        let numbers = |count: usize| (0..count).map(|at| at as f32 / 4.0 - 0.5).collect();
        Self {
            width,
            hidden,
            pooled: numbers(nodes * width),
            user: numbers(width * hidden),
            item: numbers(width * hidden),
            product: numbers(width * hidden),
            bias: numbers(hidden),
            output: numbers(hidden),
        }
    }

    /// Returns `true` if all blocks have the right size for `nodes`, and no value is so large that a score could
    /// overflow.
    pub(crate) fn is_sound(&self, nodes: usize) -> bool {
        let square = self.width.checked_mul(self.hidden);
        let fits = |block: &Vec<f32>, size: Option<usize>| Some(block.len()) == size;
        let weights = [&self.user, &self.item, &self.product].into_iter().all(|block| fits(block, square));
        let rest = fits(&self.bias, Some(self.hidden)) && fits(&self.output, Some(self.hidden));
        let all = [&self.pooled, &self.user, &self.item, &self.product, &self.bias, &self.output];
        self.width > 0
            && self.hidden > 0
            && weights
            && rest
            && fits(&self.pooled, nodes.checked_mul(self.width))
            && all.iter().all(|block| block.iter().all(|value| value.abs() <= LARGEST))
    }

    /// The scores of a node with the nodes of a range.
    pub(crate) fn scores(&self, user: usize, items: std::ops::Range<usize>) -> Vec<f32> {
        let row = |node: usize| &self.pooled[node * self.width..][..self.width];
        let user = row(user);
        let mut begin = self.bias.clone();
        add_product(&mut begin, user, &self.user);
        let score = |item: usize| {
            let mut inner = begin.clone();
            let item = row(item);
            add_product(&mut inner, item, &self.item);
            let product: Vec<f32> = user.iter().zip(item).map(|(a, b)| a * b).collect();
            add_product(&mut inner, &product, &self.product);
            inner.iter().zip(&self.output).map(|(value, weight)| value.tanh() * weight).sum()
        };
        items.map(score).collect()
    }
}

/// `sums += values W`.
fn add_product(sums: &mut [f32], values: &[f32], weights: &[f32]) {
    for (value, row) in values.iter().zip(weights.chunks_exact(sums.len())) {
        sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += value * weight);
    }
}
