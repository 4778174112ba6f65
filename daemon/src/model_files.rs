//! Selection of the model file for a command.

use std::path::PathBuf;

pub(crate) use mingle_builtin::model_files::{hash, read};
use mingle_peer::{Error, ErrorKind, Home, Result};

use crate::cli::ModelArgs;

/// The named model file, or else that of the run in the home.
///
/// # Errors
/// Both are named, or there is none.
pub(crate) fn named(arguments: &ModelArgs) -> Result<PathBuf> {
    if let Some(file) = &arguments.file {
        let from_environment = std::env::var_os("MINGLE_HOME").map(PathBuf::from);
        if arguments.home.home != from_environment {
            let message = format!("--home names a model, and so does {}", file.display());
            return Err(Error::new(ErrorKind::BadInput, message).hint("leave one of the two away"));
        }
        return Ok(file.clone());
    }
    let home = Home::at(arguments.home.home.as_deref())?;
    if home.model().exists() {
        return Ok(home.model());
    }
    let root = home.root().display();
    Err(Error::new(ErrorKind::BadInput, format!("there is no model in {root}: it is written when a run is over"))
        .hint(format!("name a file; `mingle export --home {root} -o FILE` writes the model of a run that is not over")))
}
