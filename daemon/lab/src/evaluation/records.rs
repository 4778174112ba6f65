//! The results of runs, kept line by line, so that an interrupted suite loses only the run under way.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::simulation::SwarmProgress;

/// The form of a record.
pub(super) const SCHEMA: &str = "mingle.evaluation-run/1";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub(super) schema: String,
    /// A hash of everything that determines the result.
    pub key: String,
    /// The topology, by its name in the suite.
    pub topology: String,
    /// The split of the data.
    pub split: String,
    /// The design, by its name in the suite.
    pub design: String,
    /// The seed.
    pub seed: u64,
    /// BLAKE3 of the plan.
    pub plan: String,
    /// The method that made it.
    pub method: String,
    /// Slots of a period.
    pub slots_per_period: usize,
    /// Rounds in a period.
    pub rounds_per_period: usize,
    /// `true` if it reached its target; it then ended there.
    pub reached: bool,
    /// All evaluations.
    pub curve: Vec<SwarmProgress>,
}

impl RunRecord {
    /// The file that holds its plan, in this folder.
    pub fn plan_file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.plan))
    }

    /// Slots to the target; none where it was not reached.
    pub fn slots_to_target(&self) -> Option<u64> {
        self.curve.last().filter(|_| self.reached).map(|progress| progress.slots)
    }
}

/// A result that is identified by everything that determines it.
pub trait Keyed {
    /// The hash of that.
    fn key(&self) -> &str;
}

impl Keyed for RunRecord {
    fn key(&self) -> &str {
        &self.key
    }
}

/// The file of all results.
pub struct Records<R = RunRecord> {
    known: BTreeMap<String, R>,
    file: File,
}

impl<R: Keyed + Serialize + DeserializeOwned> Records<R> {
    /// Opens the file, or creates it. A last line that was cut off by a crash is dropped.
    ///
    /// # Errors
    /// It cannot be read or written, or has a line that is not a record.
    pub fn open(path: &Path) -> Result<Self, RecordsError> {
        let unusable = |source| RecordsError::Unusable { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(unusable)?;
        let mut known = BTreeMap::new();
        let mut whole_bytes = 0;
        let mut reader = BufReader::new(&mut file);
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            reader.read_line(&mut line).map_err(unusable)?;
            if !line.ends_with('\n') {
                break;
            }
            let record: R = serde_json::from_str(&line).map_err(|source| RecordsError::Line {
                path: path.to_owned(),
                number,
                source,
            })?;
            known.insert(record.key().to_owned(), record);
            whole_bytes += line.len() as u64;
        }
        file.set_len(whole_bytes).map_err(unusable)?;
        Ok(Self { known, file })
    }

    /// The result of a run, if there is one.
    pub fn get(&self, key: &str) -> Option<&R> {
        self.known.get(key)
    }

    /// Appends a result.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, record: R) -> Result<(), RecordsError> {
        let line = format!("{}\n", serde_json::json!(record));
        self.file.write_all(line.as_bytes()).map_err(RecordsError::NotWritten)?;
        self.known.insert(record.key().to_owned(), record);
        Ok(())
    }
}

/// The reason for which results cannot be kept.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecordsError {
    /// The file cannot be read or written.
    #[error("cannot use {}", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    /// A line is not a record.
    #[error("cannot use {}: line {number}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        number: u64,
        /// The fault.
        source: serde_json::Error,
    },
    /// A result cannot be written.
    #[error("cannot write down the result of a run")]
    NotWritten(#[source] io::Error),
}
