//! Verification of model files, records and homes.

use std::path::{Path, PathBuf};

use mingle_models::{ModelFile, Task, TensorDifference};
use mingle_peer::error::Context;
use mingle_peer::records::{self, Sound};
use mingle_peer::results::Summary;
use mingle_peer::{Error, ErrorKind, Home, Result};

use crate::task_file::TaskFile;
use crate::{meaning, model_files};

/// A verified file or folder, with the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedModel {
    /// The verified path.
    pub path: PathBuf,
    /// A description of what holds, or else the fault.
    pub result: Result<String, String>,
}

/// Verifies a model file, a record, or the contents of a home.
///
/// # Errors
/// The path cannot be read, or the home is empty. A fault is no error but a verdict.
pub fn verify(path: &Path) -> Result<Vec<VerifiedModel>> {
    if path.is_dir() {
        return verify_home(&Home::at(Some(path))?);
    }
    let result = if is_record(path) { verify_record(path) } else { verify_model(path, None, None) };
    Ok(vec![VerifiedModel { path: path.to_path_buf(), result: judged(result)? }])
}

/// Returns `true` if a file is a record by its name: the contents of a damaged one may not show it.
pub fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "record")
}

fn verify_home(home: &Home) -> Result<Vec<VerifiedModel>> {
    let _still = home.hold_still()?;
    let mut verdicts = Vec::new();
    if home.model().exists() {
        let summary = home.summary().exists().then(|| Summary::read(&home.summary())).transpose();
        let task = TaskFile::last(home)?.map(|card| card.task()).transpose()?;
        let written = summary.map(|summary| summary.and_then(|it| it.model_blake3));
        let result = written.and_then(|written| verify_model(&home.model(), written, task.as_ref()));
        verdicts.push(VerifiedModel { path: home.model(), result: judged(result)? });
    }
    let folder = records::folder_of(home);
    if folder.is_dir() {
        verdicts.push(VerifiedModel { result: judged(verify_records(&folder))?, path: folder });
    }
    if verdicts.is_empty() {
        let message = format!("there is neither a model nor a record in {}", home.root().display());
        return Err(Error::new(ErrorKind::BadInput, message));
    }
    Ok(verdicts)
}

/// Checks that a model file is a whole safetensors file of finite numbers, with the tensors of its task, unchanged
/// since it was written, by its own checksum and by the summary beside it.
fn verify_model(path: &Path, written: Option<String>, task: Option<&Task>) -> Result<String> {
    let file = model_files::read(path)?;
    let hash = model_files::hash(path)?;
    let damaged = |message: String| Err(Error::new(ErrorKind::Integrity, message));
    if let Some(difference) = task.and_then(|task| file.difference(task)) {
        return damaged(format!("it is no model of the task in this home: {difference}"));
    }
    if let Some(difference) = difference_from_its_data(&file, path)? {
        return damaged(format!("it is no model for the columns and classes that it names: {difference}"));
    }
    if let Some(written) = written.as_ref().filter(|written| **written != hash) {
        return damaged(format!(
            "it is blake3:{hash}, and the summary beside it says that blake3:{written} was written"
        ));
    }
    let is_as_written = model_files::is_as_written(&file, path)?;
    if is_as_written == Some(false) {
        return damaged("its numbers are not those that were written: the checksum in it is another".to_owned());
    }
    let how = match (is_as_written, written) {
        (None, None) => "of which nobody says what they were when they were written",
        _ => "as they were written",
    };
    Ok(format!("model, {} finite parameters {how}: blake3:{}", file.parameter_count(), &hash[..8]))
}

/// The first difference between the tensors and those of a model for the data that the file names.
fn difference_from_its_data(file: &ModelFile, path: &Path) -> Result<Option<TensorDifference>> {
    let (Some(card), Some(model)) = (meaning::read(file, path)?, file.model()) else { return Ok(None) };
    let task = Task::new(model, card.shape(), card.objective())
        .context(ErrorKind::Integrity, "it is for no data that there can be")?;
    Ok(file.difference(&task))
}

fn verify_record(path: &Path) -> Result<String> {
    let outline = records::read_outline(path)?;
    Ok(format!("record {}, {} parameters, checksum right", outline.books.number, outline.dimension))
}

fn verify_records(folder: &Path) -> Result<String> {
    Ok(match records::verify(folder)? {
        None => "records, none was ever written".to_owned(),
        Some(Sound { newest, owed_payloads }) => {
            format!("records, the newest is {newest}, with all {owed_payloads} payloads that it owes")
        }
    })
}

/// A fault is a verdict; a file that cannot be read at all is a failure of the command.
fn judged(result: Result<String>) -> Result<Result<String, String>> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(failure) if failure.is(ErrorKind::Integrity) => Ok(Err(format!("{failure:#}"))),
        Err(failure) => Err(failure),
    }
}
