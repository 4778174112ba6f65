//! `mingle config`: shows the settings with their sources, and checks a file.

use std::collections::BTreeMap;

use mingle_peer::{Home, Result};
use serde_json::Value;

use crate::cli::{ConfigCheckArgs, ConfigCommand, ConfigPathArgs, ConfigShowArgs};
use crate::config::{self, ConfigFile, Effective, Origin};
use crate::out;

/// Executes the subcommand.
pub(super) fn execute(command: &ConfigCommand, json: bool) -> Result {
    match command {
        ConfigCommand::Show(arguments) => show(arguments, json),
        ConfigCommand::Path(arguments) => path(arguments, json),
        ConfigCommand::Check(arguments) => check(arguments, json),
    }
}

fn show(arguments: &ConfigShowArgs, json: bool) -> Result {
    let ConfigPathArgs { home, config } = &arguments.path;
    let file = config::find(home.home.as_deref(), config.as_deref())?;
    let settings = config::in_force(&Home::at(home.home.as_deref())?, file.as_ref())?;
    if json {
        let settings: BTreeMap<&str, Value> = settings.iter().map(|it| (it.setting.key, to_json(it))).collect();
        out::line(serde_json::json!({
            "schema": "mingle.config/1",
            "file": file.as_ref().map(ConfigFile::path),
            "settings": settings,
        }));
        return Ok(());
    }
    settings.iter().for_each(|setting| out::line(describe(setting, arguments.origin)));
    Ok(())
}

/// One line of a configuration file; a setting without a value is commented out.
fn describe(effective: &Effective, with_origin: bool) -> String {
    let Effective { setting, values, origin } = effective;
    let is_list = setting.form == config::ValueForm::Texts;
    let line = if values.is_empty() && !is_list {
        format!("# {} is not set", setting.key)
    } else {
        format!("{} = {}", setting.key, setting.form.write(values))
    };
    if !with_origin {
        return line;
    }
    let origin = match origin {
        Origin::Default => "default".to_owned(),
        Origin::LastRun => "the last run".to_owned(),
        Origin::Swarm => "the swarm".to_owned(),
        Origin::File(path, number) => format!("{}:{number}", path.display()),
        Origin::Environment => format!("${}", setting.env),
    };
    format!("{line:<60}  # {origin}")
}

fn to_json(effective: &Effective) -> Value {
    let Effective { setting, values, origin } = effective;
    let value: Value = serde_json::from_str(&setting.form.write(values)).unwrap_or(Value::Null);
    match origin {
        Origin::Default => serde_json::json!({ "value": value, "origin": "default" }),
        Origin::LastRun => serde_json::json!({ "value": value, "origin": "last-run" }),
        Origin::Swarm => serde_json::json!({ "value": value, "origin": "swarm" }),
        Origin::File(_, line) => serde_json::json!({ "value": value, "origin": "file", "line": line }),
        Origin::Environment => {
            serde_json::json!({ "value": value, "origin": "environment", "variable": setting.env })
        }
    }
}

fn path(arguments: &ConfigPathArgs, json: bool) -> Result {
    let path = match &arguments.config {
        Some(path) => path.clone(),
        None => Home::at(arguments.home.home.as_deref())?.config(),
    };
    if json {
        out::line(serde_json::json!({ "schema": "mingle.config-path/1", "path": path, "exists": path.exists() }));
        return Ok(());
    }
    out::line(path.display());
    if !path.exists() {
        remark!("there is none yet: `mingle init` writes one that explains itself");
    }
    Ok(())
}

fn check(arguments: &ConfigCheckArgs, json: bool) -> Result {
    let file = ConfigFile::read(&arguments.file)?;
    let keys: Vec<&str> = file.entries().map(|(key, _)| key).collect();
    if json {
        out::line(serde_json::json!({ "schema": "mingle.config-check/1", "file": file.path(), "sets": keys }));
    } else {
        let sets = if keys.is_empty() { "nothing: all is default".to_owned() } else { keys.join(", ") };
        out::line(format!("{} can be used; it sets {sets}", file.path().display()));
    }
    Ok(())
}
