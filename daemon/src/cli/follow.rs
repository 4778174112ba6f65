//! Arguments of `mingle follow`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mingle_peer::follow::Precision;

use super::duration::duration;

/// Arguments of `follow`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FollowArgs {
    /// The word that `mingle invite` printed, or - to read it from standard input; following takes up none of its uses
    pub(crate) ticket: String,
    /// The file to write each model to, in the safetensors format, replaced whole [default: model.safetensors, in --home if given]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A folder for the key of this follower, so that it is the same one each time [default: a new key at each start]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Get the model of each K-th round, as far as the member that is followed makes one of it
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) every: u32,
    /// The numbers of the model: f32 as members have them, or bf16, rounded by the member before it is sent
    #[arg(long, default_value_t = Precision::F32, value_name = "f32|bf16")]
    pub(crate) precision: Precision,
    /// Run this command by the shell after each new model, one at a time; MINGLE_FOLLOWED_FILE and MINGLE_FOLLOWED_ROUND say which
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// End after the first model
    #[arg(long)]
    pub(crate) once: bool,
    /// Give up when no member has answered for so long (exit code 3)
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Stop when standard input ends: for programs that start followers and must not leave one behind
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
}
