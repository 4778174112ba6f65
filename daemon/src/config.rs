//! Resolution of the settings of `mingle run`: a flag, else the environment, else the configuration file, else the last
//! run in that home, else the task of the swarm, else the default.
//!
//! ```text
//!   cli/run.rs    what a setting is called, what it means, its default        (clap)
//!   settings.rs   which options of `run` are settings, and how TOML writes them
//!   file.rs       config.toml: every entry with its line, every fault with a line and what is possible
//!   former.rs     names that settings had before
//!   remembered.rs with what options a home was last run
//!   template.rs   the commented config.toml that `mingle init` writes
//! ```
//!
//! A file's entries become the defaults of the command line, which is then parsed again. So flags and the environment
//! win by clap's own rules, which exist in one place only.

mod file;
pub(crate) mod former;
mod remembered;
mod settings;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use mingle_builtin::task_card::settings_of;
use mingle_builtin::task_file::TaskFile;
use mingle_peer::error::Context;
use mingle_peer::membership::Membership;
use mingle_peer::{ErrorKind, Home, Result};

use crate::cli::{ADAMW_LEARNING_RATE, CONFIG_ENV, Cli, Command as Asked, Given, RunArgs};

pub(crate) use file::ConfigFile;
pub(crate) use remembered::{Remembered, path as remembered_options_path};
use settings::{OF_ONE_START, ONE_START};
pub(crate) use settings::{SETTINGS, Setting, ValueForm};
pub(crate) use template::template;

/// The commands that start a peer, and so take settings.
const PEER_COMMANDS: [&str; 3] = ["run", "join", "leave"];
/// The setting whose default depends on another one.
const LEARNING_RATE: &str = "learning_rate";

/// The command line, with a variable of the environment for every setting.
pub(crate) fn command_line() -> Command {
    with_rate_of_the_optimizer(with_settings())
}

/// Makes the default learning rate depend on the optimizer.
fn with_rate_of_the_optimizer(command: Command) -> Command {
    PEER_COMMANDS.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |peer| {
            peer.mut_arg(LEARNING_RATE, |rate| rate.default_value_if("optimizer", "adamw", ADAMW_LEARNING_RATE))
        })
    })
}

/// The command line of the derived types, with a variable and a heading for every setting.
fn with_settings() -> Command {
    PEER_COMMANDS.iter().fold(Cli::command(), |command, name| {
        command.mut_subcommand(name, |peer| {
            let peer = SETTINGS.iter().fold(peer, |peer, setting| {
                peer.mut_arg(setting.key, |argument| {
                    argument.env(setting.env).hide_env_values(true).help_heading(setting.group.heading())
                })
            });
            OF_ONE_START.iter().fold(peer, |peer, key| peer.mut_arg(key, |argument| argument.help_heading(ONE_START)))
        })
    })
}

/// The variables of the environment that set options of `run`.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.env).chain([CONFIG_ENV])
}

/// Resolves the arguments, with the configuration file where the command starts a peer. Prints help and ends the
/// process as clap does.
pub(crate) fn resolve(matches: &ArgMatches, arguments: impl IntoIterator<Item = OsString>) -> Result<Cli> {
    let Some((name, peer)) = matches.subcommand().filter(|(name, _)| PEER_COMMANDS.contains(name)) else {
        return to_cli(matches);
    };
    let home = Home::at(path_of(peer, "home"))?;
    // A ticket is for a task of its own.
    let last = if name == "join" { Remembered::new(BTreeMap::new()) } else { Remembered::of(&home)? };
    let named = path_of(peer, "config").map(Path::to_path_buf).or_else(|| last.config());
    let file = find(path_of(peer, "home"), named.as_deref())?;
    if file.is_none() && last.is_empty() {
        return to_cli(matches).map(|cli| with_given(cli, peer, None, &last));
    }
    let matches = with_defaults(file.as_ref(), &last).get_matches_from(arguments);
    let cli = to_cli(&matches)?;
    let peer = matches.subcommand().map_or(peer, |(_, peer)| peer);
    Ok(with_given(cli, peer, file.as_ref(), &last))
}

/// Records the settings that the user chose, and those that the next run in the home keeps.
fn with_given(mut cli: Cli, peer: &ArgMatches, file: Option<&ConfigFile>, last: &Remembered) -> Cli {
    let mut options: BTreeMap<String, Vec<String>> =
        last.entries().map(|(key, values)| (key.to_owned(), values.clone())).collect();
    let in_file = file.into_iter().flat_map(ConfigFile::entries).map(|(key, _)| key.to_owned());
    let mut keys: BTreeSet<String> = in_file.chain(options.keys().cloned()).collect();
    if let Some(config) = path_of(peer, "config").map(Path::to_path_buf).or_else(|| last.config()) {
        options.insert(remembered::CONFIG.to_owned(), vec![config.display().to_string()]);
    }
    for setting in SETTINGS {
        let is_said =
            matches!(peer.value_source(setting.key), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        if is_said && let Some(values) = peer.get_raw(setting.key) {
            keys.insert(setting.key.to_owned());
            options.insert(setting.key.to_owned(), values.map(|value| value.to_string_lossy().into_owned()).collect());
        }
    }
    let given = Given { keys, options };
    match &mut cli.command {
        Asked::Run(run) | Asked::Leave(run) => run.given = given,
        Asked::Join(join) => join.run.given = given,
        _ => {}
    }
    cli
}

fn path_of<'a>(matches: &'a ArgMatches, argument: &str) -> Option<&'a Path> {
    matches.get_one::<PathBuf>(argument).map(PathBuf::as_path)
}

/// The configuration file of a peer: the named one, which must exist, or the one in its home, if there is one.
pub(crate) fn find(home: Option<&Path>, named: Option<&Path>) -> Result<Option<ConfigFile>> {
    if let Some(path) = named {
        return ConfigFile::read(path).map(Some);
    }
    let path = Home::at(home)?.config();
    if path.exists() { ConfigFile::read(&path).map(Some) } else { Ok(None) }
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effective {
    /// The setting.
    pub(crate) setting: Setting,
    /// Its value or values; empty if it is not set and has no default.
    pub(crate) values: Vec<String>,
    /// The source of the values.
    pub(crate) origin: Origin,
}

/// The source of a setting's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The default.
    Default,
    /// The configuration file, in this line.
    File(PathBuf, usize),
    /// The options or the task of the last run in this home.
    LastRun,
    /// The task of the swarm that this peer has joined.
    Swarm,
    /// A variable of the environment.
    Environment,
}

/// All settings as `run` would have them in this home without flags.
pub(crate) fn in_force(home: &Home, file: Option<&ConfigFile>) -> Result<Vec<Effective>> {
    let mut settings = effective(file, &Remembered::of(home)?)?;
    let Some(card) = TaskFile::last(home)? else { return Ok(settings) };
    let is_invited = Membership::of(home)?.is_some_and(|membership| membership.invite.is_some());
    let origin = if is_invited { Origin::Swarm } else { Origin::LastRun };
    for (key, values) in settings_of(&card) {
        let unset = |it: &&mut Effective| it.setting.key == key && it.origin == Origin::Default;
        if let Some(setting) = settings.iter_mut().find(unset) {
            (setting.values, setting.origin) = (values, origin.clone());
        }
    }
    Ok(settings)
}

/// All settings as `run` would have them without flags, from a file and the options of the last run.
pub(crate) fn effective(file: Option<&ConfigFile>, last: &Remembered) -> Result<Vec<Effective>> {
    let matches = with_defaults(file, last)
        .try_get_matches_from(["mingle", "run"])
        .context(ErrorKind::BadInput, "the environment sets what cannot be used")?;
    let Some(run) = matches.subcommand_matches("run") else { return Ok(Vec::new()) };
    Ok(SETTINGS.iter().map(|setting| one_effective(*setting, run, file, last)).collect())
}

fn one_effective(setting: Setting, run: &ArgMatches, file: Option<&ConfigFile>, last: &Remembered) -> Effective {
    let values = run.get_raw(setting.key).map(|values| values.map(|value| value.to_string_lossy().into_owned()));
    let origin = match (run.value_source(setting.key), file.and_then(|file| Some((file, file.entry(setting.key)?)))) {
        (Some(ValueSource::EnvVariable), _) => Origin::Environment,
        (_, Some((file, entry))) => Origin::File(file.path().to_path_buf(), entry.line),
        _ if last.entries().any(|(key, _)| key == setting.key) => Origin::LastRun,
        _ => Origin::Default,
    };
    Effective { setting, values: values.map(Iterator::collect).unwrap_or_default(), origin }
}

/// The arguments of `run` with these settings and no flags, for commands that check them in advance.
pub(crate) fn run_arguments(home: Option<&Path>, file: Option<&ConfigFile>) -> Result<RunArgs> {
    let last = Remembered::of(&Home::at(home)?)?;
    let command = with_defaults(file, &last);
    let mut arguments = vec![OsString::from("mingle"), OsString::from("run")];
    arguments.extend(home.into_iter().flat_map(|home| [OsString::from("--home"), home.as_os_str().to_owned()]));
    let matches = command
        .try_get_matches_from(arguments)
        .context(ErrorKind::BadInput, "the environment sets what cannot be used")?;
    settings::run_arguments(&matches).context(ErrorKind::Unexpected, "the command line and its definition do not agree")
}

/// The command line with other defaults: the options of the last run, overridden by the entries of a file.
fn with_defaults(file: Option<&ConfigFile>, last: &Remembered) -> Command {
    let mut defaults: BTreeMap<&'static str, &Vec<String>> = last.entries().collect();
    defaults.extend(file.into_iter().flat_map(ConfigFile::entries).map(|(key, entry)| (key, &entry.values)));
    let command = PEER_COMMANDS.iter().fold(with_settings(), |command, name| {
        command.mut_subcommand(name, |peer| {
            defaults.iter().fold(peer, |peer, (key, values)| {
                peer.mut_arg(key, |argument| argument.default_values(values.iter().map(|value| leak(value))))
            })
        })
    });
    // Last: clap looks for the optimizer among the arguments before the learning rate, and moves changed arguments to
    // the end.
    if defaults.contains_key(LEARNING_RATE) { command } else { with_rate_of_the_optimizer(command) }
}

/// Leaks a text, as clap keeps defaults for as long as the program runs: a few hundred bytes for each file read.
fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn to_cli(matches: &ArgMatches) -> Result<Cli> {
    Cli::from_arg_matches(matches).context(ErrorKind::Unexpected, "the command line and its definition do not agree")
}

#[cfg(test)]
mod tests;
