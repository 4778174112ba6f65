//! The clipping and noise of changes, and the privacy budget.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The delta of a peer whose settings name none.
pub const DEFAULT_DELTA: f64 = 1e-5;

/// The largest clip, noise or epsilon: larger values are typing errors.
const LARGEST: f64 = 1e6;
/// The smallest clip or noise.
const SMALLEST: f64 = 1e-6;

/// The clipping and noise of changes, and the privacy that may be spent. All peers of a swarm have the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSettings")]
pub struct PrivacySettings {
    clip: f64,
    noise: f64,
    epsilon_max: f64,
    delta: f64,
    colluders: Option<u32>,
}

/// Errors of making settings.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SettingsError {
    /// The clip is out of bounds.
    #[error("the clip is {0}: it must be between {SMALLEST} and {LARGEST}")]
    Clip(f64),
    /// The noise multiplier is out of bounds.
    #[error("the noise is {0}: it must be between {SMALLEST} and {LARGEST} times the clip")]
    Noise(f64),
    /// The maximum of epsilon is out of bounds.
    #[error("the largest epsilon is {0}: it must be above 0, and {LARGEST} at most")]
    EpsilonMax(f64),
    /// Delta is not between 0 and 1.
    #[error("delta is {0}: it must be above 0 and below 1, and far below 1 / peers to mean anything")]
    Delta(f64),
    /// One change would exceed the maximum, so that nothing could ever be released.
    #[error(
        "one change with noise {noise} costs epsilon {epsilon:.3} at delta {delta}, more than the largest of {epsilon_max}"
    )]
    NotEvenOne { noise: f64, epsilon: f64, delta: f64, epsilon_max: f64 },
}

#[derive(Deserialize)]
struct UncheckedSettings {
    clip: f64,
    noise: f64,
    epsilon_max: f64,
    delta: f64,
    #[serde(default)]
    colluders: Option<u32>,
}

impl TryFrom<UncheckedSettings> for PrivacySettings {
    type Error = SettingsError;

    fn try_from(unchecked: UncheckedSettings) -> Result<Self, SettingsError> {
        let UncheckedSettings { clip, noise, epsilon_max, delta, colluders } = unchecked;
        Ok(Self::new(clip, noise, epsilon_max, delta)?.against(colluders))
    }
}

impl PrivacySettings {
    /// Settings for changes clipped to the norm `clip`, with noise of `noise * clip` on each coordinate, and as many of
    /// them as cost no more than `epsilon_max` at `delta`.
    ///
    /// # Errors
    /// A number that is not finite or out of bounds, or a maximum that one change would exceed.
    pub fn new(clip: f64, noise: f64, epsilon_max: f64, delta: f64) -> Result<Self, SettingsError> {
        let is_size = |value: f64| (SMALLEST..=LARGEST).contains(&value);
        if !is_size(clip) {
            return Err(SettingsError::Clip(clip));
        }
        if !is_size(noise) {
            return Err(SettingsError::Noise(noise));
        }
        // Also refuses NaN.
        if !(epsilon_max > 0.0 && epsilon_max <= LARGEST) {
            return Err(SettingsError::EpsilonMax(epsilon_max));
        }
        if !(delta > 0.0 && delta < 1.0) {
            return Err(SettingsError::Delta(delta));
        }
        let settings = Self { clip, noise, epsilon_max, delta, colluders: None };
        let epsilon = settings.epsilon_of(1);
        if epsilon > epsilon_max {
            return Err(SettingsError::NotEvenOne { noise, epsilon, delta, epsilon_max });
        }
        Ok(settings)
    }

    /// The least noise, to three digits after the point, with which so many changes cost at most `epsilon_max`. The same
    /// on all machines, unless rounding of logarithms falls on the boundary between two such numbers.
    ///
    /// # Errors
    /// No noise in bounds is enough, or a number is out of bounds.
    pub fn for_changes(clip: f64, changes: u64, epsilon_max: f64, delta: f64) -> Result<Self, SettingsError> {
        let with = |noise: f64| Self { clip, noise, epsilon_max, delta, colluders: None };
        let is_enough = |thousandths: u64| with(thousandths as f64 / 1e3).epsilon_of(changes) <= epsilon_max;
        let mut too_little = 0;
        let mut enough = LARGEST as u64 * 1_000;
        while enough - too_little > 1 {
            let middle = too_little + (enough - too_little) / 2;
            if is_enough(middle) { enough = middle } else { too_little = middle }
        }
        Self::new(clip, enough as f64 / 1e3, epsilon_max, delta)
    }

    /// These settings, with noise a part of which members share: it protects against any so many of the other members
    /// together, and the network. For `None` each member adds all of its noise, against all others together.
    #[must_use]
    pub fn against(self, colluders: Option<u32>) -> Self {
        Self { colluders, ..self }
    }

    /// The number of members against whom noise that members share protects; `None` where it is not shared.
    pub fn colluders(&self) -> Option<u32> {
        self.colluders
    }

    /// The words for the members against whom the noise protects, after a figure that holds against them: empty for all
    /// others together.
    pub fn against_whom(&self) -> String {
        self.colluders.map_or_else(String::new, |colluders| format!(" against any {colluders} members"))
    }

    /// The largest L2 norm of a change.
    pub fn clip(&self) -> f64 {
        self.clip
    }

    /// The standard deviation of the noise on each coordinate, divided by the clip.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The largest total epsilon of all changes.
    pub fn epsilon_max(&self) -> f64 {
        self.epsilon_max
    }

    /// The delta at which epsilon is computed.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The epsilon of this number of changes.
    pub fn epsilon_of(&self, changes: u64) -> f64 {
        let mut accountant = crate::rdp_accountant::RdpAccountant::default();
        accountant.compose_gaussian(self.noise, changes);
        accountant.epsilon(self.delta)
    }

    /// The first difference from other settings, described with "here" and "there".
    pub fn difference(&self, there: &Self) -> Option<String> {
        let pairs = [
            ("the clip of differential privacy", self.clip, there.clip),
            ("the noise of differential privacy", self.noise, there.noise),
            ("the largest epsilon", self.epsilon_max, there.epsilon_max),
            ("delta", self.delta, there.delta),
        ];
        let mut differing = pairs.into_iter().filter(|(_, here, there)| here.to_bits() != there.to_bits());
        let number = differing.next().map(|(what, here, there)| format!("{what} is {here} here and {there} there"));
        number.or_else(|| self.difference_in_sharing(there))
    }

    fn difference_in_sharing(&self, there: &Self) -> Option<String> {
        let words = |settings: &Self| match settings.colluders {
            Some(colluders) => format!("shared against {colluders} colluders"),
            None => "not shared".to_owned(),
        };
        let differ = || format!("the noise of differential privacy is {} here and {} there", words(self), words(there));
        (self.colluders != there.colluders).then(differ)
    }

    /// The first difference between settings either of which may be absent.
    pub fn difference_of(here: Option<&Self>, there: Option<&Self>) -> Option<String> {
        match (here, there) {
            (None, None) => None,
            (Some(here), Some(there)) => here.difference(there),
            (Some(here), None) => Some(format!("changes are private here ({here}) and not there")),
            (None, Some(there)) => Some(format!("changes are not private here, and are there ({there})")),
        }
    }
}

impl fmt::Display for PrivacySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clip, noise, epsilon_max, delta, colluders } = self;
        write!(f, "clip {clip}, noise {noise}, epsilon at most {epsilon_max} at delta {delta}")?;
        colluders.iter().try_for_each(|colluders| write!(f, ", against {colluders} colluders"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7, -0.0] {
            assert!(matches!(PrivacySettings::new(bad, 1.0, 8.0, 1e-5), Err(SettingsError::Clip(_))), "{bad}");
            assert!(matches!(PrivacySettings::new(1.0, bad, 8.0, 1e-5), Err(SettingsError::Noise(_))), "{bad}");
            assert!(matches!(PrivacySettings::new(1.0, 1.0, bad, 1e-5), Err(SettingsError::EpsilonMax(_))), "{bad}");
            assert!(matches!(PrivacySettings::new(1.0, 1.0, 8.0, bad), Err(SettingsError::Delta(_))), "{bad}");
        }
        assert!(matches!(PrivacySettings::new(1.0, 1.0, 8.0, 1.0), Err(SettingsError::Delta(_))));
    }

    #[test]
    fn the_least_noise_for_a_number_of_changes_is_enough_for_them_and_a_little_less_is_not() {
        for (changes, epsilon) in [(40, 8.1), (2, 1.0), (500, 3.0)] {
            let settings = PrivacySettings::for_changes(1.0, changes, epsilon, 1e-5).unwrap();
            assert!(settings.epsilon_of(changes) <= epsilon, "{settings:?}");
            let less = PrivacySettings::new(1.0, settings.noise() - 0.001, epsilon, 1e-5).unwrap();
            assert!(less.epsilon_of(changes) > epsilon, "{less:?}");
        }
        assert!(PrivacySettings::for_changes(1.0, 40, 0.0, 1e-5).is_err());
        assert!(PrivacySettings::for_changes(1.0, 40, 8.0, 0.0).is_err());
    }

    #[test]
    fn a_maximum_that_one_change_exceeds_is_refused() {
        let error = PrivacySettings::new(1.0, 0.5, 2.0, 1e-5).unwrap_err();
        assert!(matches!(error, SettingsError::NotEvenOne { .. }), "{error}");
        assert!(error.to_string().starts_with("one change with noise 0.5 costs epsilon 10"), "{error}");
    }

    #[test]
    fn settings_read_back_as_they_were_written_and_unsound_ones_do_not() {
        let settings = PrivacySettings::new(0.5, 4.0, 8.0, 1e-6).unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(text, r#"{"clip":0.5,"noise":4.0,"epsilon_max":8.0,"delta":1e-6,"colluders":null}"#);
        let shared = settings.against(Some(3));
        let text_of_shared = serde_json::to_string(&shared).unwrap();
        assert_eq!(serde_json::from_str::<PrivacySettings>(&text_of_shared).unwrap(), shared);
        for text in [text.clone(), text.replace(r#","colluders":null"#, "")] {
            assert_eq!(serde_json::from_str::<PrivacySettings>(&text).unwrap(), settings);
        }
        let unsound = text.replace("4.0", "-4.0");
        assert!(serde_json::from_str::<PrivacySettings>(&unsound).unwrap_err().to_string().contains("the noise is -4"));
    }

    #[test]
    fn the_first_difference_is_named() {
        let settings = |clip, noise, epsilon_max, delta| PrivacySettings::new(clip, noise, epsilon_max, delta).unwrap();
        let here = settings(1.0, 4.0, 8.0, 1e-5);
        let differs = |there: PrivacySettings| here.difference(&there);
        assert_eq!(differs(here), None);
        assert_eq!(
            differs(settings(2.0, 5.0, 8.0, 1e-5)).unwrap(),
            "the clip of differential privacy is 1 here and 2 there"
        );
        assert_eq!(
            differs(settings(1.0, 5.0, 9.0, 1e-5)).unwrap(),
            "the noise of differential privacy is 4 here and 5 there"
        );
        assert_eq!(differs(settings(1.0, 4.0, 9.0, 1e-6)).unwrap(), "the largest epsilon is 8 here and 9 there");
        assert_eq!(differs(settings(1.0, 4.0, 8.0, 1e-6)).unwrap(), "delta is 0.00001 here and 0.000001 there");
        assert_eq!(
            differs(here.against(Some(2))).unwrap(),
            "the noise of differential privacy is not shared here and shared against 2 colluders there"
        );
        let without = PrivacySettings::difference_of(Some(&here), None).unwrap();
        assert_eq!(
            without,
            "changes are private here (clip 1, noise 4, epsilon at most 8 at delta 0.00001) and not there"
        );
        assert!(PrivacySettings::difference_of(None, Some(&here)).is_some());
        assert_eq!(PrivacySettings::difference_of(None, None), None);
    }
}
