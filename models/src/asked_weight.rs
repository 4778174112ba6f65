//! The weight of a site's changes as requested by a user who may not know how many samples the sites have.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::site_weight::SiteWeight;

/// A requested `SiteWeight`: `equal`, `samples` or `samples:N`.
///
/// ```
/// use mingle_models::{AskedWeight, SiteWeight};
///
/// let asked: AskedWeight = "samples".parse()?;
/// assert_eq!(asked.settled(), None, "of how many samples is a site that counts as one?");
/// let unit = SiteWeight::by_mean_of(600, 3);
/// assert_eq!(asked.or_unit(|| Ok::<_, std::convert::Infallible>(unit)), Ok("samples:200".parse()?));
/// # Ok::<(), mingle_models::AskedWeightError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AskedWeight {
    /// The same weight as every other site.
    #[default]
    Equal,
    /// In proportion to its training samples; the maker of the task chooses the number that counts as one site.
    Samples,
    /// In proportion to its training samples, so many of which count as one site.
    SamplesPer(NonZeroU64),
}

impl AskedWeight {
    /// Returns `true` if `theirs` is what this requests.
    pub fn admits(self, theirs: SiteWeight) -> bool {
        match (self, theirs) {
            (Self::Samples, SiteWeight::Samples { .. }) => true,
            _ => Self::from(theirs) == self,
        }
    }

    /// This request, with the unit from `settled` where it names none.
    ///
    /// # Errors
    /// The error of `settled`.
    pub fn or_unit<E>(self, settled: impl FnOnce() -> Result<SiteWeight, E>) -> Result<Self, E> {
        match self {
            Self::Samples => settled().map(Self::from),
            _ => Ok(self),
        }
    }

    /// The weight that this requests; `None` where it names no number of samples that counts as one site.
    pub fn settled(self) -> Option<SiteWeight> {
        match self {
            Self::Equal => Some(SiteWeight::Equal),
            Self::SamplesPer(unit) => Some(SiteWeight::Samples { unit }),
            Self::Samples => None,
        }
    }
}

/// Errors of parsing a requested weight.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskedWeightError {
    /// The part after `samples:` is no positive number.
    #[error("`{0}` is no number of samples: write samples:N with N of at least 1, such as samples:1000")]
    Number(String),
    /// The text is neither `equal` nor `samples` nor `samples:N`.
    #[error("`{0}` is no weight: write equal, samples or samples:N, where a site of N samples counts as one")]
    Unknown(String),
}

impl From<SiteWeight> for AskedWeight {
    fn from(weight: SiteWeight) -> Self {
        match weight {
            SiteWeight::Equal => Self::Equal,
            SiteWeight::Samples { unit } => Self::SamplesPer(unit),
        }
    }
}

impl FromStr for AskedWeight {
    type Err = AskedWeightError;

    fn from_str(text: &str) -> Result<Self, AskedWeightError> {
        match text.split_once(':') {
            None if text == "equal" => Ok(Self::Equal),
            None if text == "samples" => Ok(Self::Samples),
            Some(("samples", number)) => {
                number.parse().map(Self::SamplesPer).map_err(|_| AskedWeightError::Number(number.to_owned()))
            }
            _ => Err(AskedWeightError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for AskedWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Samples => f.write_str("samples"),
            Self::SamplesPer(unit) => write!(f, "samples:{unit}"),
        }
    }
}

mingle_datasets::text_form!(AskedWeight, AskedWeightError);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn samples_without_a_number_takes_the_number_that_is_settled_and_comes_to_nothing_without_one() {
        let read = |text: &str| text.parse::<AskedWeight>();
        for text in ["equal", "samples", "samples:250"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for text in ["samples:0", "samples:-1", "samples:", "samples:1e9", "rows", "equal:2", ""] {
            assert!(read(text).unwrap_err().to_string().contains("write"), "{text}");
        }
        let [told, other] = [250, 251].map(|unit| SiteWeight::by_samples(unit).unwrap());
        let settle = |asked: AskedWeight, unit| asked.or_unit(|| Ok::<_, ()>(unit)).unwrap().settled();
        let asked = read("samples").unwrap();
        assert!(asked.admits(told) && !asked.admits(SiteWeight::Equal));
        assert!(read("samples:250").unwrap().admits(told) && !read("samples:250").unwrap().admits(other));
        assert!(read("equal").unwrap().admits(SiteWeight::Equal) && !read("equal").unwrap().admits(told));
        assert_eq!(asked.settled(), None);
        assert_eq!(settle(asked, told), Some(told));
        assert_eq!(settle(read("samples:250").unwrap(), other), Some(told));
    }
}
