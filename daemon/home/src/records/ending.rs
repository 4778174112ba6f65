//! The mark of a run that ended in good order: nobody needs this peer any more.
//!
//! Without it a peer that is started again goes on with its records: it may owe parcels to others, or others to it.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Context, ErrorKind, Result};
use crate::home::{Home, write_file};
use crate::owner_only::open_to_read;

const SCHEMA: &str = "mingle.ending/1";

/// How the run ended that the records are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    schema: String,
    /// The newest record. Another one means that the mark is not of these records.
    record: u64,
    /// Rounds done.
    pub rounds: u64,
    /// Rounds of the task; none where an earlier release wrote the mark, for which they were those done.
    #[serde(default)]
    rounds_of_task: Option<u64>,
    /// The peer has handed its weight over and is no member any more.
    #[serde(default)]
    pub left: bool,
}

impl Ending {
    /// A run that ended with this record.
    pub fn new(record: u64, rounds: u64, left: bool) -> Self {
        Self { schema: SCHEMA.to_owned(), record, rounds, rounds_of_task: None, left }
    }

    /// The same of a task with so many rounds: plans with other local steps in a round come to another number.
    #[must_use]
    pub fn of_task(self, rounds: u64) -> Self {
        Self { rounds_of_task: Some(rounds), ..self }
    }

    /// Rounds of the task that is over.
    pub fn rounds_of_task(&self) -> u64 {
        self.rounds_of_task.unwrap_or(self.rounds)
    }

    /// Marks the run in this home as ended.
    pub fn write(&self, home: &Home) -> Result {
        let path = path(home);
        let text = serde_json::to_string(self).context(ErrorKind::Unexpected, "cannot encode the end of the run")?;
        write_file(&path, format!("{text}\n").as_bytes())
    }

    /// The mark in this home, if there is one for a run whose newest record has this number, or had a larger one that is
    /// damaged by now: the run is over all the same, and what the older record holds was given away since.
    pub fn find(home: &Home, record: u64) -> Result<Option<Self>> {
        let path = path(home);
        let read = open_to_read(&path).and_then(|mut file| {
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text)
        });
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
        };
        // A mark that cannot be read is none: going on with the records is always safe.
        let ending: Option<Self> = serde_json::from_str(&text).ok();
        Ok(ending.filter(|ending| ending.schema == SCHEMA && ending.record >= record))
    }
}

fn path(home: &Home) -> PathBuf {
    home.records().join("ending.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn a_run_is_over_up_to_its_last_record_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        fs::create_dir_all(home.records()).unwrap();
        assert_eq!(Ending::find(&home, 7).unwrap().map(|ending| ending.rounds), None);
        Ending::new(7, 40, false).write(&home).unwrap();
        for (record, rounds) in [(6, Some(40)), (7, Some(40)), (8, None)] {
            assert_eq!(Ending::find(&home, record).unwrap().map(|ending| ending.rounds), rounds, "record {record}");
        }
        fs::write(path(&home), "{}").unwrap();
        assert!(Ending::find(&home, 7).unwrap().is_none());
    }
}
