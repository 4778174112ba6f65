//! One client: its interactions, its network, and its training.

mod counted;
mod options;
mod state;

use mingle_models::Device;
use mingle_models::operations::Pairs;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::batch_nodes::BatchNodes;
use crate::error::RecommendError;
use crate::filter::{LowPass, SpectrumCache};
use crate::generator::below;
use crate::interactions::{Interactions, bipartite_graph};
use crate::loss::{MarginRule, RankingLoss};
use crate::metrics::{Mean, RankingQuality, UserGroup, recall, top};
use crate::model::{RecommenderNetwork, RecommenderShape, read_scores};
use crate::optimizer::RmsPropParameters;
use crate::popularity::{BUCKETS, Example, Popularity, bucket};
use crate::recommender::Recommender;
use crate::similarity::{Kernel, Size, compared_eigenvalues, divergence, shares};
use crate::split::UserSplit;

use counted::Counted;
pub use options::{ClientOptions, Filtering, LossKind};

/// The number of users whose scores are computed together.
const CHUNK: usize = 8;
/// The number of draws of a negative before an item that the user knows is accepted.
const TRIES: usize = 64;
/// The inverse of the share of items that is called popular.
const POPULAR_SHARE: usize = 5;

/// A client.
///
/// Its shared vector is `[pooling and prediction weights, mean margin]`; embeddings, kernels, popularity tables and all interactions
/// are its own. Equal options, interactions and calls give equal bits on the same kind of machine.
pub struct RecommenderClient {
    options: ClientOptions,
    interactions: Interactions,
    split: UserSplit,
    positives: Vec<(u32, u32)>,
    user_buckets: Vec<usize>,
    item_buckets: Vec<usize>,
    is_popular: Vec<bool>,
    groups: Vec<UserGroup>,
    shape: RecommenderShape,
    eigenvalues: Vec<f64>,
    network: RecommenderNetwork,
    popularity: Popularity,
    /// The mean margin of the last epoch; `margin_of_all` is that of the last aggregation, mixed with this client's
    /// own.
    mean_margin: f64,
    margin_of_all: Option<f64>,
    epochs: u64,
}

impl RecommenderClient {
    /// A client that has learned nothing. `own_seed` is the seed of all draws that differ from client to client.
    ///
    /// # Errors
    /// [`RecommendError::Option`], [`RecommendError::FewNodes`], [`RecommendError::Spectrum`], and `RecommendError::Io`
    /// for a spectrum that cannot be written to the cache.
    pub fn new(
        interactions: Interactions,
        options: ClientOptions,
        own_seed: u64,
        device: &Device,
        cache: Option<&SpectrumCache>,
    ) -> Result<Self, RecommendError> {
        options.check()?;
        let split = UserSplit::of(&interactions, options.seed);
        let users = interactions.users().len();
        let items = interactions.items().len();
        let graph = bipartite_graph(users, items, &split.train)?;
        let low_pass = match cache {
            Some(cache) => cache.low_pass(&graph, options.frequencies)?,
            None => LowPass::of(&graph, options.frequencies)?,
        };
        let eigenvalues = match options.kernel {
            Kernel::Paper => low_pass.eigenvalues.clone(),
            Kernel::Connected => compared_eigenvalues(&graph, options.kernel, options.frequencies)?,
        };
        let shape = RecommenderShape {
            nodes: users + items,
            width: options.width,
            hidden: options.hidden,
            layers: options.layers,
            frequencies: options.frequencies,
        };
        let filter = (options.filter == Filtering::LowPass).then_some(&low_pass);
        let values = shape.initial(own_seed, options.seed);
        let network = RecommenderNetwork::new(shape, filter, device, &values, &vec![0.0; values.len()]);
        let mut dice = ChaCha8Rng::seed_from_u64(own_seed);
        dice.set_stream(1);
        let item_degrees: Vec<usize> = (users..users + items).map(|node| graph.degree(node) as usize).collect();
        let positives =
            split.train.iter().zip(0..).flat_map(|(items, user)| items.iter().map(move |item| (user, *item)));
        Ok(Self {
            positives: positives.collect(),
            user_buckets: split.train.iter().map(|items| bucket(items.len())).collect(),
            item_buckets: item_degrees.iter().map(|degree| bucket(*degree)).collect(),
            is_popular: most_popular(&item_degrees),
            groups: UserGroup::of_users(&split.train.iter().map(Vec::len).collect::<Vec<_>>()),
            popularity: Popularity::new(&mut dice),
            options,
            interactions,
            split,
            shape,
            eigenvalues,
            network,
            mean_margin: 0.0,
            margin_of_all: None,
            epochs: 0,
        })
    }

    /// The size of the client: users and items, and interactions in its training part.
    pub fn size(&self) -> Size {
        Size {
            users: self.interactions.users().len(),
            items: self.interactions.items().len(),
            edges: self.split.train_count(),
        }
    }

    /// The BLAKE3 hash of the client's interactions.
    pub fn hash(&self) -> [u8; 32] {
        self.interactions.hash()
    }

    /// The divergence of the client's frequencies from those of the reference.
    pub fn divergence(&self, reference: &[f64]) -> f64 {
        divergence(reference, &shares(&self.eigenvalues))
    }

    /// The shared vector: the weights of pooling and prediction, and the mean margin.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn shared(&self) -> Result<Vec<f32>, RecommendError> {
        let mut shared = self.network.shared()?;
        shared.push(self.mean_margin as f32);
        Ok(shared)
    }

    /// Mixes the client's shared vector with the mean of all, by its similarity `s`: `s mean + (1 - s) own`.
    ///
    /// # Errors
    /// A mean of another length, [`RecommendError::Device`].
    pub fn take(&mut self, mean: &[f32], similarity: f64) -> Result<(), RecommendError> {
        let own = self.shared()?;
        let (Some((margin, weights)), true) = (mean.split_last(), mean.len() == own.len()) else {
            let reason = format!("{} numbers and not {}", mean.len(), own.len());
            return Err(RecommendError::Bytes { what: "mean of all", reason });
        };
        let mixed = |mean: f32, own: f32| (similarity * f64::from(mean) + (1.0 - similarity) * f64::from(own)) as f32;
        let weights: Vec<f32> = weights.iter().zip(&own).map(|(mean, own)| mixed(*mean, *own)).collect();
        self.network.set_shared(&weights);
        let margin = similarity * f64::from(*margin) + (1.0 - similarity) * self.mean_margin;
        self.margin_of_all = Some(margin);
        Ok(())
    }

    /// Trains for some epochs; returns the mean loss of the last one.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn train(&mut self, epochs: u32) -> Result<f64, RecommendError> {
        let mut loss = 0.0;
        for _ in 0..epochs {
            loss = self.epoch()?;
        }
        Ok(loss)
    }

    fn epoch(&mut self) -> Result<f64, RecommendError> {
        let mut dice = ChaCha8Rng::seed_from_u64(self.options.seed);
        dice.set_stream(2 + self.epochs);
        let mut order: Vec<usize> = (0..self.positives.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, below(&mut dice, last + 1));
        }
        let mut loss = Mean::default();
        let mut margins = Mean::default();
        for batch in order.chunks(self.options.batch_size) {
            self.batch(batch, &mut dice, &mut loss, &mut margins)?;
        }
        self.mean_margin = margins.value().unwrap_or(0.0);
        self.epochs += 1;
        Ok(loss.value().unwrap_or(0.0))
    }

    fn batch(
        &mut self,
        batch: &[usize],
        dice: &mut ChaCha8Rng,
        loss: &mut Mean,
        margins: &mut Mean,
    ) -> Result<(), RecommendError> {
        let users: Vec<u32> = batch.iter().map(|at| self.positives[*at].0).collect();
        let each = 1 + self.options.negatives;
        let items = self.with_negatives(batch, each, dice);
        let first = self.interactions.users().len() as u32;
        let nodes: Vec<u32> = items.iter().map(|item| first + item).collect();
        let nodes = BatchNodes::of(&users, &nodes);
        let Some(pairs) = Pairs::new(&nodes.users, &nodes.items) else { return Ok(()) };
        let scores = self.network.scores(&self.network.pooled_of(&nodes.nodes), &pairs);
        let values = read_scores(&scores)?;
        let cosines = self.popularity.cosines();
        let mut slopes = Vec::with_capacity(values.len());
        for (row, user) in values.chunks_exact(each).zip(&users) {
            let item = items[slopes.len()] as usize;
            let cosine = cosines[self.user_buckets[*user as usize] * BUCKETS + self.item_buckets[item]];
            let gradient = self.gradient(row, cosine, loss, margins);
            slopes.extend(gradient.into_iter().map(|slope| (slope / batch.len() as f64) as f32));
        }
        let learning_rate = self.options.learning_rate;
        self.network.step(scores, &slopes, learning_rate);
        if self.options.loss == LossKind::Contrastive {
            let (_, gradients) = self.popularity.loss(&self.examples(&users, &items, each), self.options.temperature);
            self.popularity.step(&gradients, RmsPropParameters { learning_rate });
        }
        Ok(())
    }

    /// The items of a batch: each positive, and then the negatives for its user.
    fn with_negatives(&self, batch: &[usize], each: usize, dice: &mut ChaCha8Rng) -> Vec<u32> {
        let mut items = Vec::with_capacity(batch.len() * each);
        for at in batch {
            let (user, item) = self.positives[*at];
            items.push(item);
            (1..each).for_each(|_| items.push(self.negative(user, dice)));
        }
        items
    }

    /// The slopes of the loss of a positive and its negatives along their scores. Adds the loss and the margin.
    fn gradient(&self, scores: &[f32], cosine: f64, loss: &mut Mean, margins: &mut Mean) -> Vec<f64> {
        let rule = MarginRule { gamma: self.options.gamma, omega: self.options.omega };
        let centre = if self.options.centred { mean(scores.iter().map(|score| f64::from(*score))) } else { 0.0 };
        let scores: Vec<f64> = scores.iter().map(|score| f64::from(*score) - centre).collect();
        let own = rule.own(scores[0], cosine.acos());
        margins.add(own);
        let margin = rule.refined(scores[0], own, self.margin_of_all);
        let (one, gradient) = self.loss().of(scores[0], margin, &scores[1..]);
        loss.add(one);
        let common = if self.options.centred { mean(gradient.iter().copied()) } else { 0.0 };
        gradient.into_iter().map(|slope| slope - common).collect()
    }

    fn loss(&self) -> RankingLoss {
        match self.options.loss {
            LossKind::Contrastive => RankingLoss::Contrastive { temperature: self.options.temperature },
            LossKind::Bpr => RankingLoss::Bpr,
        }
    }

    fn examples(&self, users: &[u32], items: &[u32], each: usize) -> Vec<Example> {
        let rows = users.iter().zip(items.chunks_exact(each));
        let example = |(user, items): (&u32, &[u32])| Example {
            user: self.user_buckets[*user as usize],
            items: items.iter().map(|item| self.item_buckets[*item as usize]).collect(),
        };
        rows.map(example).collect()
    }

    /// An item that the user has not trained on; any item for a user that knows nearly all.
    fn negative(&self, user: u32, dice: &mut ChaCha8Rng) -> u32 {
        let known = &self.split.train[user as usize];
        let mut item = 0;
        for _ in 0..TRIES {
            item = below(dice, self.interactions.items().len()) as u32;
            if known.binary_search(&item).is_err() {
                break;
            }
        }
        item
    }

    /// The present quality, over as many users as the options set, the same ones each time.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn evaluate(&self) -> Result<RankingQuality, RecommendError> {
        let pooled = self.network.pooled();
        let users = self.evaluated_users();
        let mut counted = Counted::new(self.interactions.items().len());
        for chunk in users.chunks(CHUNK) {
            let all = self.network.all_scores(&pooled, chunk, self.interactions.users().len())?;
            for (user, scores) in chunk.iter().zip(all) {
                counted.add(&scores, *user as usize, self);
            }
        }
        Ok(counted.quality())
    }

    /// Recall of the interactions that the client has trained on: a measure of memorization.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn training_recall(&self, k: usize) -> Result<f64, RecommendError> {
        let pooled = self.network.pooled();
        let mut mean = Mean::default();
        let users: Vec<u32> = (0..self.interactions.users().len() as u32).collect();
        for chunk in users.chunks(CHUNK) {
            let all = self.network.all_scores(&pooled, chunk, users.len())?;
            for (user, scores) in chunk.iter().zip(all) {
                mean.add(recall(&top(&scores, &[], k), &self.split.train[*user as usize], k));
            }
        }
        Ok(mean.value().unwrap_or(0.0))
    }

    /// The users with held-out items: all, or as many as are evaluated, evenly spread among them.
    fn evaluated_users(&self) -> Vec<u32> {
        let held_out = |user: &u32| !self.split.test[*user as usize].is_empty();
        let all: Vec<u32> = (0..self.interactions.users().len() as u32).filter(held_out).collect();
        let wanted = self.options.evaluation_users.min(all.len());
        (0..wanted).map(|at| all[at * all.len() / wanted]).collect()
    }

    /// A recommender for the client's users, which needs no device.
    ///
    /// # Errors
    /// [`RecommendError::Device`].
    pub fn recommender(&self) -> Result<Recommender, RecommendError> {
        let known = (0..self.interactions.users().len()).map(|user| self.interactions.of_user(user).to_vec()).collect();
        let users = self.interactions.users().to_vec();
        let items = self.interactions.items().to_vec();
        Ok(Recommender::new(users, items, known, self.network.scorer()?))
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// Marks the items in the fifth with the most interactions.
fn most_popular(degrees: &[usize]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..degrees.len()).collect();
    order.sort_by_key(|item| (std::cmp::Reverse(degrees[*item]), *item));
    let mut is_popular = vec![false; degrees.len()];
    order.iter().take(degrees.len().div_ceil(POPULAR_SHARE)).for_each(|item| is_popular[*item] = true);
    is_popular
}
