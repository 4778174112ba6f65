//! Reading of a configuration file: every entry is checked as an option of `run`, every fault has its line.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, ValueEnum};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_plaintext::InputFile;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::former;
use super::settings::{self, SETTINGS, Setting, ValueForm};
use crate::arguments;
use crate::cli::{Cli, DurabilityName};

/// Largest configuration file.
const MAX_BYTES: u64 = 1 << 20;
/// Most entries of a list, which are addresses.
const MAX_LIST: usize = 1024;

/// A valid configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    entries: BTreeMap<&'static str, SettingEntry>,
}

/// An entry of a file for one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingEntry {
    /// The line of its key, from 1.
    pub(crate) line: usize,
    /// The value, or the values of a list, as the command line writes them.
    pub(crate) values: Vec<String>,
}

impl ConfigFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Every fault that was found, each with the file, its line and what is possible instead.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let doing = format!("cannot read the configuration {}", path.display());
        let mut text = String::new();
        let file = InputFile::open(path).context(ErrorKind::BadInput, &doing)?;
        let bytes = file.take(MAX_BYTES + 1).read_to_string(&mut text).context(ErrorKind::BadInput, &doing)?;
        if bytes as u64 > MAX_BYTES {
            return Err(Error::new(ErrorKind::BadInput, format!("{doing}: it has more than {MAX_BYTES} bytes")));
        }
        Self::parse(path, &text)
    }

    /// Reads and checks the text of the file at `path`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut reader = SettingsReader { text, faults: Vec::new(), entries: BTreeMap::new() };
        reader.read();
        let SettingsReader { mut faults, entries, .. } = reader;
        if faults.is_empty() {
            return Ok(Self { path: path.to_path_buf(), entries });
        }
        faults.sort();
        let faults: Vec<String> =
            faults.iter().map(|(line, fault)| format!("{}:{line}: {fault}", path.display())).collect();
        Err(Error::new(ErrorKind::BadInput, faults.join("\n")).hint("`mingle run --help` says what each setting means"))
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The entry for a setting.
    pub(crate) fn entry(&self, key: &str) -> Option<&SettingEntry> {
        self.entries.get(key)
    }

    /// All entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, &SettingEntry)> {
        self.entries.iter().map(|(key, entry)| (*key, entry))
    }
}

struct SettingsReader<'a> {
    text: &'a str,
    /// Faults with their lines.
    faults: Vec<(usize, String)>,
    entries: BTreeMap<&'static str, SettingEntry>,
}

impl SettingsReader<'_> {
    fn read(&mut self) {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let line = error.span().map_or(1, |span| self.line(span.start));
            self.faults.push((line, error.message().to_owned()));
        }
        // Reading text that is not TOML would only repeat the fault.
        if self.faults.is_empty() {
            table.get_ref().iter().for_each(|(key, value)| self.read_entry(key, value));
        }
    }

    fn read_entry(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let line = self.line(key.span().start);
        let name = key.get_ref();
        let Some(setting) = settings::find(name) else {
            self.faults.push((line, unknown(name)));
            return;
        };
        let written = self.text.get(value.span()).unwrap_or_default().trim();
        let read = read_value(setting, value.get_ref(), written).and_then(|values| {
            check(setting, &values).map_err(|reason| format!("{} = {}: {reason}", setting.key, shortened(written)))?;
            Ok(values)
        });
        match read {
            Ok(values) => drop(self.entries.insert(setting.key, SettingEntry { line, values })),
            Err(fault) => self.faults.push((line, fault)),
        }
    }

    /// The line of a position, from 1.
    fn line(&self, position: usize) -> usize {
        let before = self.text.as_bytes().get(..position).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The fault of an unknown key, with the nearest known one.
fn unknown(name: &str) -> String {
    if let Some(advice) = former::of_key(name) {
        return advice;
    }
    let name = shortened(name);
    let keys = SETTINGS.iter().map(|setting| setting.key);
    let known = keys.min_by_key(|key| strsim::levenshtein(name, key)).unwrap_or_default();
    format!("there is no setting `{name}`; the nearest is `{known}`")
}

/// The value as the command line writes it, or the fault with the expected form.
fn read_value(setting: Setting, value: &DeValue<'_>, written: &str) -> Result<Vec<String>, String> {
    let read = match (setting.form, value) {
        (ValueForm::Text, DeValue::String(text)) => Some(vec![text.to_string()]),
        (ValueForm::Texts, DeValue::Array(items)) if items.len() <= MAX_LIST => {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        }
        (ValueForm::Whole, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| vec![number.to_string()])
        }
        (ValueForm::Number, DeValue::Integer(number)) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| vec![number.to_string()])
        }
        (ValueForm::Number, DeValue::Float(number)) => Some(vec![number.as_str().to_owned()]),
        _ => None,
    };
    read.ok_or_else(|| {
        let Setting { key, form, example, .. } = setting;
        format!("{key} = {}: it must be {}, such as {key} = {example}", shortened(written), form.describe())
    })
}

/// Checks that `run` would accept the values; the error is the reason.
pub(super) fn check(setting: Setting, values: &[String]) -> Result<(), String> {
    if setting.key == "listen" && values.is_empty() {
        return Err(format!("at least one address is needed, such as {}", setting.example));
    }
    let option = setting.key.replace('_', "-");
    // Short evictions are for problems: without one a run refuses them as a whole.
    let beside = (setting.key == "evict_after").then(|| "--problem=any".to_owned());
    let options = values.iter().map(|value| format!("--{option}={value}")).chain(beside);
    // Without the environment, whose faults are not those of the file.
    let matches = Cli::command()
        .try_get_matches_from(["mingle".to_owned(), "run".to_owned()].into_iter().chain(options))
        .map_err(|error| reason(&error, setting))?;
    let run = settings::run_arguments(&matches).map_err(|error| reason(&error, setting))?;
    // All other settings have their defaults, so a fault found here belongs to this one.
    arguments::check_each(&run).map_err(|failure: Error| format!("{failure:#}"))
}

/// The reason why clap refuses a value.
fn reason(error: &clap::Error, setting: Setting) -> String {
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue)
        && !valid.is_empty()
    {
        return format!("choose {}", valid.join(" or "));
    }
    if setting.key == "durability" {
        let names = DurabilityName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        return format!("choose {}", names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(" or "));
    }
    let reason = error.source().map_or_else(|| error.kind().to_string(), ToString::to_string);
    format!("{reason}; it is written as in {} = {}", setting.key, setting.example)
}

/// The beginning of a text, enough to recognise it.
fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(60).map_or(text.len(), |(end, _)| end);
    text.get(..end).and_then(|text| text.lines().next()).unwrap_or_default()
}
