//! The suite file of a comparison of methods.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use crate::evaluation::{SuiteError, read_suite_text};

/// The key that only suites of methods have.
const PROBLEM: &str = "problem";
/// The key of a problem that is set to a run's seed.
const SEED: &str = "seed";

/// A suite: one problem x methods x seeds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MethodSuite {
    /// The title of the report [default: the name of the problem's file].
    #[serde(default)]
    pub title: String,
    /// The problem file, relative to the folder of the suite.
    pub problem: PathBuf,
    /// The plan along which its nodes learn, relative to the folder of the suite.
    #[serde(default)]
    pub plan: Option<PathBuf>,
    /// Instead of a plan: the number of clients, each linked to all others.
    #[serde(default)]
    pub clients: Option<usize>,
    /// The problem's seeds, one for each run of a method.
    pub seeds: Vec<u64>,
    /// The metrics in the report, in this order [default: all that the problem has].
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The method that the others are compared with, seed by seed [default: the first].
    #[serde(default)]
    pub baseline: Option<String>,
    /// The methods [default: those that this kind of problem is usually learned with].
    #[serde(default)]
    pub method: Vec<MethodEntry>,
}

/// One method.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MethodEntry {
    /// Its name in the report.
    pub name: String,
    /// Lines that replace those of the problem file; a table in it is merged with that of the file.
    #[serde(default)]
    pub set: Table,
}

impl MethodSuite {
    /// Reads a suite and checks it. None where the file is a suite of another kind, which names no problem, or is not
    /// TOML: the readers of the other kinds report that.
    ///
    /// # Errors
    /// The entry that cannot be used, with its line or name.
    pub fn read(path: &Path) -> Result<Option<Self>, SuiteError> {
        Self::parse(&read_suite_text(path)?, path)
    }

    /// Parses the text of a suite file.
    fn parse(text: &str, path: &Path) -> Result<Option<Self>, SuiteError> {
        if !toml::from_str::<Table>(text).is_ok_and(|table| table.contains_key(PROBLEM)) {
            return Ok(None);
        }
        let mut suite: Self =
            toml::from_str(text).map_err(|source| SuiteError::Toml { path: path.to_owned(), source })?;
        suite.check().map_err(|what| SuiteError::Entry { path: path.to_owned(), what })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        suite.problem = folder.join(&suite.problem);
        suite.plan = suite.plan.map(|plan| folder.join(plan));
        if suite.title.is_empty() {
            suite.title = suite.problem.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(Some(suite))
    }

    fn check(&self) -> Result<(), String> {
        if self.seeds.is_empty() {
            return Err("a suite needs at least one seed: seeds = [0, 1, 2]".to_owned());
        }
        if let Some(seed) = repeated(&self.seeds) {
            return Err(format!("seed {seed} is there twice"));
        }
        match (self.clients, &self.plan) {
            (None, None) | (Some(_), Some(_)) => return Err("give either clients = N or plan = \"FILE\"".to_owned()),
            (Some(clients), None) if clients < 2 => return Err(format!("clients = {clients}: two at least")),
            _ => {}
        }
        self.check_methods(&self.method)
    }

    /// Checks methods that come from elsewhere, where the suite has none.
    ///
    /// # Errors
    /// Two methods have one name, or the baseline is none of them.
    pub(super) fn check_methods(&self, methods: &[MethodEntry]) -> Result<(), String> {
        let names: Vec<&String> = methods.iter().map(|method| &method.name).collect();
        if let Some(name) = repeated(&names) {
            return Err(format!("two methods are called {name}"));
        }
        match &self.baseline {
            Some(baseline) if !methods.is_empty() && !names.contains(&baseline) => {
                Err(format!("baseline: there is no method {baseline}; there are {}", list(&names)))
            }
            _ => Ok(()),
        }
    }

    /// Reads the lines of the problem file.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML.
    pub fn read_problem(&self) -> Result<Table, SuiteError> {
        let path = || self.problem.clone();
        toml::from_str(&read_suite_text(&self.problem)?).map_err(|source| SuiteError::Toml { path: path(), source })
    }
}

/// The problem with a method's lines and a seed.
pub(super) fn with_method(problem: &Table, method: &MethodEntry, seed: u64) -> Table {
    let mut table = problem.clone();
    merge(&mut table, &method.set);
    // The seed was an integer in TOML, so it fits.
    table.insert(SEED.to_owned(), Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX)));
    table
}

fn merge(table: &mut Table, over: &Table) {
    for (name, value) in over {
        match (table.get_mut(name), value) {
            (Some(Value::Table(inner)), Value::Table(over)) => merge(inner, over),
            _ => {
                table.insert(name.clone(), value.clone());
            }
        }
    }
}

fn repeated<T: PartialEq>(all: &[T]) -> Option<&T> {
    all.iter().enumerate().find(|(at, one)| all[..*at].contains(one)).map(|(_, one)| one)
}

fn list(names: &[&String]) -> String {
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Option<MethodSuite>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.toml");
        fs::write(&path, text).unwrap();
        MethodSuite::read(&path).map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("{error}: {source}")
        })
    }

    #[test]
    fn a_method_stands_in_place_of_lines_and_leaves_the_other_lines_of_a_table() {
        let problem: Table = toml::from_str("kind = \"x\"\nseed = 9\n[model]\nhidden = 4\nlayers = 2").unwrap();
        let set: Table = toml::from_str("sharing = \"local\"\n[model]\nhidden = 8").unwrap();
        let found = with_method(&problem, &MethodEntry { name: "one".to_owned(), set }, 3);
        let expected: Table =
            toml::from_str("kind = \"x\"\nseed = 3\nsharing = \"local\"\n[model]\nhidden = 8\nlayers = 2").unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_suite_that_cannot_be_says_why() {
        assert_eq!(read("title = \"designs\"\nseeds = [1]\n").unwrap(), None);
        for (text, words) in [
            ("clients = 3\nseeds = []", "at least one seed"),
            ("clients = 3\nseeds = [1, 2, 1]", "seed 1 is there twice"),
            ("clients = 3\nseeds = [-1]", "-1"),
            ("clients = 1\nseeds = [1]", "clients = 1: two at least"),
            ("seeds = [1]", "either clients"),
            ("clients = 3\nplan = \"p\"\nseeds = [1]", "either clients"),
            ("clients = 3\nseeds = [1]\ncolour = 1", "colour"),
            (
                "clients = 3\nseeds = [1]\n[[method]]\nname = \"a\"\n[[method]]\nname = \"a\"",
                "two methods are called a",
            ),
            ("clients = 3\nseeds = [1]\nbaseline = \"b\"\n[[method]]\nname = \"a\"", "there is no method b"),
        ] {
            let told = read(&format!("problem = \"p.toml\"\n{text}")).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
        let suite = read("problem = \"p.toml\"\nclients = 3\nseeds = [1]").unwrap().unwrap();
        assert_eq!(suite.title, "p");
        assert!(suite.read_problem().unwrap_err().to_string().contains("p.toml"));
    }
    #[test]
    fn mutated_suites_of_methods_are_refused_or_can_be_run() {
        let sound = "problem='p.toml'\nclients=4\nseeds=[0,1]\nmetrics=['m']\nbaseline='a'\n[[method]]\nname='a'\nset={x=1,y={z='b'}}\n\
                     [[method]]\nname='b'\n";
        let of_plan = "title='t'\nproblem='p.toml'\nplan='plan.json'\nseeds=[3]\n";
        let parse = |text: &str| MethodSuite::parse(text, Path::new("/suites/suite.toml"));
        assert!(parse(sound).unwrap().is_some() && parse(of_plan).unwrap().is_some());
        let problem: Table = toml::from_str("x = 2\ny = 3\n[set]\n").unwrap();
        mingle_mutations::for_each_input(
            "method_suite",
            &[sound, of_plan].map(|seed| seed.as_bytes().to_vec()),
            |input| {
                let Ok(Some(suite)) = parse(&String::from_utf8_lossy(input)) else { return };
                assert!(suite.clients.is_none_or(|clients| clients > 1));
                for (method, seed) in suite.method.iter().zip(&suite.seeds) {
                    let table = with_method(&problem, method, *seed);
                    assert!(method.set.keys().all(|key| table.contains_key(key)));
                }
            },
        );
    }
}
