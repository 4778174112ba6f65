//! Reading and checking model files, with errors for people.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mingle_models::{CheckpointError, ModelFile};
use mingle_peer::error::Context;
use mingle_peer::results::MODEL_CHECKSUM;
use mingle_peer::{Error, ErrorKind, Result};

/// Reads a model file, and refuses one whose numbers are not all finite.
pub fn read(path: &Path) -> Result<ModelFile> {
    let file = ModelFile::read(path).map_err(|error| match error {
        CheckpointError::Format { path, reason } => of_another_program(&path).unwrap_or_else(|| {
            let message = format!("{} is no model file, or a damaged one: {reason}", path.display());
            Error::new(ErrorKind::Integrity, message)
        }),
        error @ CheckpointError::Size { .. } => {
            of_another_program(path).unwrap_or_else(|| Error::new(ErrorKind::Integrity, error))
        }
        error @ CheckpointError::Read { .. } => Error::new(ErrorKind::BadInput, error),
        error => Error::new(ErrorKind::Integrity, error),
    })?;
    if let Some(tensor) = file.first_not_finite() {
        let message =
            format!("{}: {} numbers of tensor {} are not finite", path.display(), tensor.not_finite, tensor.name);
        return Err(Error::new(ErrorKind::Integrity, message).hint("training has diverged, or the file is damaged"));
    }
    Ok(file)
}

/// Bytes at the beginning of a file that determine its format.
const MAGIC_BYTES: usize = 8;

/// The error for a file in a known format of another program, with a hint on its conversion; `None` for other files.
fn of_another_program(path: &Path) -> Option<Error> {
    let mut start = [0; MAGIC_BYTES];
    let mut file = File::open(path).ok()?;
    file.read_exact(&mut start).ok()?;
    let is_safetensors = "models are read from safetensors files";
    let (format, way_out) = match start {
        [b'P', b'K', 3, 4, ..] => ("a zip archive, as torch.save of PyTorch writes it", from_torch(path)),
        [0x80, 2..=5, ..] => ("a pickle, as torch.save of PyTorch wrote it before 1.6", from_torch(path)),
        [0x89, b'H', b'D', b'F', ..] => ("an HDF5 file, as Keras writes it", is_safetensors.to_owned()),
        [b'G', b'G', b'U', b'F', ..] => ("a GGUF file, as llama.cpp reads it", is_safetensors.to_owned()),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => ("an array of NumPy", is_safetensors.to_owned()),
        _ => return None,
    };
    let message = format!("{} is {format}, and no safetensors file", path.display());
    Some(Error::new(ErrorKind::BadInput, message).hint(way_out))
}

/// The command that converts a PyTorch file into a safetensors file.
fn from_torch(path: &Path) -> String {
    let output = path.with_extension("safetensors");
    format!(
        "with PyTorch and safetensors installed, this writes its tensors to {}: python -c 'import sys, torch; \
         from safetensors.torch import save_file; tensors = torch.load(sys.argv[1], weights_only=True, map_location=\"cpu\"); \
         save_file({{name: tensor.clone().contiguous() for name, tensor in tensors.items()}}, sys.argv[2])' '{}' '{}'",
        output.display(),
        path.display(),
        output.display()
    )
}

/// Returns `true` if the numbers of a model file match its own checksum; `None` if it has none.
///
/// # Errors
/// The file cannot be read.
pub fn is_as_written(file: &ModelFile, path: &Path) -> Result<Option<bool>> {
    let Some(written) = file.metadata.get(MODEL_CHECKSUM) else { return Ok(None) };
    Ok(Some(data_hash(path)? == *written))
}

/// BLAKE3 of the bytes behind the header of a safetensors file, in hexadecimal.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_of_other_programs_are_named_with_the_way_to_a_model_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.pt");
        for (start, words) in [
            (&b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0"[..], "torch.save"),
            (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "pickle"),
            (b"\x89HDF\r\n\x1a\n\0\0\0\0", "Keras"),
        ] {
            std::fs::write(&path, start).unwrap();
            let failure = read(&path).unwrap_err();
            assert!(failure.is(ErrorKind::BadInput) && failure.to_string().contains(words), "{failure:#}");
            assert!(failure.next_step().unwrap().contains("safetensors"), "{failure:#}");
        }
        std::fs::write(&path, b"PK\x03\x04 and more").unwrap();
        let way_out = read(&path).unwrap_err().next_step().unwrap().to_owned();
        assert!(way_out.contains("save_file(") && way_out.contains("model.safetensors'"), "{way_out}");
        std::fs::write(&path, "garbage that is longer than a header").unwrap();
        assert!(read(&path).unwrap_err().is(ErrorKind::Integrity));
    }
}
