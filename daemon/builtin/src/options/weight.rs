//! How much the change of a site counts: equal, samples or samples:N.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use mingle_models::SiteWeight;
use mingle_peer::{Error, ErrorKind, Result};

/// How much the change of a site counts, as somebody says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightChoice {
    /// As much as that of every other site.
    #[default]
    Equal,
    /// In proportion to its training samples; who makes the task says how many count as one site.
    Samples,
    /// In proportion to its training samples, so many of which count as one site.
    SamplesPer(NonZeroU64),
}

impl WeightChoice {
    /// Whether `theirs` is what this asks for.
    pub fn admits(self, theirs: SiteWeight) -> bool {
        match (self, theirs) {
            (Self::Samples, SiteWeight::Samples { .. }) => true,
            _ => Self::from(theirs) == self,
        }
    }

    /// With the number that is settled, where nobody has said one.
    pub fn or_unit(self, settled: impl FnOnce() -> Result<SiteWeight>) -> Result<Self> {
        match self {
            Self::Samples => settled().map(Self::from),
            _ => Ok(self),
        }
    }

    /// What it comes to.
    ///
    /// # Errors
    /// Nobody has said how many samples count as one site.
    pub fn settled(self) -> Result<SiteWeight> {
        match self {
            Self::Equal => Ok(SiteWeight::Equal),
            Self::SamplesPer(unit) => Ok(SiteWeight::Samples { unit }),
            Self::Samples => Err(Error::new(
                ErrorKind::BadInput,
                "--weight samples: it is not known how many samples count as one site",
            )
            .hint("say the mean number of training samples of a site, such as --weight samples:1000")),
        }
    }
}

impl From<SiteWeight> for WeightChoice {
    fn from(weight: SiteWeight) -> Self {
        match weight {
            SiteWeight::Equal => Self::Equal,
            SiteWeight::Samples { unit } => Self::SamplesPer(unit),
        }
    }
}

impl FromStr for WeightChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "equal" => Ok(Self::Equal),
            None if text == "samples" => Ok(Self::Samples),
            Some(("samples", number)) => number.parse().map(Self::SamplesPer).map_err(|_| {
                format!(
                    "`{number}` is no number of samples: write samples:N with N of at least 1, such as samples:1000"
                )
            }),
            _ => Err("write equal, samples or samples:N, where a site of N samples counts as one".to_owned()),
        }
    }
}

impl fmt::Display for WeightChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Samples => f.write_str("samples"),
            Self::SamplesPer(unit) => write!(f, "samples:{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn samples_without_a_number_takes_the_number_that_is_settled_and_refuses_to_go_without_one() {
        let read = |text: &str| text.parse::<WeightChoice>();
        for text in ["equal", "samples", "samples:250"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for text in ["samples:0", "samples:-1", "samples:", "samples:1e9", "rows", "equal:2", ""] {
            assert!(read(text).unwrap_err().contains("write"), "{text}");
        }
        let [told, other] = [250, 251].map(|unit| SiteWeight::by_samples(unit).unwrap());
        let asked = read("samples").unwrap();
        assert!(asked.admits(told) && !asked.admits(SiteWeight::Equal));
        assert!(read("samples:250").unwrap().admits(told) && !read("samples:250").unwrap().admits(other));
        assert!(read("equal").unwrap().admits(SiteWeight::Equal) && !read("equal").unwrap().admits(told));
        assert!(asked.settled().unwrap_err().is(ErrorKind::BadInput));
        assert_eq!(asked.or_unit(|| Ok(told)).unwrap().settled().unwrap(), told);
        assert_eq!(read("samples:250").unwrap().or_unit(|| Ok(other)).unwrap().settled().unwrap(), told);
    }
}
