//! Arguments of `mingle simulate` and `mingle evaluate`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mingle_builtin::options::TrainingOptions;
use mingle_lab::simulation::{BETWEEN_EVALUATIONS, Lie, MetricTarget};
use mingle_net::multicast::AirRate;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use mingle_protocol::MAX_DIMENSION;

use super::{ADAMW_LEARNING_RATE, CommunicationArgs, OptimizerArgs, SamplesArgs, Switch};

/// The closing rounds of a simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LastRounds {
    /// Mix without training.
    Mix,
    /// Train as all others do.
    Train,
}

/// Arguments of `simulate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) mixing: MixingArgs,
    #[command(flatten)]
    pub(crate) samples: SamplesArgs,
    /// softmax, mlp, mlp:hidden=N, cnn, resnet-lite, or for text gpt:layers=N,heads=N,width=N,context=N
    #[arg(long, default_value = "softmax")]
    pub(crate) model: String,
    /// The split of the data over the peers: iid, label-sorted or dirichlet:ALPHA; a text is cut into contiguous parts
    #[arg(long, default_value = "iid")]
    pub(crate) split: String,
    /// Augmentation of training images, each time anew: none, flip, crop:N or flip,crop:N
    #[arg(long, default_value = "none")]
    pub(crate) augment: String,
    // Before the learning rate, whose default depends on it.
    #[command(flatten)]
    pub(crate) optimizer: OptimizerArgs,
    /// Step size; unless given, 0.001 with --optimizer adamw
    #[arg(long, default_value_t = 0.1, default_value_if("optimizer", "adamw", ADAMW_LEARNING_RATE))]
    pub(crate) learning_rate: f64,
    /// Seed of the initial model, the split, the minibatches, the losses and the plan that is made
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// Evaluate all models on the held-out test set each N rounds [default: 4, or as many as it takes for evaluations not to
    /// take longer than training, of models where they take long]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) evaluate_every: Option<u64>,
    /// Judge by the first N samples of that test set [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) test_samples: Option<NonZero<usize>>,
    /// Stop once the mean of the last three evaluations, each the mean over peers, is there: accuracy=0.93, loss=0.2, of texts bits_per_character=2.8, of a regression r2=0.9 or rmse=12
    #[arg(long, value_name = "METRIC=VALUE", conflicts_with = "target_accuracy")]
    target: Option<MetricTarget>,
    /// Short for --target accuracy=ACCURACY
    #[arg(long, value_name = "ACCURACY")]
    target_accuracy: Option<f64>,
    /// Stop after so many passes over all data
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<f64>,
    /// Stop after so many slots
    #[arg(long, value_name = "N")]
    pub(crate) max_slots: Option<u64>,
    /// Stop after so many rounds [default: 200, if nothing else says when]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: Option<u64>,
    /// The last rounds of so many: mix without training, as those of peers do, or train
    #[arg(long, value_enum, default_value_t = LastRounds::Mix, value_name = "mix|train", conflicts_with_all = ["trainer", "train_elsewhere"])]
    pub(crate) last_rounds: LastRounds,
    /// The rate of a shared channel, such as 20mbit, to show how long all slots take there
    #[arg(long, value_name = "RATE")]
    pub(crate) air_rate: Option<AirRate>,
    /// The share of messages that is lost, each by itself
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    pub(crate) loss: f64,
    /// The neighbours to wait for in each round: sync, bounded:STALENESS or async [default: bounded:4, as run does]
    #[arg(long, value_name = "POLICY")]
    pub(crate) wait: Option<String>,
    #[command(flatten)]
    pub(crate) communication: CommunicationArgs,
    /// A measurement: some members send false models, keeping their weight books honestly, and accuracy is that of the others. sign-flip,
    /// scale:FACTOR, or `little[:Z]`: the mean of the honest models less Z (1.5) standard deviations
    #[arg(long, value_name = "ATTACK", requires = "attackers")]
    pub(crate) attack: Option<Lie>,
    /// With --attack: how many members do; the seed says which
    #[arg(long, value_name = "N", requires = "attack")]
    pub(crate) attackers: Option<NonZero<usize>>,
    /// Off: push-sum as in textbooks, where what is lost is gone, to compare with
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub(crate) ledger: Switch,
    /// Threads that train [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Let the program that started this one train models with so many parameters, over standard input and output, as
    /// `mingle.simulate` in Python does (docs/planning.md)
    #[arg(
        long,
        value_name = "PARAMETERS",
        value_parser = clap::value_parser!(u64).range(1..=MAX_DIMENSION as u64),
        conflicts_with_all = OF_BUILTIN_TRAINING.concat()
    )]
    pub(crate) train_elsewhere: Option<u64>,
    /// Train with other programs, one for each node: the command of a script that calls mingle.join, unchanged, or speaks
    /// docs/trainer-protocol.md. {node} and {nodes}, MINGLE_NODE and MINGLE_NODES are the number of the node, from 0, and
    /// the number of nodes
    #[arg(long, value_name = "COMMAND", conflicts_with = "train_elsewhere", conflicts_with_all = OF_BUILTIN_TRAINING.concat())]
    pub(crate) trainer: Option<String>,
}

/// Arguments of `simulate` that training elsewhere cannot follow.
const OF_BUILTIN_TRAINING: &[&[&str]] = &[
    &["model", "split", "augment", "learning_rate", "device", "test_samples", "target", "target_accuracy", "epochs"],
    &["max_slots", "air_rate", "attack", "ledger", "threads"],
    &SamplesArgs::NAMES,
    &OptimizerArgs::NAMES,
];

/// Arguments of `evaluate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EvaluateArgs {
    /// The suite to compare; examples are in examples/evaluation
    #[arg(value_name = "SUITE.toml")]
    pub(crate) suite: PathBuf,
    /// Where results and the report go; what is there already is not run again
    #[arg(short, long, default_value = "mingle-evaluation", value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Only say which runs it has
    #[arg(long)]
    pub(crate) list: bool,
    /// Runs at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
}

/// The plan for the mixing.
#[derive(Args, Clone, Debug)]
pub(crate) struct MixingArgs {
    /// A plan of `mingle plan make`
    #[arg(long, value_name = "FILE", conflicts_with = "topology", required_unless_present = "topology")]
    pub(crate) plan: Option<PathBuf>,
    /// Make a plan for this: a file or a generator, such as rg:n=33,r=0.5,seed=0
    #[arg(long, value_name = "FILE|GENERATOR")]
    pub(crate) topology: Option<String>,
    /// Sharing of the network by the links of that plan: broadcast (slots, interference) or point-to-point
    #[arg(long, default_value = "broadcast", conflicts_with = "plan")]
    pub(crate) medium: String,
    /// The design of that plan, as in `mingle plan make`
    #[arg(long, default_value = "auto", conflicts_with = "plan")]
    pub(crate) method: String,
    /// Edges beyond the spanning tree, for nguyen-he: a number, or auto to sweep
    #[arg(long, default_value = "auto", value_name = "K|auto", conflicts_with = "plan")]
    pub(crate) extra_edges: String,
    /// Gradient steps that each peer takes per round
    #[arg(long, default_value_t = 1, value_name = "H", conflicts_with = "plan")]
    pub(crate) local_steps: u32,
    /// Difference of the peers' data, for --method auto, from 0 to 1 [default: as --split says]
    #[arg(long, value_name = "0..1", conflicts_with = "plan")]
    pub(crate) heterogeneity: Option<f64>,
    /// Seed of the plan, to have the same one whatever --seed says [default: that of --seed]
    #[arg(long, value_name = "SEED", conflicts_with = "plan")]
    pub(crate) plan_seed: Option<u64>,
}

impl SimulateArgs {
    /// The target at which the simulation stops.
    ///
    /// # Errors
    /// The accuracy is not between 0 and 1.
    pub(crate) fn target(&self) -> Result<Option<MetricTarget>> {
        match (self.target, self.target_accuracy) {
            (None, Some(accuracy)) => {
                let doing = format!("--target accuracy {accuracy} cannot be");
                MetricTarget::accuracy(accuracy).context(ErrorKind::BadInput, doing).map(Some)
            }
            (target, _) => Ok(target),
        }
    }

    /// The training for `rounds` rounds, as options of `run`.
    pub(crate) fn training(&self, rounds: u64) -> TrainingOptions {
        TrainingOptions {
            model: self.model.clone(),
            split: Some(self.split.clone()),
            rounds,
            augment: self.augment.clone(),
            optimizer: self.optimizer.into(),
            learning_rate: self.learning_rate,
            seed: self.seed,
            device: self.device.clone(),
            evaluate_every: self.evaluate_every.unwrap_or(BETWEEN_EVALUATIONS),
            ..self.samples.clone().into()
        }
    }
}
