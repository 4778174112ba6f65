//! Arguments of `mingle demo`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::ArgPredicate;
use mingle_builtin::options::TrainingOptions;
use mingle_demo::{DemoOptions, ProblemOptions};

use super::{
    ADAMW_LEARNING_RATE, CommunicationArgs, DurabilityName, MediumArgs, OptimizerArgs, PrivacyArgs, ProblemKind,
    SamplesArgs, Switch,
};

/// Default number of rounds to train a model.
const ROUNDS: u64 = 600;
/// Options without a meaning for the demo of a problem.
const OF_TRAINING: &[&[&str]] = &[
    &["model", "split", "local_steps", "learning_rate", "evaluate_every", "device", "wait"],
    &["kill", "restart", "durability", "timeline", "no_comparison"],
    &SamplesArgs::NAMES,
    &OptimizerArgs::NAMES,
    &PrivacyArgs::NAMES,
    &CommunicationArgs::NAMES,
    &MediumArgs::NAMES,
];

/// Arguments of `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Peer processes to start [default with --problem recommendation: 4, with training: 32]
    #[arg(
        long,
        default_value_t = 8,
        default_value_if("problem", "recommendation", "4"),
        default_value_if("problem", "training", "32")
    )]
    pub(crate) peers: usize,
    /// Solve a problem together instead of training one model, on data that the program carries or draws
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = OF_TRAINING.concat())]
    pub(crate) problem: Option<ProblemKind>,
    #[command(flatten)]
    pub(crate) samples: SamplesArgs,
    /// softmax, mlp, mlp:hidden=N, cnn, resnet-lite, or for text gpt:layers=N,heads=N,width=N,context=N
    #[arg(long, default_value = "mlp")]
    pub(crate) model: String,
    /// The split of the data over the peers: iid, label-sorted or dirichlet:ALPHA; a text is cut into contiguous parts
    #[arg(long, default_value = "dirichlet:0.3")]
    pub(crate) split: String,
    /// Rounds to train [default: 600; with --problem recommendation 10, with node-classification 60, with training 40]
    #[arg(long)]
    pub(crate) rounds: Option<u64>,
    /// The design of the plan, as in `mingle plan make` [default of a convex problem: clique-phi]
    #[arg(
        long,
        default_value = "nguyen-he",
        default_value_if("problem", "recommendation", "nguyen-he"),
        default_value_if("problem", "node-classification", "nguyen-he"),
        default_value_if("problem", "training", "nguyen-he"),
        default_value_if("problem", ArgPredicate::IsPresent, "clique-phi")
    )]
    pub(crate) method: String,
    /// Gradient steps per round
    #[arg(long, default_value_t = 4, value_name = "H")]
    pub(crate) local_steps: u32,
    // Before the learning rate, whose default depends on it.
    #[command(flatten)]
    pub(crate) optimizer: OptimizerArgs,
    /// Step size; unless given, 0.001 with --optimizer adamw
    #[arg(long, default_value_t = 0.2, default_value_if("optimizer", "adamw", ADAMW_LEARNING_RATE))]
    pub(crate) learning_rate: f64,
    /// Seed of topology, plan, split, model and minibatches
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Evaluate each N rounds
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub(crate) evaluate_every: u64,
    /// Kill a peer's process (SIGKILL) when it reaches a round; may be given more than once
    #[arg(long, value_name = "PEER@ROUND")]
    pub(crate) kill: Vec<String>,
    /// Start a killed peer again at once: it goes on from its records, with the weight it had
    #[arg(long, requires = "kill")]
    pub(crate) restart: bool,
    /// Keep the weight of peers on disk; in the end the disks are audited [default: on with --restart, else off]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) durability: Option<DurabilityName>,
    /// Draw the activities of each peer over time, as timeline.svg
    #[arg(long, value_enum, default_value_t = Switch::Off, value_name = "ON|OFF")]
    pub(crate) timeline: Switch,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
    /// The neighbours to wait for in each round: sync, bounded:STALENESS or async
    #[arg(long, default_value = "sync", value_name = "POLICY")]
    pub(crate) wait: String,
    #[command(flatten)]
    pub(crate) communication: CommunicationArgs,
    #[command(flatten)]
    pub(crate) medium: MediumArgs,
    #[command(flatten)]
    pub(crate) privacy: PrivacyArgs,
    /// Do not train each peer alone and all data in one place afterwards, to compare with
    #[arg(long)]
    pub(crate) no_comparison: bool,
    /// Folder of plan, models, events and plot; the files of an earlier demo are replaced once peers have begun
    #[arg(short, long, default_value = "mingle-demo", value_name = "DIR")]
    pub(crate) output: PathBuf,
}

impl DemoArgs {
    /// Options of a demo in which a swarm trains a model.
    pub(crate) fn options(&self) -> DemoOptions {
        let training = TrainingOptions {
            model: self.model.clone(),
            split: Some(self.split.clone()),
            rounds: self.rounds.unwrap_or(ROUNDS),
            optimizer: self.optimizer.into(),
            learning_rate: self.learning_rate,
            seed: self.seed,
            device: self.device.clone(),
            evaluate_every: self.evaluate_every,
            privacy: self.privacy.into(),
            ..self.samples.clone().into()
        };
        DemoOptions {
            peers: self.peers,
            training,
            method: self.method.clone(),
            local_steps: self.local_steps,
            kills: self.kill.clone(),
            restart: self.restart,
            durability: self.durability.map(|durability| durability == DurabilityName::On),
            timeline: self.timeline == Switch::On,
            wait: self.wait.clone(),
            codec: self.communication.codec,
            medium: self.medium.medium.clone(),
            air_rate: self.medium.air_rate,
            slots: self.medium.slots,
            robust: self.communication.robust,
            momentum_across_rounds: self.communication.momentum_across_rounds,
            overlap: self.communication.overlap,
            comparison: !self.no_comparison,
            output: self.output.clone(),
        }
    }

    /// Options of a demo in which a swarm solves a problem.
    pub(crate) fn problem_options(&self) -> ProblemOptions {
        ProblemOptions {
            peers: self.peers,
            rounds: self.rounds,
            method: self.method.clone(),
            seed: self.seed,
            output: self.output.clone(),
        }
    }
}
