//! Reading and writing model files for people: what kind of fault is what kind of failure.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mingle_models::{CheckpointError, ModelFile};
use mingle_peer::error::Context;
use mingle_peer::results::MODEL_CHECKSUM;
use mingle_peer::{Error, ErrorKind, Result};

/// Reads a model file, and refuses one whose numbers are not all finite.
pub fn read(path: &Path) -> Result<ModelFile> {
    let file = ModelFile::read(path).map_err(|error| {
        let kind =
            if matches!(error, CheckpointError::Read { .. }) { ErrorKind::BadInput } else { ErrorKind::Integrity };
        match error {
            CheckpointError::Format { path, reason } => {
                Error::new(kind, format!("{} is no model file, or a damaged one: {reason}", path.display()))
            }
            error => Error::new(kind, error),
        }
    })?;
    if let Some(tensor) = file.first_not_finite() {
        let message =
            format!("{}: {} numbers of tensor {} are not finite", path.display(), tensor.not_finite, tensor.name);
        return Err(Error::new(ErrorKind::Integrity, message).hint("training has diverged, or the file is damaged"));
    }
    Ok(file)
}

/// Whether the numbers of a model file are those that were written; `None` where it does not say which those are.
///
/// # Errors
/// The file cannot be read.
pub fn is_as_written(file: &ModelFile, path: &Path) -> Result<Option<bool>> {
    let Some(written) = file.metadata.get(MODEL_CHECKSUM) else { return Ok(None) };
    Ok(Some(data_hash(path)? == *written))
}

/// BLAKE3 of what comes behind the header of a safetensors file, in hexadecimal.
fn data_hash(path: &Path) -> Result<String> {
    let doing = || format!("cannot read {}", path.display());
    let mut file = File::open(path).context(ErrorKind::BadInput, doing())?;
    let mut length = [0; 8];
    file.read_exact(&mut length).context(ErrorKind::BadInput, doing())?;
    let begin = 8_u64.saturating_add(u64::from_le_bytes(length));
    file.seek(SeekFrom::Start(begin)).context(ErrorKind::BadInput, doing())?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file, &mut hasher).context(ErrorKind::BadInput, doing())?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// BLAKE3 of a file, in hexadecimal.
pub fn hash(path: &Path) -> Result<String> {
    let doing = format!("cannot read {}", path.display());
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).context(ErrorKind::BadInput, &doing)?;
    std::io::copy(&mut file, &mut hasher).context(ErrorKind::BadInput, doing)?;
    Ok(hasher.finalize().to_hex().to_string())
}
