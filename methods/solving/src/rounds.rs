//! Learning in rounds: one node's work, from its statistics to its model.

mod going_back;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_protocol::NodeId;
use mingle_protocol::collective::PullRoutes;

use crate::agreed_masks::AgreedMasks;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::learning::{
    About, Aggregation, CHUNK, Kept, Learned, Learner, LearningError, Release, RoundPart, RoundRecord, StatisticsTable,
};
use crate::round_checks::{check_finite, check_metrics, check_row};
use crate::schedule::node;
use crate::sum_scale::{Precision, Scale};

/// One node's work.
///
/// # Errors
/// Sums are in clear where the task needs masks, or any step fails here or elsewhere.
pub(crate) async fn learn(
    part: RoundPart,
    collectives: Collectives,
    journal: ProgressJournal,
) -> Result<Learned, SolveError> {
    if part.task.needs_masked_sums() && collectives.masks.is_none() {
        return Err(SolveError::SumsInClear);
    }
    let data = part.bench.run(|learner| learner.learning.identity()).await;
    let about = About { task: part.task.hash(), data };
    let mut node = RoundsNode { part, collectives, journal, about, shared: [0; 32], history: Vec::new() };
    node.tell_statistics().await?;
    node.go_back().await?;
    node.begin().await?;
    node.tell_tokens().await?;
    while node.part.task.rules().goes_on(&node.history) {
        node.round().await?;
    }
    node.conclude().await
}

struct RoundsNode {
    part: RoundPart,
    collectives: Collectives,
    journal: ProgressJournal,
    about: About,
    /// A hash of all results that the nodes have alike: the vector of the founder, means and metrics.
    shared: [u8; 32],
    history: Vec<RoundRecord>,
}

impl RoundsNode {
    /// Shares its statistics and receives those of all, stage after stage.
    async fn tell_statistics(&mut self) -> Result<(), SolveError> {
        let prepared = self.part.bench.run(|learner| learner.learning.prepare(learner.store.as_mut())).await;
        self.agree(prepared, 0).await?;
        let mut tables: Vec<StatisticsTable> = Vec::new();
        loop {
            let known = tables.clone();
            let row = self.part.bench.run(move |learner| learner.learning.statistics(&known)).await;
            let row = row.and_then(|row| check_row(row, tables.len()));
            let length = row.as_ref().map_or(0, |row| row.as_ref().map_or(0, Vec::len));
            let row = self.agree(row, length as u64).await?;
            let Some(row) = row else { break };
            tables.push(self.gather(&row).await?);
        }
        let mut hasher = blake3::Hasher::new();
        tables.iter().flatten().flatten().for_each(|number| {
            hasher.update(&number.to_bits().to_le_bytes());
        });
        self.compare(*hasher.finalize().as_bytes()).await
    }

    /// Has all nodes begin with the vector of the founder, unless they go on from a later round or need none.
    async fn begin(&mut self) -> Result<(), SolveError> {
        let Some(founder) = self.part.task.founder().filter(|_| self.history.is_empty()) else { return Ok(()) };
        let own = self.part.bench.run(|learner| {
            let own = learner.learning.beginning()?;
            check_finite(&own)?;
            Ok(own)
        });
        let own: Result<Vec<f32>, LearningError> = own.await;
        let length = own.as_ref().map_or(0, Vec::len) as u64;
        let own = self.agree(own, length).await?;
        let nodes = self.collectives.communication.schedule.nodes();
        let sources: Vec<Vec<usize>> =
            (0..nodes).map(|node| if node == founder { Vec::new() } else { vec![founder] }).collect();
        let vector = self.pull(&own, &sources).await?.remove(&founder).unwrap_or(own);
        self.have_alike(vector.iter().map(|value| value.to_bits().into()));
        let begun = self.part.bench.run(move |learner| {
            check_finite(&vector)?;
            learner.learning.begin_with(&vector)
        });
        let begun = begun.await;
        self.agree(begun, length).await?;
        // A founder that sent other vectors to some would leave them with other models for ever.
        self.compare(self.shared).await
    }

    /// Shares the token of each node with all, where the task has tokens.
    async fn tell_tokens(&mut self) -> Result<(), SolveError> {
        if !self.part.task.has_tokens() {
            return Ok(());
        }
        let round = self.history.len() as u64;
        let own = self.part.bench.run(move |learner| learner.learning.token(round, learner.store.as_ref())).await;
        let own = own.and_then(|own| check_row(Some(own), 0)).map(Option::unwrap_or_default);
        let length = own.as_ref().map_or(0, Vec::len) as u64;
        let own = self.agree(own, length).await?;
        let tokens = self.gather(&own).await?;
        self.part.bench.run(move |learner| learner.learning.take_tokens(&tokens)).await;
        Ok(())
    }

    async fn round(&mut self) -> Result<(), SolveError> {
        let round = self.history.len() as u64;
        let members = self.collectives.masks.as_ref().map(AgreedMasks::members).unwrap_or_default();
        let release = Release { round, members };
        let trained = self.part.bench.run(move |learner| {
            let Learner { learning, store, .. } = learner;
            let trained = learning.train(round)?;
            let contribution = learning.release(release, trained, store.as_mut())?;
            check_finite(&contribution)?;
            Ok((contribution, learner.learning.aggregation(round)))
        });
        let trained: Result<(Vec<f32>, Aggregation), LearningError> = trained.await;
        let shape = trained.as_ref().map_or(0, |(vector, way)| shape(vector.len(), way));
        let (contribution, aggregation) = self.agree(trained, shape).await?;
        let aggregate = match aggregation {
            Aggregation::Mean => {
                let mean = self.mean(&contribution).await?;
                self.have_alike(mean.iter().map(|value| value.to_bits().into()));
                Aggregate::Mean(mean)
            }
            Aggregation::None => Aggregate::Nothing,
            Aggregation::Pull(sources) => Aggregate::Pulled(self.pull(&contribution, &sources).await?),
        };
        let keeping = self.has_common_model().then(|| self.keeping_unmeasured(round + 1));
        let measured = self.part.bench.run(move |learner| {
            match aggregate {
                Aggregate::Mean(mean) => learner.learning.take(round, &mean)?,
                Aggregate::Pulled(contributions) => learner.learning.take_pulled(round, &contributions)?,
                Aggregate::Nothing => {}
            }
            keeping.map(|keeping| keeping.keep(learner)).transpose()?;
            learner.learning.evaluate(round + 1)
        });
        let measured = measured.await;
        self.note(measured).await?;
        if !self.has_common_model() {
            self.keep_measured().await?;
        }
        self.journal.note_rounds(round + 1, self.history.last());
        Ok(())
    }

    /// Takes note of the metrics after a round, of which all nodes learn the mean.
    async fn note(&mut self, measured: Result<Vec<Option<f64>>, LearningError>) -> Result<(), SolveError> {
        let metrics = self.part.task.rules().metrics().len();
        let measured = measured.and_then(|own| check_metrics(own, metrics));
        let own = self.agree(measured, 0).await?;
        let mean = if own.is_empty() { Vec::new() } else { self.mean_metrics(&own).await? };
        // A common model does not depend on them, and some nodes may have died before they had them.
        if !self.has_common_model() {
            self.have_alike(mean.iter().map(|value| value.map_or(u64::MAX, f64::to_bits)));
        }
        let round = self.history.len() as u64 + 1;
        self.history.push(RoundRecord { round, mean, own });
        Ok(())
    }

    /// Returns `true` if a node goes on from the model of another, whatever rounds it has kept itself.
    fn has_common_model(&self) -> bool {
        self.part.task.has_common_model() && self.part.task.rules().keeps_the_last()
    }

    /// The record of a round of a common model, to be kept as soon as its mean is taken, before the model is measured: a mean
    /// that a node knows must outlast its death, or the others sum the round once more.
    fn keeping_unmeasured(&self, round: u64) -> Keeping {
        let history = self.history.iter().cloned().chain([self.unmeasured(round)]).collect();
        let needed = BTreeSet::from([round, round - 1]);
        Keeping { about: self.about, shared: self.shared, history, needed }
    }

    /// The record of a round whose metrics this node does not know.
    fn unmeasured(&self, round: u64) -> RoundRecord {
        let unknown = vec![None; self.part.task.rules().metrics().len()];
        RoundRecord { round, mean: unknown.clone(), own: unknown }
    }

    /// Measures the last model for this node alone, where a restart came before its metrics were summed.
    async fn measure_alone(&mut self) -> Result<(), SolveError> {
        let rounds = self.history.len() as u64;
        let metrics = self.part.task.rules().metrics().len();
        let Some(last) = self.history.last_mut().filter(|last| last.is_unknown()) else { return Ok(()) };
        let measured = self.part.bench.run(move |learner| learner.learning.evaluate(rounds)).await;
        last.own = measured.and_then(|own| check_metrics(own, metrics)).map_err(SolveError::Learning)?;
        Ok(())
    }

    /// Keeps the state after a round, with its metrics. Each node does before it sends anything of the next round.
    async fn keep_measured(&self) -> Result<(), SolveError> {
        let rules = self.part.task.rules();
        let round = self.history.len() as u64;
        let before = rules.best_round(&self.history[..self.history.len() - 1]);
        let needed = BTreeSet::from([round, round - 1, before, rules.best_round(&self.history)]);
        let keeping = Keeping { about: self.about, shared: self.shared, history: self.history.clone(), needed };
        let kept = self.part.bench.run(move |learner| keeping.keep(learner)).await;
        self.agree(kept, round).await
    }

    async fn conclude(mut self) -> Result<Learned, SolveError> {
        self.measure_alone().await?;
        let rules = self.part.task.rules();
        let rounds = self.history.len() as u64;
        let best_round = rules.best_round(&self.history);
        let about = self.about;
        let files = self.part.bench.run(move |learner| {
            if best_round != rounds {
                let lost = || LearningError(format!("the state after round {best_round}, the best one, is damaged"));
                let kept = Kept::decode(&learner.store.load(best_round)?, about, best_round).ok_or_else(lost)?;
                learner.learning.restore(&kept.state)?;
            }
            learner.learning.files()
        });
        let files = files.await;
        let files = self.agree(files, best_round).await?;
        Ok(Learned {
            schema: Learned::SCHEMA.to_owned(),
            node: self.collectives.me,
            found: self.part.found().to_owned(),
            task: hex::encode(self.about.task),
            rounds,
            best_round,
            stopped_early: rounds < rules.rounds(),
            metrics: rules.metrics().to_vec(),
            history: self.history,
            files,
        })
    }

    /// Agrees with all nodes that this step succeeded everywhere, and that all have the same number, such as a length.
    /// Otherwise each node's error names the node at fault.
    async fn agree<T>(&self, own: Result<T, LearningError>, number: u64) -> Result<T, SolveError> {
        let row = [f64::from(u8::from(own.is_err())), number as f64, -(number as f64)];
        let largest = self.collectives.largest(&row).await?;
        let [(failed, finder), (most, one), (least, other)] = largest[..] else { return Err(SolveError::NoResult) };
        match own {
            Err(failure) => Err(SolveError::Learning(failure)),
            Ok(_) if failed > 0.0 => Err(SolveError::LearningElsewhere { finder }),
            Ok(_) if most + least != 0.0 => {
                Err(SolveError::Unlike { one, other, numbers: [most as u64, (-least) as u64] })
            }
            Ok(own) => Ok(own),
        }
    }

    /// Takes note of a result that all nodes have alike.
    fn have_alike(&mut self, words: impl Iterator<Item = u64>) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.shared);
        let words: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.shared = *hasher.update(&words).finalize().as_bytes();
    }

    /// Compares a hash of what all nodes received.
    async fn compare(&self, hash: [u8; 32]) -> Result<(), SolveError> {
        let hashes = self.collectives.gather(&[short(&hash)]).await?;
        match hashes.iter().position(|other| *other != hashes[0]) {
            None => Ok(()),
            Some(other) => Err(SolveError::StatesDiffer {
                one: NodeId(0),
                other: node(other),
                iteration: self.history.len() as u64,
            }),
        }
    }

    /// The rows of all nodes, by node, gathered piece by piece.
    async fn gather(&self, own: &[f64]) -> Result<StatisticsTable, SolveError> {
        let nodes = self.collectives.communication.schedule.nodes();
        let mut rows = vec![Vec::with_capacity(own.len()); nodes];
        for piece in own.chunks((CHUNK / nodes).max(1)) {
            let pieces = self.collectives.gather(piece).await?;
            rows.iter_mut().zip(pieces).for_each(|(row, piece)| row.extend(piece));
        }
        Ok(rows)
    }

    async fn mean(&self, own: &[f32]) -> Result<Vec<f32>, SolveError> {
        let nodes = self.collectives.communication.schedule.nodes() as f64;
        let wide: Vec<f64> = own.iter().map(|value| f64::from(*value)).collect();
        let (scale, precision) = match self.part.task.needs_masked_sums() {
            true => (Scale::Own, Precision::Whole),
            false => (Scale::OfLargest, Precision::Double),
        };
        let totals = self.collectives.total_in_pieces(&wide, CHUNK, scale, precision).await?;
        Ok(totals.iter().map(|total| (total / nodes) as f32).collect())
    }

    /// The contributions of the sources that this node chose, by node.
    async fn pull(&self, own: &[f32], sources: &[Vec<usize>]) -> Result<BTreeMap<usize, Vec<f32>>, SolveError> {
        let wide: Vec<f64> = own.iter().map(|value| f64::from(*value)).collect();
        let pulled = self.pull_wide(&wide, sources).await?;
        // They were f32 at their source, so this is exact.
        let narrow = |values: Vec<f64>| values.iter().map(|value| *value as f32).collect();
        Ok(pulled.into_iter().map(|(source, values)| (source, narrow(values))).collect())
    }

    /// The vectors of the sources that this node chose, by node, piece by piece.
    async fn pull_wide(&self, own: &[f64], sources: &[Vec<usize>]) -> Result<BTreeMap<usize, Vec<f64>>, SolveError> {
        let wanted: Vec<Vec<NodeId>> = sources.iter().map(|of| of.iter().map(|&at| node(at)).collect()).collect();
        let routes = PullRoutes::of(&self.collectives.communication.schedule, &wanted).map(Arc::new);
        let routes = routes.ok_or(SolveError::NoResult)?;
        let mut pulled = BTreeMap::<usize, Vec<f64>>::new();
        for piece in own.chunks(CHUNK) {
            for (source, values) in self.collectives.pull(&routes, piece).await? {
                pulled.entry(source.index()).or_default().extend_from_slice(&values);
            }
        }
        Ok(pulled)
    }

    /// The mean of each metric over the nodes that could measure it, from the sum of all, so that all have the same
    /// bits and no node sees another's.
    async fn mean_metrics(&self, own: &[Option<f64>]) -> Result<Vec<Option<f64>>, SolveError> {
        let row: Vec<f64> =
            own.iter().flat_map(|value| [f64::from(u8::from(value.is_some())), value.unwrap_or(0.0)]).collect();
        let sums = self.collectives.total(&row).await?;
        Ok(sums.as_chunks().0.iter().map(|[measured, sum]| (*measured > 0.0).then(|| sum / measured)).collect())
    }
}

/// The record of a round that is about to be kept, beside the state of the learning.
struct Keeping {
    about: About,
    shared: [u8; 32],
    history: Vec<RoundRecord>,
    /// The rounds that are kept from then on.
    needed: BTreeSet<u64>,
}

impl Keeping {
    fn keep(self, learner: &mut Learner) -> Result<(), LearningError> {
        let Self { about, shared, history, needed } = self;
        let Learner { learning, store, .. } = learner;
        let round = history.len() as u64;
        store.keep(round, &Kept { shared, history, state: learning.state() }.encode(about)?)?;
        store.retain(&needed);
        Ok(())
    }
}

/// The aggregate of a round's contributions, as one node has it.
enum Aggregate {
    Nothing,
    Mean(Vec<f32>),
    Pulled(BTreeMap<usize, Vec<f32>>),
}

/// Six bytes of a hash as a number, exact in an f64.
fn short([a, b, c, d, e, f, ..]: &[u8; 32]) -> f64 {
    u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]) as f64
}

/// A number, exact in an f64, that is the same at two nodes if they share vectors of one length in one way.
fn shape(length: usize, way: &Aggregation) -> u64 {
    let (kind, wishes) = match way {
        Aggregation::Mean => (0, 0),
        Aggregation::None => (1, 0),
        Aggregation::Pull(sources) => {
            let mut hasher = blake3::Hasher::new();
            for of in sources.iter() {
                hasher.update(&(of.len() as u64).to_le_bytes());
                of.iter().for_each(|source| {
                    hasher.update(&(*source as u64).to_le_bytes());
                });
            }
            let [a, b, ..] = *hasher.finalize().as_bytes();
            (2, u64::from(u16::from_le_bytes([a, b])))
        }
    };
    ((length as u64 & 0x7fff_ffff) << 18) | (wishes << 2) | kind
}
