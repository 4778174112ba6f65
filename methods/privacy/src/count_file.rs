//! The file in which a peer counts what it has released: `privacy.json` of its home.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget::NoisedChanges;
use crate::noise_key::NoiseKey;

/// The version of the file.
const SCHEMA: &str = "mingle.privacy/1";

/// The releases of a peer over all its runs, by any way of sharing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountFile {
    /// All releases.
    pub noised: NoisedChanges,
    /// The key of the noise in sums, once there was one.
    pub sums: Option<NoiseKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    noised: NoisedChanges,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<NoiseKey>,
}

/// A file that holds no count: the remaining budget is unknown.
#[derive(Debug, Error)]
pub enum CountError {
    /// The text is no count.
    #[error("it holds no count of releases")]
    Text(#[from] serde_json::Error),
    /// The file is of another version.
    #[error("it is of the version {0}")]
    Version(String),
}

impl CountFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`CountError`].
    pub fn parse(text: &str) -> Result<Self, CountError> {
        let Written { schema, noised, sums } = serde_json::from_str(text)?;
        match schema == SCHEMA {
            true => Ok(Self { noised, sums }),
            false => Err(CountError::Version(schema)),
        }
    }

    /// The text of the file.
    ///
    /// # Errors
    /// A number has no text.
    pub fn text(&self) -> Result<String, CountError> {
        let written = Written { schema: SCHEMA.to_owned(), noised: self.noised.clone(), sums: self.sums.clone() };
        Ok(serde_json::to_string(&written)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counts_with_and_without_a_key_read_back() {
        for sums in [None, Some(NoiseKey::known(3))] {
            let file = CountFile { noised: NoisedChanges::default(), sums };
            assert_eq!(CountFile::parse(&file.text().unwrap()).unwrap(), file);
        }
        let plain = CountFile::default().text().unwrap();
        assert_eq!(plain, "{\"schema\":\"mingle.privacy/1\",\"noised\":[]}\n");
        assert!(CountFile::parse("{").is_err());
        let other = plain.replace("privacy/1", "privacy/9");
        assert_eq!(CountFile::parse(&other).unwrap_err().to_string(), "it is of the version mingle.privacy/9");
    }
}
