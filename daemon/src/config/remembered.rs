//! Remembered options: those of the last run in a home, with which the next `mingle run` there continues.
//!
//! Only options set by a flag or a variable of the environment are kept; the configuration file is read again. The plan
//! is not kept as an option: a home keeps the plan itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mingle_peer::error::Context;
use mingle_peer::home::write_file;
use mingle_peer::records::counting_file;
use mingle_peer::{ErrorKind, Home, Result};
use serde::{Deserialize, Serialize};

use super::settings::{self, SETTINGS};
use super::{file, former};

const SCHEMA: &str = "mingle.options/1";
/// Settings that apply to one start only.
const NOT_KEPT: &[&str] = &["plan"];
/// Key of the configuration file that was named; not a setting, but a source of settings.
pub(super) const CONFIG: &str = "config";

/// The options of a run, as the command line writes their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    schema: String,
    options: BTreeMap<String, Vec<String>>,
}

impl Remembered {
    /// The options with these keys of settings.
    pub(crate) fn new(options: BTreeMap<String, Vec<String>>) -> Self {
        Self { schema: SCHEMA.to_owned(), options: options.into_iter().filter_map(kept).collect() }
    }

    /// The options of the last run in a home; empty if there was none. Options that this release does not accept are
    /// left out.
    pub(crate) fn of(home: &Home) -> Result<Self> {
        let path = counting_file(home, &path(home));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(BTreeMap::new())),
            Err(error) => return Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
        };
        // A convenience: an unreadable file counts as none.
        let read: Option<Self> = serde_json::from_str(&text).ok();
        let options = read.filter(|read| read.schema == SCHEMA).map(|read| read.options).unwrap_or_default();
        let usable = options.into_iter().map(former::renamed).filter(|(key, values)| {
            key == CONFIG || settings::find(key).is_some_and(|setting| file::check(setting, values).is_ok())
        });
        Ok(Self::new(usable.collect()))
    }

    /// Writes the options into the home.
    pub(crate) fn write(&self, home: &Home) -> Result {
        let text = serde_json::to_string_pretty(self).context(ErrorKind::Unexpected, "cannot encode the options")?;
        write_file(&path(home), format!("{text}\n").as_bytes())
    }

    /// Key and values of each option.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, &Vec<String>)> {
        SETTINGS.iter().filter_map(|setting| Some((setting.key, self.options.get(setting.key)?)))
    }

    /// The configuration file that was named, if one was.
    pub(super) fn config(&self) -> Option<PathBuf> {
        self.options.get(CONFIG)?.first().map(PathBuf::from)
    }

    /// Returns `true` if there are no options.
    pub(crate) fn is_empty(&self) -> bool {
        self.options.is_empty()
    }
}

/// Path of the file.
pub(crate) fn path(home: &Home) -> PathBuf {
    home.root().join("options.json")
}

/// An option with paths made absolute, so that it means the same in any folder; `None` if it is not kept.
fn kept((key, values): (String, Vec<String>)) -> Option<(String, Vec<String>)> {
    if NOT_KEPT.contains(&key.as_str()) {
        return None;
    }
    let anywhere = |value: String| match key.as_str() {
        "data" => absolute_data(&value),
        "problem" | "card" | CONFIG => absolute(&value),
        _ => value,
    };
    let values = values.into_iter().map(anywhere).collect();
    Some((key, values))
}

fn absolute_data(value: &str) -> String {
    match value.split_once(':') {
        Some((kind, path)) if !path.is_empty() => format!("{kind}:{}", absolute(path)),
        _ => value.to_owned(),
    }
}

fn absolute(path: &str) -> String {
    std::path::absolute(Path::new(path)).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_come_back_from_any_folder_and_those_that_mean_nothing_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert!(Remembered::of(&home).unwrap().is_empty());
        let options = [("data", "csv:a.csv,label=kind"), ("rounds", "12"), ("plan", "p.json"), ("wait", "for ever")];
        let options = options.map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
        Remembered::new(options.into()).write(&home).unwrap();
        let read = Remembered::of(&home).unwrap();
        let entries: Vec<_> = read.entries().collect();
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert!(entries[0].1[0].starts_with("csv:/") && entries[0].1[0].ends_with("/a.csv,label=kind"), "{entries:?}");
        assert_eq!(entries[1], ("rounds", &vec!["12".to_owned()]));
        fs::write(path(&home), "{").unwrap();
        assert!(Remembered::of(&home).unwrap().is_empty());
    }
}
