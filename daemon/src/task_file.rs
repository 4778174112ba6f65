//! What the records in a home are of: enough to give their numbers names and shapes again, without the data.
//!
//! A record holds a flat vector and the hash of its task. The hash decides whether this file is the one that belongs to
//! it.

use std::io::Read;
use std::path::Path;

use mingle_models::{ModelKind, SampleShape, Task};
use serde::{Deserialize, Serialize};

use crate::cli::TrainingArgs;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::{Home, write_file};
use crate::task;

const SCHEMA: &str = "mingle.task/1";
/// No such file is larger.
const MAX_BYTES: u64 = 1 << 16;

/// The task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFile {
    schema: String,
    model: ModelKind,
    shape: SampleShape,
    classes: usize,
    rounds: u64,
    seed: u64,
}

impl TaskFile {
    /// The file of a run of `task`.
    pub(crate) fn of(task: &Task, arguments: &TrainingArgs) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            model: task.model(),
            shape: task.shape(),
            classes: task.classes(),
            rounds: arguments.rounds,
            seed: arguments.seed,
        }
    }

    /// Writes it into the home.
    pub(crate) fn write(&self, home: &Home) -> Outcome {
        let path = home.task();
        let text = serde_json::to_string(self).or_fail(Kind::Unexpected, "cannot encode the task")?;
        write_file(&path, format!("{text}\n").as_bytes())
    }

    /// The task whose hash is `hash`, from the file in the home.
    ///
    /// # Errors
    /// There is no file, it cannot be read, or it is that of another run.
    pub(crate) fn find(home: &Home, hash: &[u8; 32]) -> Outcome<Task> {
        let path = home.task();
        let doing = format!("cannot read what the records are of, {}", path.display());
        let file = std::fs::File::open(&path)
            .or_fail(Kind::BadInput, &doing)
            .map_err(|failure| failure.hint("start this peer once more and stop it: it writes that file"))?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).or_fail(Kind::Integrity, &doing)?;
        Self::parse(&text, hash, &path)
    }

    fn parse(text: &str, hash: &[u8; 32], path: &Path) -> Outcome<Task> {
        let doing = format!("{} does not hold a task", path.display());
        let file: Self = serde_json::from_str(text).or_fail(Kind::Integrity, &doing)?;
        let task = Task::new(file.model, file.shape, file.classes).or_fail(Kind::Integrity, &doing)?;
        let card = task::card(&task, file.rounds, file.seed);
        if file.schema != SCHEMA || task::hash(&card) != *hash {
            let message = format!("{} is not the task of the records beside it: it says {card}", path.display());
            return Err(Failure::new(Kind::Integrity, message)
                .hint("were files of two peers mixed up? `mingle ckpt list` says what the records are of"));
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_task_comes_back_for_its_own_hash_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let task = Task::new("mlp".parse().unwrap(), SampleShape::Flat { features: 7 }, 3).unwrap();
        let hash = task::hash(&task::card(&task, 20, 5));
        assert!(TaskFile::find(&home, &hash).unwrap_err().is(Kind::BadInput));
        let file = TaskFile {
            schema: SCHEMA.to_owned(),
            model: task.model(),
            shape: task.shape(),
            classes: 3,
            rounds: 20,
            seed: 5,
        };
        file.write(&home).unwrap();
        assert_eq!(TaskFile::find(&home, &hash).unwrap(), task);
        let other = task::hash(&task::card(&task, 21, 5));
        assert!(TaskFile::find(&home, &other).unwrap_err().is(Kind::Integrity));
        for damage in ["", "{}", "[]", &"[".repeat(100_000)] {
            std::fs::write(home.task(), damage).unwrap();
            assert!(TaskFile::find(&home, &hash).unwrap_err().is(Kind::Integrity), "{damage:.10}");
        }
    }
}
