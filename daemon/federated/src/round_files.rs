//! States after the last rounds of learning, and what was released for the rounds after them, as files in the home: each
//! written whole or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::write_file;
use mingle_home::owner_only::{create_private, open_to_read};
use mingle_solving::{LearningError, MOST_STATE_BYTES, RoundStore};

/// The part of a file's name after the round.
const SUFFIX: &str = ".state";
/// The part of the name of a release's file after the number of rounds before it.
const RELEASED: &str = ".released";
/// Largest file that is read: a state, and the metrics of all rounds before it.
const MOST_BYTES: u64 = MOST_STATE_BYTES as u64 + (1 << 30);

/// The files of one home.
#[derive(Debug)]
pub struct RoundFiles {
    folder: PathBuf,
    /// The count of all releases.
    count: PathBuf,
    /// Rounds of an earlier run that are not offered: they stay on disk until a fresh run has kept a round of its own.
    former: BTreeSet<u64>,
}

impl RoundFiles {
    /// The files in this folder, which is made if it does not exist, beside the count of all releases. If `fresh`, those of
    /// an earlier run count as not held, and are removed once a round is kept: a fresh run that comes to nothing leaves
    /// them as they were.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: PathBuf, count: PathBuf, fresh: bool) -> Result<Self> {
        let doing = || format!("cannot keep rounds in {}", folder.display());
        create_private(&folder).context(ErrorKind::BadInput, doing())?;
        let mut files = Self { folder, count, former: BTreeSet::new() };
        if fresh {
            files.former = files.on_disk();
        }
        Ok(files)
    }

    /// Refuses to train by push-sum where this folder has files: the user of the home may have relied on masks or on noise.
    /// If `fresh`, the folder is removed.
    ///
    /// # Errors
    /// It has files, or cannot be removed.
    pub fn refuse_any(folder: &Path, fresh: bool) -> Result {
        if fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none()) {
            return Ok(());
        }
        if fresh {
            return fs::remove_dir_all(folder)
                .context(ErrorKind::BadInput, format!("cannot remove {}", folder.display()));
        }
        let message = format!("this home has taken part in a problem, whose rounds are in {}", folder.display());
        Err(Error::new(ErrorKind::BadInput, message).hint(
            "name the problem: --problem FILE; train without sums in another home, or here with --fresh, which gives up these rounds",
        ))
    }

    fn on_disk(&self) -> BTreeSet<u64> {
        self.numbers_before(SUFFIX)
    }

    /// The numbers in names of files with this suffix.
    fn numbers_before(&self, suffix: &str) -> BTreeSet<u64> {
        let round = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_suffix(suffix)?.parse().ok()
        };
        fs::read_dir(&self.folder).into_iter().flatten().filter_map(round).collect()
    }

    fn path(&self, round: u64) -> PathBuf {
        self.folder.join(format!("{round}{SUFFIX}"))
    }

    fn released_after(&self, rounds: u64) -> PathBuf {
        self.folder.join(format!("{rounds}{RELEASED}"))
    }

    fn remove(&self, rounds: &BTreeSet<u64>) {
        for round in rounds {
            // A leftover file is of a round to which no peer returns, or is offered again: it is harmless.
            let _ = fs::remove_file(self.path(*round));
        }
    }
}

impl RoundStore for RoundFiles {
    fn held(&self) -> BTreeSet<u64> {
        self.on_disk().difference(&self.former).copied().collect()
    }

    fn load(&self, round: u64) -> std::result::Result<Vec<u8>, LearningError> {
        let path = self.path(round);
        read(&path).map_err(|error| LearningError(format!("cannot read {}: {error}", path.display())))
    }

    fn keep(&mut self, round: u64, bytes: &[u8]) -> std::result::Result<(), LearningError> {
        write_file(&self.path(round), bytes).map_err(|failure| LearningError(format!("{failure:#}")))?;
        let mut former = std::mem::take(&mut self.former);
        former.remove(&round);
        self.remove(&former);
        Ok(())
    }

    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        let gone = self.held().difference(rounds).copied().collect();
        self.remove(&gone);
        for gone in self.numbers_before(RELEASED).difference(rounds) {
            // One that is left over is of a release that does not come again.
            let _ = fs::remove_file(self.released_after(*gone));
        }
    }

    fn released(&self, rounds: u64) -> std::result::Result<Option<Vec<u8>>, LearningError> {
        read_if_there(&self.released_after(rounds))
    }

    fn keep_released(&mut self, rounds: u64, bytes: &[u8]) -> std::result::Result<(), LearningError> {
        write_file(&self.released_after(rounds), bytes).map_err(|failure| LearningError(format!("{failure:#}")))
    }

    fn count(&self) -> std::result::Result<Option<String>, LearningError> {
        let Some(bytes) = read_if_there(&self.count)? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| LearningError(format!("{} is no text", self.count.display())))
    }

    fn keep_count(&mut self, text: &str) -> std::result::Result<(), LearningError> {
        write_file(&self.count, text.as_bytes()).map_err(|failure| LearningError(format!("{failure:#}")))
    }
}

/// The bytes of a file; none if there is no such file.
fn read_if_there(path: &Path) -> std::result::Result<Option<Vec<u8>>, LearningError> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LearningError(format!("cannot read {}: {error}", path.display()))),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_to_read(path)?;
    if file.metadata()?.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than any state"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn count_beside(folder: &Path) -> PathBuf {
        folder.with_file_name("privacy.json")
    }

    fn files_of(folder: &Path, rounds: impl IntoIterator<Item = u64>) -> RoundFiles {
        let mut files = RoundFiles::open(folder.to_owned(), count_beside(folder), false).unwrap();
        rounds.into_iter().for_each(|round| files.keep(round, &[round as u8; 9]).unwrap());
        files
    }

    #[test]
    fn rounds_outlive_the_process_until_they_are_let_go() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("rounds");
        files_of(&folder, 1..=4).retain(&BTreeSet::from([3, 4]));
        let again = RoundFiles::open(folder.clone(), count_beside(&folder), false).unwrap();
        assert_eq!(again.held(), BTreeSet::from([3, 4]));
        assert_eq!(again.load(4).unwrap(), [4; 9]);
        assert!(again.load(1).unwrap_err().to_string().contains("1.state"));
    }

    #[test]
    fn releases_stay_as_long_as_the_state_that_they_follow_and_the_count_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("rounds");
        let mut files = files_of(&folder, 1..=3);
        assert_eq!((files.released(2).unwrap(), files.count().unwrap()), (None, None));
        for rounds in 0..=3 {
            files.keep_released(rounds, &[rounds as u8]).unwrap();
        }
        files.keep_count("7").unwrap();
        files.retain(&BTreeSet::from([2, 3]));
        let again = RoundFiles::open(folder.clone(), count_beside(&folder), true).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|rounds| again.released(rounds).unwrap()),
            [None, None, Some(vec![2]), Some(vec![3])]
        );
        assert_eq!(again.count().unwrap().as_deref(), Some("7"));
    }

    #[test]
    fn a_fresh_run_removes_the_rounds_of_the_one_before_once_it_has_kept_one_of_its_own() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("rounds");
        files_of(&folder, [1, 3, 4]);
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        let mut fresh = RoundFiles::open(folder.clone(), count_beside(&folder), true).unwrap();
        assert_eq!(fresh.held(), BTreeSet::new());
        // What a node does when all begin at the beginning.
        fresh.retain(&BTreeSet::from([0]));
        let former = || RoundFiles::open(folder.clone(), count_beside(&folder), false).unwrap();
        assert_eq!(former().held(), BTreeSet::from([1, 3, 4]));
        // A state that cannot be written, as on a full disk, removes nothing either.
        fs::create_dir(fresh.path(2)).unwrap();
        fresh.keep(2, &[8; 9]).unwrap_err();
        fs::remove_dir(fresh.path(2)).unwrap();
        assert_eq!(former().load(4).unwrap(), [4; 9]);
        fresh.keep(1, &[7; 9]).unwrap();
        assert_eq!((fresh.held(), former().held()), (BTreeSet::from([1]), BTreeSet::from([1])));
        assert_eq!(former().load(1).unwrap(), [7; 9]);
        assert!(folder.join("notes.txt").exists());
    }
    #[test]
    fn a_home_with_rounds_is_refused_to_training_without_sums_and_given_up_by_a_fresh_one() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("rounds");
        RoundFiles::refuse_any(&folder, false).unwrap();
        files_of(&folder, [1]);
        let refused = RoundFiles::refuse_any(&folder, false).unwrap_err();
        assert!(refused.to_string().contains("taken part in a problem"), "{refused}");
        RoundFiles::refuse_any(&folder, true).unwrap();
        assert!(!folder.exists());
    }
}
