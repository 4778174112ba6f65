//! The task file of a home: names, shapes and meaning of the numbers in its records and its model, without the data.
//!
//! A record holds a flat vector and the hash of its task. The hash determines whether this file belongs to it.

use std::io::{self, Read};
use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::home::write_file;
use mingle_peer::records::counting_file;
use mingle_peer::task::MAX_CARD_BYTES;
use mingle_peer::{Error, ErrorKind, Home, Result};
use serde::{Deserialize, Serialize};

use crate::task_card::Card;

const SCHEMA: &str = "mingle.task/2";
/// Largest file: numbers take more room as text.
const MAX_BYTES: u64 = 4 * MAX_CARD_BYTES as u64;

/// The task of a run, as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    schema: String,
    card: Card,
}

impl TaskFile {
    /// Writes the task of a run into its home.
    pub fn write(card: &Card, home: &Home) -> Result {
        let file = Self { schema: SCHEMA.to_owned(), card: card.clone() };
        let text = serde_json::to_string(&file).context(ErrorKind::Unexpected, "cannot encode the task")?;
        write_file(&home.task(), format!("{text}\n").as_bytes())
    }

    /// The task of the last run in a home; `None` if there was no run, or only one of a release with another form of
    /// the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last(home: &Home) -> Result<Option<Card>> {
        let path = counting_file(home, &home.task());
        let doing = format!("cannot read {}", path.display());
        let file = match std::fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.context(ErrorKind::BadInput, &doing)?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::Integrity, &doing)?;
        Ok(serde_json::from_str(&text).ok().filter(|file: &Self| file.schema == SCHEMA).map(|file| file.card))
    }

    /// The task whose hash is `hash`, from the file in the home.
    ///
    /// # Errors
    /// There is no file, it cannot be read, or it belongs to another run.
    pub fn find(home: &Home, hash: &[u8; 32]) -> Result<Card> {
        let path = counting_file(home, &home.task());
        let doing = format!("cannot read what the records are of, {}", path.display());
        let file = std::fs::File::open(&path)
            .context(ErrorKind::BadInput, &doing)
            .map_err(|failure| failure.hint("start this peer once more and stop it: it writes that file"))?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::Integrity, &doing)?;
        Self::parse(&text, hash, &path)
    }

    fn parse(text: &str, hash: &[u8; 32], path: &Path) -> Result<Card> {
        let doing = format!("{} does not hold a task", path.display());
        let file: Self = serde_json::from_str(text).context(ErrorKind::Integrity, &doing)?;
        if file.schema != SCHEMA || file.card.hash() != *hash {
            let said = file.card.describe();
            let message = format!("{} is not the task of the records beside it: it says {said}", path.display());
            return Err(Error::new(ErrorKind::Integrity, message)
                .hint("were files of two peers mixed up? `mingle ckpt list` says what the records are of"));
        }
        Ok(file.card)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options::TrainingOptions;
    use mingle_models::DataCard;

    #[test]
    fn a_task_comes_back_for_its_own_hash_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let data = DataCard::of_table(names(["a", "b"]), names(["x", "y"]), &[0.1, 0.2], &[1.0 / 3.0, 0.0]).unwrap();
        let card = Card::new(&TrainingOptions::default(), data).unwrap();
        let hash = card.hash();
        assert!(TaskFile::find(&home, &hash).unwrap_err().is(ErrorKind::BadInput));
        assert_eq!(TaskFile::last(&home).unwrap(), None);
        TaskFile::write(&card, &home).unwrap();
        assert_eq!(TaskFile::find(&home, &hash).unwrap(), card);
        assert_eq!(TaskFile::last(&home).unwrap(), Some(card.clone()));
        let other = Card { rounds: 21, ..card };
        assert!(TaskFile::find(&home, &other.hash()).unwrap_err().is(ErrorKind::Integrity));
        for damage in ["", "{}", "[]", &"[".repeat(100_000)] {
            std::fs::write(home.task(), damage).unwrap();
            assert!(TaskFile::find(&home, &hash).unwrap_err().is(ErrorKind::Integrity), "{damage:.10}");
        }
    }

    #[test]
    fn mutated_task_files_are_refused_or_of_their_hash() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let data = DataCard::of_table(names(["a", "b"]), names(["x", "y"]), &[0.1, 0.2], &[1.0 / 3.0, 0.0]).unwrap();
        let card = Card::new(&TrainingOptions::default(), data).unwrap();
        let hash = card.hash();
        let sound = serde_json::to_string(&TaskFile { schema: SCHEMA.to_owned(), card: card.clone() }).unwrap();
        assert_eq!(TaskFile::parse(&sound, &hash, Path::new("task.json")).unwrap(), card);
        mingle_mutations::for_each_input("task_file", &[sound.into_bytes()], |input| {
            match TaskFile::parse(&String::from_utf8_lossy(input), &hash, Path::new("task.json")) {
                // The recipe is not part of the hash.
                Ok(found) => {
                    assert_eq!((found.model, found.rounds, found.seed), (card.model, card.rounds, card.seed));
                    assert!(found.data.difference(&card.data).is_none() && found.personal == card.personal);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        });
    }
}
