//! Interactions by name: generated ones, or those of a file.

use std::path::Path;

use crate::error::RecommendError;
use crate::generator::Planted;
use crate::interactions::{Form, Interactions, read_interactions};

/// The interactions that a text names: `planted`, or `planted:` and its parameters (see [`Planted`]), else a file in
/// this folder.
///
/// # Errors
/// As [`read_interactions`], and [`RecommendError::Planted`].
pub fn interactions_of(text: &str, folder: &Path, form: Form) -> Result<Interactions, RecommendError> {
    match Planted::named(text)? {
        Some(planted) => Ok(planted.draw()),
        None => read_interactions(&folder.join(text), form),
    }
}
