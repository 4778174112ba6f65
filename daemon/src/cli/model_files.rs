//! Arguments of the commands that read models and records: `eval`, `export`, `ckpt`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::HomeArgs;

/// Arguments of `eval`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EvalArgs {
    /// The model, such as model.safetensors
    pub(crate) file: PathBuf,
    /// digits, idx:DIR (MNIST, Fashion-MNIST), cifar10:DIR, csv:FILE, text or text:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// softmax, mlp, mlp:hidden=N, cnn, resnet-lite or gpt:... [default: the one whose tensors the file has]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The samples to evaluate it on
    #[arg(long, value_enum, default_value_t = SampleSource::Test)]
    pub(crate) on: SampleSource,
    /// Seed of the run: where data come without a test set, it decides which samples were held out
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
}

/// Selection of a model file.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// The model, such as model.safetensors [default: the one that the run in the home left]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// Arguments of `predict`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The samples: csv:FILE, with the columns of the model by name; or the test part of digits, idx:DIR or cifar10:DIR
    #[arg(long)]
    pub(crate) data: String,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the probability of each class too
    #[arg(long)]
    pub(crate) probabilities: bool,
    /// Where to compute: cpu, ndarray or wgpu
    #[arg(long, default_value = "cpu")]
    pub(crate) device: String,
}

/// Samples of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleSource {
    /// The held-out samples, on which no peer trains
    Test,
    /// The samples on which all peers together train
    Train,
}

impl SampleSource {
    /// The word for the samples.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Train => "train",
        }
    }
}

/// Arguments of `generate`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The text to go on with; it is printed first
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) prompt: String,
    /// Number of characters, or bytes, to generate
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) length: u64,
    /// Below 1 what is likely becomes more likely, above 1 less
    #[arg(long, default_value_t = 0.8, value_name = "T")]
    pub(crate) temperature: f64,
    /// Draw from the K likeliest tokens alone
    #[arg(long, default_value_t = 200, value_name = "K")]
    pub(crate) top_k: usize,
    /// Seed of the draws: the same one gives the same text
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Arguments of `export`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The file to write, in the safetensors format with PyTorch's names; replaced if it exists
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Subcommands of `ckpt`.
#[derive(Debug, Subcommand)]
pub(crate) enum CkptCommand {
    /// List the model and the records of a peer that does not run
    List(HomeArgs),
    /// Say what is in a model file or a record
    Inspect(CkptInspectArgs),
    /// Check that model files, records or whole homes are sound; exit code 8 if one is not
    Verify(CkptVerifyArgs),
}

/// Arguments of `ckpt inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CkptInspectArgs {
    /// A file such as model.safetensors or records/0000.record
    pub(crate) file: PathBuf,
}

/// Arguments of `ckpt verify`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CkptVerifyArgs {
    /// Model files, record files, or homes of peers that do not run
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}
