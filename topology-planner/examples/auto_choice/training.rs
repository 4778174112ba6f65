//! Softmax regression on the digits, trained by push-sum SGD along a plan, and the slots it takes to an accuracy.
//!
//! A textbook form of `mingle evaluate`: every node takes `H` gradient steps from `z = x / w`, adds the change to `x`,
//! and mixes `x` and `w` by the steps of the round. A node whose weight is at or above its settled one adds its whole
//! change, one whose weight is below adds the share `w / w*` of it, as the nodes of Mingle do.

use std::io::Read;

use mingle_planner::{MixingStep, Plan};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PACKED: &[u8] = include_bytes!("../../../models/data/digits.bin.gz");
const COUNT: usize = 1_797;
const PIXELS: usize = 64;
/// Number of pixels, and one for the bias.
const FEATURES: usize = PIXELS + 1;
const CLASSES: usize = 10;
/// Number of classes, padded to whole vector registers.
const LANES: usize = 16;
const PARAMETERS: usize = FEATURES * LANES;

const BATCH: usize = 8;
const LEARNING_RATE: f32 = 0.1;
/// Number of evaluations whose mean has to reach the target.
const AT_TARGET: usize = 3;
/// Number of parts of the test samples; each evaluation of a node looks at one of them.
const TEST_PARTS: usize = 6;

/// The way samples are dealt to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Sorted by class and cut: one or two classes a node.
    Sorted,
    /// Shuffled and cut.
    Even,
}

impl Split {
    /// The name of the split in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Even => "even",
        }
    }

    /// The heterogeneity that `auto` is given for this split.
    pub(crate) const fn heterogeneity(self) -> f64 {
        match self {
            Self::Sorted => 1.0,
            Self::Even => 0.02,
        }
    }

    /// The accuracy that ends a training.
    pub(crate) const fn target(self) -> f64 {
        match self {
            Self::Sorted => 0.9,
            Self::Even => 0.93,
        }
    }
}

/// The samples of the digits.
pub(crate) struct Digits {
    samples: Vec<([f32; FEATURES], usize)>,
}

impl Digits {
    /// Unpacks the digits of `mingle-models`.
    pub(crate) fn load() -> Self {
        let mut bytes = vec![0; COUNT * (1 + PIXELS)];
        flate2::read::GzDecoder::new(PACKED).read_exact(&mut bytes).expect("the digits are whole");
        let (labels, pixels) = bytes.split_at(COUNT);
        let sample = |(pixels, &label): (&[u8], &u8)| {
            let mut features = [1.0; FEATURES];
            pixels.iter().zip(&mut features).for_each(|(&ink, feature)| *feature = f32::from(ink) / 16.0 - 0.3);
            (features, usize::from(label))
        };
        Self { samples: pixels.chunks(PIXELS).zip(labels).map(sample).collect() }
    }
}

/// The data of one seed: a fifth for tests, the others dealt to nodes.
struct Data<'d> {
    digits: &'d Digits,
    test: Vec<usize>,
    parts: Vec<Vec<usize>>,
}

impl<'d> Data<'d> {
    fn deal(digits: &'d Digits, nodes: usize, split: Split, rng: &mut ChaCha8Rng) -> Self {
        let mut order: Vec<usize> = (0..COUNT).collect();
        shuffle(&mut order, rng);
        let test = order.split_off(COUNT - COUNT / 5);
        if split == Split::Sorted {
            order.sort_by_key(|&sample| digits.samples[sample].1);
        }
        let cut = |node: usize| node * order.len() / nodes;
        let mut parts: Vec<Vec<usize>> = (0..nodes).map(|node| order[cut(node)..cut(node + 1)].to_vec()).collect();
        // Similar data must not follow from neighbouring numbers.
        shuffle(&mut parts, rng);
        Self { digits, test, parts }
    }
}

fn shuffle<T>(list: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// Slots until the nodes' models have reached the target in mean accuracy; `None` if that takes more than `max_slots`.
pub(crate) fn slots_to_target(
    digits: &Digits,
    plan: &Plan,
    local_steps: u32,
    split: Split,
    seed: u64,
    max_slots: usize,
) -> Option<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut data = Data::deal(digits, plan.node_count(), split, &mut rng);
    let mut swarm = Swarm::new(plan);
    let rounds: Vec<&[MixingStep]> = plan.steps().chunks(plan.round_length()).collect();
    let mut accuracies: Vec<f64> = Vec::new();
    let mut slots = 0;
    for round in 0.. {
        let at = round % rounds.len();
        slots += rounds[at].iter().map(|step| step.slots().len().max(1)).sum::<usize>();
        if slots > max_slots {
            return None;
        }
        swarm.train(&mut data, local_steps, at, &mut rng);
        rounds[at].iter().for_each(|step| swarm.mix(step));
        accuracies.push(swarm.accuracy(&data, round));
        let recent = accuracies.last_chunk::<AT_TARGET>();
        if recent.is_some_and(|recent| recent.iter().sum::<f64>() >= split.target() * AT_TARGET as f64) {
            return Some(slots);
        }
    }
    None
}

/// The state of the nodes.
struct Swarm {
    x: Vec<Vec<f32>>,
    weights: Vec<f64>,
    /// Settled weights at the beginning of each round of the period.
    settled: Vec<Vec<f64>>,
}

impl Swarm {
    fn new(plan: &Plan) -> Self {
        let nodes = plan.node_count();
        let (mut weights, mut scratch) = (vec![1.0; nodes], vec![0.0; nodes]);
        let periods = 20_000 / plan.steps().len().max(1) + 1;
        let mut settled = Vec::new();
        for _ in 0..periods {
            settled.clear();
            for round in plan.steps().chunks(plan.round_length()) {
                settled.push(weights.clone());
                round.iter().for_each(|step| step.mix(&mut weights, &mut scratch));
            }
        }
        Self { x: vec![vec![0.0; PARAMETERS]; nodes], weights: vec![1.0; nodes], settled }
    }

    /// Takes `H` gradient steps at each node from its estimate and adds them to its numerator.
    fn train(&mut self, data: &mut Data<'_>, local_steps: u32, at: usize, rng: &mut ChaCha8Rng) {
        for (node, x) in self.x.iter_mut().enumerate() {
            let weight = self.weights[node] as f32;
            let share = (self.weights[node] / self.settled[at][node]).min(1.0) as f32;
            let before: Vec<f32> = x.iter().map(|x| x / weight).collect();
            let mut model = before.clone();
            for _ in 0..local_steps {
                let batch: [usize; BATCH] = std::array::from_fn(|_| {
                    let part = &data.parts[node];
                    part[(rng.next_u64() % part.len() as u64) as usize]
                });
                descend(&mut model, &batch.map(|sample| &data.digits.samples[sample]));
            }
            x.iter_mut().zip(model.iter().zip(&before)).for_each(|(x, (after, before))| *x += share * (after - before));
        }
    }

    /// Mixes numerators and weights by one step.
    fn mix(&mut self, step: &MixingStep) {
        let keep = step.keep();
        let mut mixed: Vec<Vec<f32>> = self.x.iter().zip(&keep).map(|(x, &share)| scaled(x, share as f32)).collect();
        let mut weights: Vec<f64> = self.weights.iter().zip(&keep).map(|(weight, share)| weight * share).collect();
        for link in step.links() {
            let share = link.weight as f32;
            mixed[link.to].iter_mut().zip(&self.x[link.from]).for_each(|(to, from)| *to += share * from);
            weights[link.to] += link.weight * self.weights[link.from];
        }
        (self.x, self.weights) = (mixed, weights);
    }

    /// The mean accuracy over nodes, each evaluated on one part of the test samples, another in every round.
    fn accuracy(&self, data: &Data<'_>, round: usize) -> f64 {
        let (mut right, mut seen) = (0_usize, 0_usize);
        for (node, x) in self.x.iter().enumerate() {
            for &sample in data.test.iter().skip((node + round) % TEST_PARTS).step_by(TEST_PARTS) {
                let (features, label) = &data.digits.samples[sample];
                let logits = logits(x, features);
                let best = (0..CLASSES).reduce(|a, b| if logits[b] > logits[a] { b } else { a });
                right += usize::from(best == Some(*label));
                seen += 1;
            }
        }
        right as f64 / seen as f64
    }
}

fn scaled(x: &[f32], share: f32) -> Vec<f32> {
    x.iter().map(|x| share * x).collect()
}

/// Takes one step down the gradient of the cross-entropy of a batch.
fn descend(model: &mut [f32], batch: &[&([f32; FEATURES], usize)]) {
    let pulls: Vec<[f32; LANES]> = batch
        .iter()
        .map(|(features, label)| {
            let logits = logits(model, features);
            let largest = logits[..CLASSES].iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut pull = [0.0; LANES];
            (0..CLASSES).for_each(|class| pull[class] = (logits[class] - largest).exp());
            let sum: f32 = pull.iter().sum();
            pull.iter_mut().for_each(|p| *p /= sum);
            pull[*label] -= 1.0;
            pull.map(|p| -p * LEARNING_RATE / batch.len() as f32)
        })
        .collect();
    for ((features, _), pull) in batch.iter().zip(&pulls) {
        for (row, feature) in model.chunks_exact_mut(LANES).zip(features) {
            row.iter_mut().zip(pull).for_each(|(parameter, pull)| *parameter += feature * pull);
        }
    }
}

/// Logits by class, `[LANES]`; a scaled model gives scaled logits.
fn logits(model: &[f32], features: &[f32; FEATURES]) -> [f32; LANES] {
    let mut logits = [0.0; LANES];
    for (row, feature) in model.chunks_exact(LANES).zip(features) {
        logits.iter_mut().zip(row).for_each(|(logit, parameter)| *logit += feature * parameter);
    }
    logits
}
