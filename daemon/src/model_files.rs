//! Reading and writing model files for people: what kind of fault is what kind of failure.

use std::fs::File;
use std::path::Path;

use mingle_models::{Checkpoint, CheckpointError, ModelFile, Task};

use crate::failure::{Failure, Kind, OrFail, Outcome, cannot_write};

/// Reads a model file, and refuses one whose numbers are not all finite.
pub(crate) fn read(path: &Path) -> Outcome<ModelFile> {
    let file = ModelFile::read(path).map_err(|error| {
        let kind = if matches!(error, CheckpointError::Read { .. }) { Kind::BadInput } else { Kind::Integrity };
        match error {
            CheckpointError::Format { path, reason } => {
                Failure::new(kind, format!("{} is no model file, or a damaged one: {reason}", path.display()))
            }
            error => Failure::new(kind, error),
        }
    })?;
    if let Some(tensor) = file.first_not_finite() {
        let message =
            format!("{}: {} numbers of tensor {} are not finite", path.display(), tensor.not_finite, tensor.name);
        return Err(Failure::new(Kind::Integrity, message).hint("training has diverged, or the file is damaged"));
    }
    Ok(file)
}

/// Writes a model file.
pub(crate) fn write(checkpoint: &Checkpoint, path: &Path, task: &Task) -> Outcome {
    checkpoint.save(path, task).map_err(|error| match error {
        CheckpointError::Write { path, error } => cannot_write(&path, &error),
        error => Failure::new(Kind::BadInput, format!("cannot write the model: {error}")),
    })
}

/// BLAKE3 of a file, in hexadecimal.
pub(crate) fn hash(path: &Path) -> Outcome<String> {
    let doing = format!("cannot read {}", path.display());
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).or_fail(Kind::BadInput, &doing)?;
    std::io::copy(&mut file, &mut hasher).or_fail(Kind::BadInput, doing)?;
    Ok(hasher.finalize().to_hex().to_string())
}
