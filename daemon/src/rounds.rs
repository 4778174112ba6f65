//! Problem files of learning in rounds, as commands use them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, output_file};
use mingle_problems::{ProblemFileError, learned_files};
use mingle_solving::{Learned, RoundTask};

/// The folder in a home with the spectra that a peer has computed.
pub(crate) const SPECTRA: &str = "spectra";

/// The learning task of a problem file; `None` for a convex problem.
///
/// # Errors
/// The file cannot be read, or is not valid.
pub(crate) fn read(path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>> {
    mingle_problems::read(path, spectra).map_err(explain)
}

/// Converts the error of a problem file into that of a command.
pub(crate) fn explain(error: ProblemFileError) -> Error {
    Error::of(ErrorKind::BadInput, error)
}

/// Writes the learned models into a folder.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn write(folder: &Path, names: &[String], learned: &[Learned]) -> Result {
    let files = learned_files(names, learned).context(ErrorKind::Unexpected, "cannot encode what was learned")?;
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            output_file::make_folder(parent)?;
        }
        output_file::write(&path, &bytes)?;
    }
    Ok(())
}
