//! The file in which a follower keeps the model: never that of another task.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::output_file::OutputFile;
use mingle_patch::ModelBytes;
use mingle_training::model_file;

/// The file, and the model that it held at the start.
pub(super) struct FollowedFile {
    path: PathBuf,
    /// Task of the model in the file; `None` if there is no file.
    task: Option<String>,
    before: Option<ModelBytes>,
    /// BLAKE3 of the file.
    digest: Option<[u8; 32]>,
}

impl FollowedFile {
    /// Looks at the file, and reads the model in it.
    ///
    /// # Errors
    /// The file cannot be written, or holds no model of a swarm.
    pub(super) fn open(path: &Path) -> Result<Self> {
        OutputFile::at(path)?;
        let is_file = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
        let mut file = Self { path: path.to_path_buf(), task: None, before: None, digest: None };
        if is_file {
            let metadata = model_file::read_metadata(path).unwrap_or_default();
            let Some(task) = metadata.get("task") else { return Err(file.foreign("no model of a swarm")) };
            file.task = Some(task.clone());
            let reading = format!("cannot read {}", path.display());
            let bytes = fs::read(path).context(ErrorKind::BadInput, reading)?;
            // One that is damaged is replaced by the next whole model.
            file.before = ModelBytes::parse(bytes).ok();
            file.digest = file.before.as_ref().map(ModelBytes::digest);
        }
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The model that the file held at the start.
    pub(super) fn before(&self) -> Option<ModelBytes> {
        self.before.clone()
    }

    /// Refuses a swarm that trains another task than the model in the file is from.
    pub(super) fn check_task(&mut self, task: &str) -> Result {
        self.before = None;
        match &self.task {
            Some(before) if !is_same(before, task) => {
                Err(self.foreign(&format!("the model of another task, {before}")))
            }
            _ => {
                self.task = Some(task.to_owned());
                Ok(())
            }
        }
    }

    /// Replaces the file by this model, whole or not at all.
    pub(super) async fn write(&mut self, model: &Arc<ModelBytes>) -> Result {
        if self.digest == Some(model.digest()) {
            return Ok(());
        }
        let path = self.path.clone();
        let model = Arc::clone(model);
        let digest = model.digest();
        let writing = tokio::task::spawn_blocking(move || OutputFile::at(&path)?.write(model.bytes()));
        writing.await.context(ErrorKind::Unexpected, "the thread that writes the model has ended")??;
        self.digest = Some(digest);
        Ok(())
    }

    fn foreign(&self, content: &str) -> Error {
        let message = format!("{} holds {content}, and is not replaced", self.path.display());
        Error::new(ErrorKind::BadInput, message).hint("name another file: --output FILE; or remove this one")
    }
}

/// Returns `true` if two descriptions are of one task. A longer run of it differs in its number of rounds.
fn is_same(one: &str, other: &str) -> bool {
    let without_rounds = |task: &str| -> Vec<String> {
        let is_rounds = |part: &str| part.strip_suffix(" rounds").is_some_and(|count| count.parse::<u64>().is_ok());
        task.split(", ").filter(|part| !is_rounds(part)).map(str::to_owned).collect()
    };
    // A member sends at most the beginning of a long description.
    let one = without_rounds(one).join(", ");
    let other = without_rounds(other).join(", ");
    !one.is_empty() && !other.is_empty() && (one.starts_with(&other) || other.starts_with(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_the_same_with_another_number_of_rounds_and_no_other_difference() {
        let task = "mlp for 64 numbers in 10 classes, 2410 parameters, 200 rounds, seed 0";
        assert!(is_same(task, &task.replace("200 rounds", "300 rounds")));
        assert!(!is_same(task, &task.replace("seed 0", "seed 1")));
        assert!(!is_same(task, ""));
    }
}
