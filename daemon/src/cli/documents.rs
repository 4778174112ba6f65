//! Arguments of the commands that print the command line itself: completions and manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that shall complete
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// The folder for the pages, made if it is missing; mingle.1, mingle-run.1 and so on are replaced there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
