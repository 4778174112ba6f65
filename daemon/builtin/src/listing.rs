//! Listing of the model and the records of a home.

use std::fs;
use std::path::PathBuf;

use mingle_peer::records::{self, Condition, RecordFile};
use mingle_peer::{Home, Result};

use crate::model_files;
use crate::round_count::RoundCount;

/// A file with a model or a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Path relative to the home.
    pub file: PathBuf,
    /// The number of the record.
    pub record: Option<u64>,
    /// Rounds done.
    pub round: Option<u64>,
    /// The push-sum weight, in units.
    pub weight_units: Option<u64>,
    /// The length of the file.
    pub bytes: Option<u64>,
    /// State of the file.
    pub state: Condition,
}

/// The model of a home and its records, slot by slot.
///
/// # Errors
/// The folder of the records cannot be read.
pub fn files_in(home: &Home) -> Result<Vec<Listed>> {
    let mut files: Vec<Listed> = model_in(home).into_iter().collect();
    let folder = records::folder_of(home);
    if folder.is_dir() {
        let count = RoundCount::of(home);
        files.extend(records::list(&folder)?.into_iter().map(|file| listed(home, file, count.as_ref())));
    }
    Ok(files)
}

fn model_in(home: &Home) -> Option<Listed> {
    let path = home.model();
    let bytes = fs::metadata(&path).ok()?.len();
    let (round, state) = match model_files::read(&path) {
        Ok(file) => (file.metadata.get("rounds").and_then(|round| round.parse().ok()), Condition::Whole),
        Err(failure) => (None, Condition::Damaged(format!("{failure:#}"))),
    };
    let file = PathBuf::from(path.file_name()?);
    Some(Listed { file, record: None, round, weight_units: None, bytes: Some(bytes), state })
}

fn listed(home: &Home, record: RecordFile, count: Option<&RoundCount>) -> Listed {
    let RecordFile { path, bytes, condition, outline } = record;
    let books = outline.map(|outline| outline.books);
    let round = books.as_ref().and_then(|books| count?.rounds_at(books));
    Listed {
        file: path.strip_prefix(home.root()).unwrap_or(&path).to_path_buf(),
        record: books.as_ref().map(|books| books.number),
        round,
        weight_units: books.map(|books| books.mass.units()),
        bytes,
        state: condition,
    }
}
