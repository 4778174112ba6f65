//! Reading and writing model files for people: what kind of fault is what kind of failure.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
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

/// The key under which a model file keeps the BLAKE3 of its numbers: whoever has only the file can check it.
const CHECKSUM: &str = "data_blake3";

/// Writes a model file, with a checksum of its numbers inside.
pub(crate) fn write(checkpoint: &Checkpoint, path: &Path, task: &Task) -> Outcome {
    save(checkpoint, path, task)?;
    // The numbers come behind the text that names their checksum, so they are there first.
    let mut checked = checkpoint.clone();
    checked.metadata.insert(CHECKSUM.to_owned(), data_hash(path)?);
    save(&checked, path, task)
}

fn save(checkpoint: &Checkpoint, path: &Path, task: &Task) -> Outcome {
    checkpoint.save(path, task).map_err(|error| match error {
        CheckpointError::Write { path, error } => cannot_write(&path, &error),
        error => Failure::new(Kind::BadInput, format!("cannot write the model: {error}")),
    })
}

/// Whether the numbers of a model file are those that were written; `None` where it does not say which those are.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn is_as_written(file: &ModelFile, path: &Path) -> Outcome<Option<bool>> {
    let Some(written) = file.metadata.get(CHECKSUM) else { return Ok(None) };
    Ok(Some(data_hash(path)? == *written))
}

/// BLAKE3 of what comes behind the header of a safetensors file, in hexadecimal.
fn data_hash(path: &Path) -> Outcome<String> {
    let doing = || format!("cannot read {}", path.display());
    let mut file = File::open(path).or_fail(Kind::BadInput, doing())?;
    let mut length = [0; 8];
    file.read_exact(&mut length).or_fail(Kind::BadInput, doing())?;
    let begin = 8_u64.saturating_add(u64::from_le_bytes(length));
    file.seek(SeekFrom::Start(begin)).or_fail(Kind::BadInput, doing())?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file, &mut hasher).or_fail(Kind::BadInput, doing())?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// BLAKE3 of a file, in hexadecimal.
pub(crate) fn hash(path: &Path) -> Outcome<String> {
    let doing = format!("cannot read {}", path.display());
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).or_fail(Kind::BadInput, &doing)?;
    std::io::copy(&mut file, &mut hasher).or_fail(Kind::BadInput, doing)?;
    Ok(hasher.finalize().to_hex().to_string())
}
