//! Column weights that make a given graph mix fast.
//!
//! Uniform columns are the best choice for the bound of \[NH\] (Lemma 4.1), and far from the best for speed. Here the
//! shares of every node are moved so that disagreement shrinks as fast as possible, while every node keeps enough mass:
//! `n pi_i` stays at or above a floor, `pi` being the Perron vector. Minimising `|lambda_2|` alone would leave some
//! nodes with almost no mass, whose gradients then hardly count.
//!
//! `|lambda_2|` is neither smooth nor convex in the weights: eigenvalues cross and come in complex pairs. Minimised
//! instead is the contraction over a few periods: with `Q` the projection onto disagreement,
//!
//! ```text
//! ln || W^k Q ||_F / k  +  penalty of the nodes whose mass (W^k 1)_i is below the floor
//! ```
//!
//! It is smooth, its gradient is `2 k` more products with the sparse `W`, and it tends to `ln |lambda_2|` as `k` grows. A
//! share is a square over the squares of its column; Adam (Kingma and Ba, 2015) moves them, with the same bits everywhere.

use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    step::WeightedLink,
};

/// Periods over which contraction is measured at first: `k = 2^4`.
const FIRST_DOUBLINGS: u32 = 4;

/// Above this many nodes, contraction is measured on this many random directions instead of on all.
const MAX_DIRECTIONS: usize = 64;

/// Above this many nodes there are fewer directions; with the mass they fill whole blocks of columns.
const FEW_DIRECTIONS_ABOVE: usize = 400;
const FEW_DIRECTIONS: usize = 31;

/// The step size of Adam, from the first to the last step of a call; entries start near 1.
const FIRST_STEP: f64 = 0.1;
const LAST_STEP: f64 = 0.01;

/// The weight of the penalty. A node at half the floor costs as much as a neper per period.
const PENALTY: f64 = 4.0;

/// Multiple of the floor at which the penalty ends.
const MARGIN: f64 = 1.05;

/// The share below which a link is not worth having.
pub const NEGLIGIBLE: f64 = 1e-6;

/// A search for the column weights of one graph.
#[derive(Debug, Clone)]
pub struct ColumnWeights {
    node_count: usize,
    floor: f64,
    /// `k` is 2 to this power.
    doublings: u32,
    /// The links, ordered by transmitter, and a self-loop for what each node keeps: `(from, to)`, columns in a row.
    entries: Vec<Link>,
    /// Start of each column in `entries`.
    columns: Vec<usize>,
    /// Positions in `entries`, by receiver, then transmitter; `incoming` has the start of each receiver's range.
    by_receiver: Vec<usize>,
    incoming: Vec<usize>,
    roots: Vec<f64>,
    first_moments: Vec<f64>,
    second_moments: Vec<f64>,
    decay: (f64, f64),
    best: Option<BestColumns>,
    directions: Vec<f64>,
    width: usize,
    /// Set when a step starts from the mass that the last one ended with, not from all ones.
    carries_mass: bool,
}

#[derive(Debug, Clone)]
struct BestColumns {
    contraction: f64,
    roots: Vec<f64>,
}

impl ColumnWeights {
    /// Starts from uniform columns.
    ///
    /// `floor` is the least `n pi_i` that is allowed, below 1.
    ///
    /// ```
    /// use mingle_planner::{Link, column_weights::ColumnWeights, digraph::Digraph};
    /// // Two nodes: halving makes them agree at once, and nothing is faster.
    /// let graph = Digraph::new(2, [Link::new(0, 1), Link::new(1, 0)]);
    /// let mut weights = ColumnWeights::uniform(&graph, 0.3);
    /// weights.improve(10);
    /// assert!((weights.best().keep()[0] - 0.5).abs() < 1e-9);
    /// ```
    #[must_use]
    pub fn uniform(graph: &Digraph, floor: f64) -> Self {
        Self::new(graph, floor, |_| 1.0)
    }

    /// Starts from the weights of a similar graph; a link that it does not have starts with a tenth of a uniform share.
    #[must_use]
    pub fn similar_to(graph: &Digraph, floor: f64, known: &MixingMatrix) -> Self {
        Self::new(graph, floor, |link| {
            let share = if link.from == link.to {
                Some(known.keep()[link.from])
            } else {
                known.links().binary_search_by_key(&link, |link| link.link()).ok().map(|at| known.links()[at].weight)
            };
            let uniform = 1.0 / (graph.successors(link.from).len() + 1) as f64;
            (share.unwrap_or(0.0) / uniform).max(0.1)
        })
    }

    /// `share` gives the share of an entry relative to a uniform one.
    fn new(graph: &Digraph, floor: f64, share: impl Fn(Link) -> f64) -> Self {
        let node_count = graph.node_count();
        let (mut entries, mut columns) = (Vec::new(), vec![0]);
        for from in 0..node_count {
            entries.push(Link::new(from, from));
            entries.extend(graph.successors(from).iter().map(|&to| Link::new(from, to)));
            columns.push(entries.len());
        }
        let (directions, width) = directions(node_count);
        let mut by_receiver: Vec<usize> = (0..entries.len()).collect();
        by_receiver.sort_by_key(|&entry| entries[entry].to);
        let mut incoming = vec![0; node_count + 1];
        entries.iter().for_each(|entry| incoming[entry.to + 1] += 1);
        (0..node_count).for_each(|node| incoming[node + 1] += incoming[node]);
        let roots: Vec<f64> = entries.iter().map(|&link| share(link).sqrt()).collect();
        Self {
            node_count,
            floor,
            doublings: FIRST_DOUBLINGS,
            columns,
            by_receiver,
            incoming,
            first_moments: vec![0.0; entries.len()],
            second_moments: vec![0.0; entries.len()],
            decay: (1.0, 1.0),
            best: None,
            directions,
            width,
            carries_mass: false,
            entries,
            roots,
        }
    }

    /// Measures over `2^doublings` periods from now on, instead of 16: closer to `|lambda_2|` where many eigenvalues
    /// are almost as large, at more cost per step. Continues from the best weights so far.
    pub fn measure_over(&mut self, doublings: u32) {
        self.doublings = doublings;
        if let Some(best) = self.best.take() {
            self.roots = best.roots;
        }
        self.first_moments.fill(0.0);
        self.second_moments.fill(0.0);
        self.decay = (1.0, 1.0);
    }

    const fn periods(&self) -> usize {
        1 << self.doublings
    }

    /// Takes `iterations` steps. O(iterations * links * directions).
    pub fn improve(&mut self, iterations: usize) {
        let mut states = vec![0.0; (self.periods() + 1) * self.node_count * self.width];
        for iteration in 0..iterations {
            let shares = self.shares(&self.roots);
            let gradient = self.measure(&shares, &mut states);
            let step = FIRST_STEP + (LAST_STEP - FIRST_STEP) * iteration as f64 / iterations as f64;
            self.descend(&shares, &gradient, step);
        }
        // The last step has not been measured.
        let shares = self.shares(&self.roots);
        self.measure(&shares, &mut states);
    }

    /// The cost of one step of [`ColumnWeights::improve`], in multiplications.
    #[must_use]
    pub fn products_per_step(&self) -> usize {
        3 * self.periods() * self.entries.len() * self.width
    }

    /// The factor by which disagreement shrinks per period with the best weights so far, over `k` periods: close to
    /// `|lambda_2|`, from above. Infinite before [`ColumnWeights::improve`] met weights that respect the floor.
    #[must_use]
    pub fn contraction(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.contraction)
    }

    /// Multiplies the floor by `factor` where `k` periods were too few to show where mass settles, and lets it settle
    /// from step to step from now on. Forgets the weights that were the best under the old floor.
    pub fn raise_floor(&mut self, factor: f64) {
        self.floor *= factor;
        self.carries_mass = true;
        self.measure_over(self.doublings);
    }

    /// The best weights so far. Links with a share below `NEGLIGIBLE` are left out.
    #[must_use]
    pub fn best(&self) -> MixingMatrix {
        let roots = self.best.as_ref().map_or(&self.roots, |best| &best.roots);
        let shares = self.shares(roots);
        let mut keep = vec![0.0; self.node_count];
        let mut links = Vec::new();
        for (&entry, &share) in self.entries.iter().zip(&shares) {
            if entry.from == entry.to {
                keep[entry.from] = if share < NEGLIGIBLE { 0.0 } else { share };
            } else if share >= NEGLIGIBLE {
                links.push(WeightedLink::new(entry, share));
            }
        }
        MixingMatrix::normalised(keep, links)
    }

    fn shares(&self, roots: &[f64]) -> Vec<f64> {
        let mut shares: Vec<f64> = roots.iter().map(|root| root * root).collect();
        for column in self.columns.windows(2) {
            let sum: f64 = shares[column[0]..column[1]].iter().sum();
            shares[column[0]..column[1]].iter_mut().for_each(|share| *share /= sum);
        }
        shares
    }

    /// The gradient with respect to the shares; remembers the best shares met.
    fn measure(&mut self, shares: &[f64], states: &mut [f64]) -> Vec<f64> {
        let (n, width) = (self.node_count, self.width);
        states[..n * width].copy_from_slice(&self.directions);
        for period in 0..self.periods() {
            let (before, after) = states[period * n * width..(period + 2) * n * width].split_at_mut(n * width);
            for (to, into) in self.incoming.windows(2).enumerate() {
                let entries = &self.by_receiver[into[0]..into[1]];
                let terms = entries.iter().map(|&entry| (shares[entry], self.entries[entry].from));
                sum_rows(row_mut(after, to, width), before, terms);
            }
            center(after, width);
        }
        let periods = self.periods();
        let last = &states[periods * n * width..];
        // The last column is the mass; the others are disagreement.
        let disagreement = |node: usize| &row(last, node, width)[..width - 1];
        let first: f64 = (0..n).map(|node| square_sum(&row(&self.directions, node, width)[..width - 1])).sum();
        let norm: f64 = (0..n).map(|node| square_sum(disagreement(node))).sum();
        let norm = norm.max(f64::MIN_POSITIVE);
        let least = (0..n).map(|node| row(last, node, width)[width - 1]).fold(f64::INFINITY, f64::min);
        self.remember((norm / first).sqrt(), least);
        if self.carries_mass {
            for node in 0..n {
                self.directions[node * width + width - 1] = row(last, node, width)[width - 1];
            }
        }
        let mut toward = vec![0.0; n * width];
        for node in 0..n {
            let (target, source) = (row_mut(&mut toward, node, width), row(last, node, width));
            for (target, source) in target.iter_mut().zip(&source[..width - 1]) {
                *target = source / (norm * periods as f64);
            }
            let missing = (self.floor * MARGIN - source[width - 1]).max(0.0);
            target[width - 1] = -2.0 * PENALTY * missing / (self.floor * self.floor);
        }
        self.backward(shares, states, toward)
    }

    fn backward(&self, shares: &[f64], states: &[f64], mut toward: Vec<f64>) -> Vec<f64> {
        let (n, width) = (self.node_count, self.width);
        let mut gradient = vec![0.0; shares.len()];
        let mut earlier = vec![0.0; n * width];
        for period in (0..self.periods()).rev() {
            let state = &states[period * n * width..(period + 1) * n * width];
            center(&mut toward, width);
            for (from, column) in self.columns.windows(2).enumerate() {
                let source = row(state, from, width);
                let column = column[0]..column[1];
                for (entry, gradient) in self.entries[column.clone()].iter().zip(&mut gradient[column.clone()]) {
                    *gradient += dot(row(&toward, entry.to, width), source);
                }
                let terms = column.map(|entry| (shares[entry], self.entries[entry].to));
                sum_rows(row_mut(&mut earlier, from, width), &toward, terms);
            }
            std::mem::swap(&mut earlier, &mut toward);
        }
        gradient
    }

    fn remember(&mut self, shrunk: f64, least_mass: f64) {
        let contraction = (0..self.doublings).fold(shrunk, |root, _| root.sqrt());
        if least_mass >= self.floor && contraction < self.contraction() {
            self.best = Some(BestColumns { contraction, roots: self.roots.clone() });
        }
    }

    fn descend(&mut self, shares: &[f64], gradient: &[f64], step: f64) {
        const DECAY: (f64, f64) = (0.9, 0.99);
        self.decay = (self.decay.0 * DECAY.0, self.decay.1 * DECAY.1);
        for column in self.columns.windows(2) {
            let range = column[0]..column[1];
            let sum: f64 = self.roots[range.clone()].iter().map(|root| root * root).sum();
            let mean: f64 = range.clone().map(|entry| shares[entry] * gradient[entry]).sum();
            for entry in range {
                let slope = 2.0 * self.roots[entry] / sum * (gradient[entry] - mean);
                let first = &mut self.first_moments[entry];
                *first = DECAY.0 * *first + (1.0 - DECAY.0) * slope;
                let second = &mut self.second_moments[entry];
                *second = DECAY.1 * *second + (1.0 - DECAY.1) * slope * slope;
                let scale = (*second / (1.0 - self.decay.1)).sqrt() + 1e-9;
                self.roots[entry] -= step * (*first / (1.0 - self.decay.0)) / scale;
            }
        }
    }
}

/// Directions of disagreement as the columns of an `n x width` matrix, row by node; the last column is all ones, the
/// mass.
fn directions(n: usize) -> (Vec<f64>, usize) {
    let width = if n > FEW_DIRECTIONS_ABOVE { FEW_DIRECTIONS } else { n.min(MAX_DIRECTIONS) } + 1;
    let mut matrix = vec![0.0; n * width];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for column in 0..width - 1 {
        let mut sum = 0.0;
        for node in 0..n {
            let value = if n <= MAX_DIRECTIONS { f64::from(u8::from(node == column)) } else { sign(&mut state) };
            matrix[node * width + column] = value;
            sum += value;
        }
        (0..n).for_each(|node| matrix[node * width + column] -= sum / n as f64);
    }
    (0..n).for_each(|node| matrix[node * width + width - 1] = 1.0);
    (matrix, width)
}

/// Subtracts its mean from every column but the last. Mixing keeps the mean of a column at zero; rounding errors would
/// not shrink with the rest, and would dominate in the end.
fn center(matrix: &mut [f64], width: usize) {
    let mut means = vec![0.0; width];
    let rows = matrix.len() / width;
    matrix.chunks_exact(width).for_each(|row| add_scaled(&mut means, row, 1.0 / rows as f64));
    means[width - 1] = 0.0;
    matrix.chunks_exact_mut(width).for_each(|row| add_scaled(row, &means, -1.0));
}

/// A random sign (xorshift, Marsaglia 2003).
fn sign(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    if *state & 1 == 0 { 1.0 } else { -1.0 }
}

fn row(matrix: &[f64], at: usize, width: usize) -> &[f64] {
    &matrix[at * width..(at + 1) * width]
}

fn row_mut(matrix: &mut [f64], at: usize, width: usize) -> &mut [f64] {
    &mut matrix[at * width..(at + 1) * width]
}

/// `target = sum of weight * row`, in the order of the terms, for a block of columns at a time, whose sums stay in
/// registers.
fn sum_rows(target: &mut [f64], matrix: &[f64], terms: impl Iterator<Item = (f64, usize)> + Clone) {
    const BLOCK: usize = 16;
    let width = target.len();
    let mut blocks = target.chunks_exact_mut(BLOCK);
    let mut begin = 0;
    for block in blocks.by_ref() {
        let mut sums = [0.0; BLOCK];
        for (weight, at) in terms.clone() {
            let source = &matrix[at * width + begin..][..BLOCK];
            for (sum, value) in sums.iter_mut().zip(source) {
                *sum += weight * value;
            }
        }
        block.copy_from_slice(&sums);
        begin += BLOCK;
    }
    let rest = blocks.into_remainder();
    rest.fill(0.0);
    for (weight, at) in terms {
        add_scaled(rest, &matrix[at * width + begin..][..rest.len()], weight);
    }
}

fn add_scaled(target: &mut [f64], source: &[f64], scale: f64) {
    for (target, source) in target.iter_mut().zip(source) {
        *target += scale * source;
    }
}

fn square_sum(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// A dot product in four lanes, whose order of summation is fixed.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..4 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}
