//! Arguments of `mingle config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::HomeArgs;

/// The variable that names a configuration file, as `--config` does.
pub(crate) const CONFIG_ENV: &str = "MINGLE_CONFIG";

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the settings that `run` would have, as a configuration file
    Show(ConfigShowArgs),
    /// Print where this peer's configuration file is, or would be
    Path(ConfigPathArgs),
    /// Say whether a configuration file can be used, and if not, which lines are wrong
    Check(ConfigCheckArgs),
}

/// Selection of a configuration file.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigPathArgs {
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// The configuration file [default: config.toml in the home, if there is one]
    #[arg(long, env = CONFIG_ENV, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Arguments of `config show`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) path: ConfigPathArgs,
    /// Say of each setting where it comes from
    #[arg(long)]
    pub(crate) origin: bool,
}

/// Arguments of `config check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// The file
    pub(crate) file: PathBuf,
}
