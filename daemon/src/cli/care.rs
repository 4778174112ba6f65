//! Arguments of the commands that find out what is wrong: `doctor` and `bugreport`.

use std::path::PathBuf;

use clap::Args;

use super::ConfigPathArgs;

/// Arguments of `doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) peer: ConfigPathArgs,
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
