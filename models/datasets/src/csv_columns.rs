//! Matching of the columns of a table to those of a card.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{DataCard, DataError};

/// For each column of the card, the column of the table that has its name. `here` are the names of the table at `path`;
/// they are from its first line if it `has_header`.
///
/// # Errors
///
/// [`DataError::ForeignColumns`] with the first difference.
pub(crate) fn match_to(
    path: &Path,
    here: &[String],
    has_header: bool,
    card: &DataCard,
) -> Result<Vec<usize>, DataError> {
    let places: BTreeMap<&str, usize> = here.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let wanted: BTreeMap<&str, usize> =
        card.columns().iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let missing = card.columns().iter().find(|name| !places.contains_key(name.as_str()));
    let unknown = here.iter().find(|name| !wanted.contains_key(name.as_str()));
    let difference = match (missing, unknown) {
        (None, None) => return Ok(card.columns().iter().map(|name| places[name.as_str()]).collect()),
        (Some(missing), None) => {
            format!("column {} of the task is `{missing}`, which it has not", 1 + wanted[missing.as_str()])
        }
        (None, Some(unknown)) => format!("it has a column `{unknown}`, which the task has not"),
        (Some(missing), Some(_)) => {
            let place = wanted[missing.as_str()];
            match here.get(place).filter(|name| !wanted.contains_key(name.as_str())) {
                Some(name) => format!("column {} is `{name}` here and `{missing}` there", place + 1),
                None => {
                    let unknown = unknown.map(String::as_str).unwrap_or_default();
                    format!(
                        "it has a column `{unknown}`, which the task has not, and no `{missing}`, which is column {} there",
                        place + 1
                    )
                }
            }
        }
    };
    Err(DataError::ForeignColumns { path: path.to_path_buf(), difference, has_header })
}
