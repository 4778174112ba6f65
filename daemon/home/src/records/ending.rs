//! The mark of a run that ended in good order: no other peer depends on this one any more.
//!
//! Without it a restarted peer resumes from its records: it may owe parcels to others, or others to it.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::listing::{Condition, list};
use super::replacement::folder_of;
use crate::error::{Context, ErrorKind, Result};
use crate::home::{Home, write_file};
use crate::owner_only::open_to_read;

const SCHEMA: &str = "mingle.ending/1";

/// The end of the run to which the records belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    schema: String,
    /// Number of the newest record. Records with a larger one do not belong to the mark.
    record: u64,
    /// Rounds done.
    pub rounds: u64,
    /// Rounds of the task; `None` in marks of earlier releases, where they were the rounds done.
    #[serde(default)]
    rounds_of_task: Option<u64>,
    /// `true` if the peer has handed its weight over and is no longer a member.
    #[serde(default)]
    pub left: bool,
    /// `true` if the members agreed to end before the last round of the task.
    #[serde(default)]
    ended_early: bool,
}

impl Ending {
    /// The mark of a run that ended with this record.
    pub fn new(record: u64, rounds: u64, left: bool) -> Self {
        Self { schema: SCHEMA.to_owned(), record, rounds, rounds_of_task: None, left, ended_early: false }
    }

    /// Adds the rounds of the task, which differ from those done if a later plan has other local steps in a round.
    #[must_use]
    pub fn of_task(self, rounds: u64) -> Self {
        Self { rounds_of_task: Some(rounds), ..self }
    }

    /// Adds that the members agreed to end before the last round of the task.
    #[must_use]
    pub fn early(self, ended_early: bool) -> Self {
        Self { ended_early, ..self }
    }

    /// Returns `true` if a run of a task of so many rounds goes on after this one.
    pub fn goes_on_to(&self, rounds: u64) -> bool {
        let over = if self.ended_early { self.rounds } else { self.rounds_of_task() };
        rounds > over && rounds != self.rounds_of_task()
    }

    /// Rounds of the finished task.
    pub fn rounds_of_task(&self) -> u64 {
        self.rounds_of_task.unwrap_or(self.rounds)
    }

    /// Writes the mark into this home.
    pub fn write(&self, home: &Home) -> Result {
        let path = path(home);
        let text = serde_json::to_string(self).context(ErrorKind::Unexpected, "cannot encode the end of the run")?;
        write_file(&path, format!("{text}\n").as_bytes())
    }

    /// The mark in this home, if its record has this number or a larger one that is damaged by now. Then the run is
    /// over all the same, as it has given away since what the older record holds.
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
        // An unreadable mark counts as none: resuming from the records is always safe.
        let ending: Option<Self> = serde_json::from_str(&text).ok();
        Ok(ending.filter(|ending| ending.schema == SCHEMA && ending.record >= record))
    }

    /// The mark in this home, if no later run has written a record since.
    ///
    /// # Errors
    /// The mark or the folder of the records cannot be read.
    pub fn of_latest_run(home: &Home) -> Result<Option<Self>> {
        let Some(ending) = Self::find(home, 0)? else { return Ok(None) };
        let files = list(&folder_of(home))?;
        let newest =
            files.iter().find(|file| file.condition == Condition::Newest).and_then(|file| file.outline.as_ref());
        Ok(newest.filter(|newest| newest.books.number <= ending.record).map(|_| ending))
    }
}

fn path(home: &Home) -> PathBuf {
    folder_of(home).join("ending.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn the_mark_of_a_run_without_records_is_that_of_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        fs::create_dir_all(home.records()).unwrap();
        assert_eq!(Ending::of_latest_run(&home).unwrap(), None);
        Ending::new(7, 40, false).write(&home).unwrap();
        assert_eq!(Ending::of_latest_run(&home).unwrap(), None);
    }

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
