//! The file in which a peer counts what it has released: `privacy.json` of its home.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget::NoisedChanges;
use crate::correlated_changes::CorrelatedChanges;
use crate::noise_key::NoiseKey;

/// The version of the file.
const SCHEMA: &str = "mingle.privacy/1";

/// The releases of a peer over all its runs, by any way of sharing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountFile {
    /// Releases that protect all that this peer knows, and so each of its samples too.
    pub noised: NoisedChanges,
    /// Releases that protect it against some colluders alone.
    pub correlated: CorrelatedChanges,
    /// Releases that protect single samples alone.
    pub of_samples: NoisedChanges,
    /// The key of the noise in sums, once there was one.
    pub sums: Option<NoiseKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    noised: NoisedChanges,
    #[serde(default, skip_serializing_if = "CorrelatedChanges::is_empty")]
    correlated: CorrelatedChanges,
    #[serde(default, skip_serializing_if = "NoisedChanges::is_empty")]
    of_samples: NoisedChanges,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<NoiseKey>,
}

/// The unit whose presence in the data a guarantee hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectedUnit {
    /// All data of a member together.
    #[default]
    Member,
    /// Each sample of a member by itself, such as a patient.
    Sample,
}

/// The peer has released sums that protect single samples, and not the peer as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this home has released sums that protect single samples and not the member as a whole, so no guarantee for the whole member can be given here any more: use a home of its own, or protect single samples"
)]
pub struct UnprotectedMember;

/// A file that holds no count: the remaining budget is unknown.
#[derive(Debug, Error)]
pub enum CountError {
    /// The text is no count.
    #[error("it holds no count of releases")]
    Text(#[from] serde_json::Error),
    /// Releases with a noise that there is not.
    #[error("it counts {0}")]
    Correlated(String),
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
        let Written { schema, noised, correlated, of_samples, sums } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(CountError::Version(schema));
        }
        let correlated = correlated.check().map_err(CountError::Correlated)?;
        Ok(Self { noised, correlated, of_samples, sums })
    }

    /// The text of the file.
    ///
    /// # Errors
    /// A number has no text.
    pub fn text(&self) -> Result<String, CountError> {
        let Self { noised, correlated, of_samples, sums } = self.clone();
        let written = Written { schema: SCHEMA.to_owned(), noised, correlated, of_samples, sums };
        Ok(serde_json::to_string(&written)? + "\n")
    }

    /// All releases that protect what `protected` names against any so many of the other members together, or all of them
    /// for `None`: for single samples those of whole members too.
    ///
    /// # Errors
    /// [`UnprotectedMember`] for a member as a whole, where sums of samples were released: no guarantee for it is left.
    pub fn releases_of(
        &self,
        protected: ProtectedUnit,
        colluders: Option<u32>,
    ) -> Result<NoisedChanges, UnprotectedMember> {
        let of_members = || self.noised.clone().joined(&self.correlated.against(colluders));
        match protected {
            ProtectedUnit::Member if !self.of_samples.is_empty() => Err(UnprotectedMember),
            ProtectedUnit::Member => Ok(of_members()),
            ProtectedUnit::Sample => Ok(of_members().joined(&self.of_samples)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::correlated_noise::CorrelatedNoise;
    use crate::noise_design::NoiseDesign;
    use crate::noise_graph::{NoiseGraph, NoiseParts};

    #[test]
    fn counts_with_and_without_a_key_read_back() {
        for sums in [None, Some(NoiseKey::known(3))] {
            let of_samples = NoisedChanges::default().with(2.0, u64::from(sums.is_some()));
            let file = CountFile { of_samples, sums, ..CountFile::default() };
            assert_eq!(CountFile::parse(&file.text().unwrap()).unwrap(), file);
        }
        let parts = NoiseParts { own: 1.5, pair: 3.0 };
        let design = NoiseDesign { graph: NoiseGraph::new(2, [(0, 1)]), parts };
        let noise = CorrelatedNoise::new([3; 32], &design, Vec::new());
        let correlated = CorrelatedChanges::default().with(&noise, 7, 4.0, 2).unwrap();
        let file = CountFile { correlated, ..CountFile::default() };
        let text = file.text().unwrap();
        assert_eq!(CountFile::parse(&text).unwrap(), file);
        let damaged = CountFile::parse(&text.replace("1.5", "0.0")).unwrap_err();
        assert_eq!(damaged.to_string(), "it counts a noise of 4 with a part of 0");
        let plain = CountFile::default().text().unwrap();
        assert_eq!(plain, "{\"schema\":\"mingle.privacy/1\",\"noised\":[]}\n");
        assert!(CountFile::parse("{").is_err());
        let other = plain.replace("privacy/1", "privacy/9");
        assert_eq!(CountFile::parse(&other).unwrap_err().to_string(), "it is of the version mingle.privacy/9");
    }

    #[test]
    fn releases_of_members_count_for_samples_and_not_the_other_way_round() {
        let of = |changes| NoisedChanges::default().with(4.0, changes);
        let mut file = CountFile { noised: of(3), ..CountFile::default() };
        assert_eq!(file.releases_of(ProtectedUnit::Member, None).unwrap().count(), 3);
        file.of_samples = of(2);
        assert_eq!(file.releases_of(ProtectedUnit::Sample, None).unwrap(), of(5));
        assert_eq!(file.releases_of(ProtectedUnit::Member, None), Err(UnprotectedMember));
    }
}
