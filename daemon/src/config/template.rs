//! The configuration file that `mingle init` writes: every setting with its help text and its default.

use clap::{Arg, CommandFactory};

use super::settings::{SETTINGS, Setting};
use crate::cli::Cli;

const HEAD: &str = "\
# Settings of this peer, read by `mingle run`. A flag wins over the environment, the environment over this file, this
# file over the default. What is commented out is the default, or an example where nothing is the default.
#
#   mingle config show --origin     what is in force, and who said so
#   mingle config check FILE        whether a file can be used
#
# Paths are relative to the folder that mingle is started in.
";

/// The text of the file. Uncommented, its entries are the defaults, except for those marked as examples.
pub(crate) fn template() -> String {
    let command = Cli::command();
    let run = command.find_subcommand("run");
    let mut text = HEAD.to_owned();
    let mut group = None;
    for setting in SETTINGS {
        if group.replace(setting.group) != Some(setting.group) {
            text.push_str(&format!("\n# ---- {} ----\n", setting.group.heading()));
        }
        let argument = run.and_then(|run| run.get_arguments().find(|argument| argument.get_id() == setting.key));
        text.push('\n');
        text.push_str(&entry(*setting, argument));
    }
    text
}

fn entry(setting: Setting, argument: Option<&Arg>) -> String {
    let help = argument.and_then(Arg::get_help).map(ToString::to_string).unwrap_or_default();
    let defaults = argument.map(Arg::get_default_values).unwrap_or_default();
    let defaults: Vec<String> = defaults.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let help = help.replace('\n', "\n# ");
    if defaults.is_empty() {
        format!("# {help}\n# Not set by default; for example:\n# {} = {}\n", setting.key, setting.example)
    } else {
        format!("# {help}\n# {} = {}\n", setting.key, setting.form.write(&defaults))
    }
}
