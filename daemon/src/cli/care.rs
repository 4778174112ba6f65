//! Arguments of the commands that find out what is wrong: `doctor` and `bugreport`.

use std::path::PathBuf;

use clap::Args;

use super::ConfigPathArgs;

/// Arguments of `doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) peer: ConfigPathArgs,
    /// Look at these data instead of those of the settings: digits, idx:DIR, cifar10:DIR or csv:FILE
    #[arg(long)]
    pub(crate) data: Option<String>,
    /// Fit this model to them: softmax, mlp, mlp:hidden=N, cnn or resnet-lite [default: that of the settings]
    #[arg(long)]
    pub(crate) model: Option<String>,
}

/// Arguments of `bugreport`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BugreportArgs {
    #[command(flatten)]
    pub(crate) peer: ConfigPathArgs,
    /// The archive to write, such as mingle-report.tar; it must not exist
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
