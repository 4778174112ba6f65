//! Options of differential privacy.

use mingle_peer::training::{DEFAULT_DELTA, PrivacySettings, SettingsError};
use mingle_peer::{Error, ErrorKind, Result};

/// The options of differential privacy; all absent if changes are not made private.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrivacyOptions {
    /// The L2 norm to which the change of each round is clipped.
    pub dp_clip: Option<f64>,
    /// The standard deviation of the noise on each parameter, as a multiple of that norm.
    pub dp_noise: Option<f64>,
    /// The largest epsilon, over all runs in the home: no round is trained that would cost more.
    pub dp_epsilon_max: Option<f64>,
    /// The delta at which epsilon is reported; usually [`DEFAULT_DELTA`].
    pub dp_delta: Option<f64>,
    /// The number of members against whom noise that members share protects; without it, each has its own noise.
    pub dp_colluders: Option<u32>,
}

impl PrivacyOptions {
    /// The options that correspond to these settings.
    pub fn of(settings: Option<PrivacySettings>) -> Self {
        Self {
            dp_clip: settings.map(|settings| settings.clip()),
            dp_noise: settings.map(|settings| settings.noise()),
            dp_epsilon_max: settings.map(|settings| settings.epsilon_max()),
            dp_delta: settings.map(|settings| settings.delta()),
            dp_colluders: settings.and_then(|settings| settings.colluders()),
        }
    }

    /// Each setting by its key.
    pub fn entries(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("dp_clip", self.dp_clip),
            ("dp_noise", self.dp_noise),
            ("dp_epsilon_max", self.dp_epsilon_max),
            ("dp_delta", self.dp_delta),
            ("dp_colluders", self.dp_colluders.map(f64::from)),
        ]
    }

    /// Refuses invalid numbers, each by itself.
    ///
    /// # Errors
    /// Names the option and its bounds.
    pub fn check(&self) -> Result {
        // For missing options: values with which one change costs nothing.
        const QUIET: f64 = 1e6;
        let [clip, noise] = [self.dp_clip, self.dp_noise].map(|value| value.unwrap_or(QUIET));
        let epsilon_max = self.dp_epsilon_max.unwrap_or(QUIET);
        if self.dp_colluders == Some(0) {
            let message =
                "--dp-colluders 0 protects against no other member: 1 is the least, for any one that is curious";
            return Err(Error::new(ErrorKind::BadInput, message));
        }
        settings(clip, noise, epsilon_max, self.dp_delta.unwrap_or(DEFAULT_DELTA)).map(drop)
    }

    /// The settings; `None` if privacy is not requested.
    ///
    /// # Errors
    /// Some options are present and others are missing, or numbers are invalid.
    pub fn settings(&self) -> Result<Option<PrivacySettings>> {
        self.check()?;
        let Self { dp_clip, dp_noise, dp_epsilon_max, dp_delta, dp_colluders } = *self;
        match (dp_clip, dp_noise, dp_epsilon_max) {
            (Some(clip), Some(noise), Some(epsilon_max)) => {
                let settings = settings(clip, noise, epsilon_max, dp_delta.unwrap_or(DEFAULT_DELTA))?;
                Ok(Some(settings.against(dp_colluders)))
            }
            (None, None, None) if dp_delta.is_none() && dp_colluders.is_none() => Ok(None),
            _ => Err(self.incomplete()),
        }
    }

    fn incomplete(&self) -> Error {
        let option = |key: &str| format!("--{}", key.replace('_', "-"));
        let entries = self.entries();
        let given = entries.iter().find(|(_, value)| value.is_some()).map(|(key, _)| option(key)).unwrap_or_default();
        // The others have a default.
        let missing: Vec<String> =
            entries.iter().take(3).filter(|(_, value)| value.is_none()).map(|(key, _)| option(key)).collect();
        let message = format!("{given} protects nothing without {}", missing.join(" and "));
        Error::new(ErrorKind::BadInput, message)
            .hint("give --dp-clip, --dp-noise and --dp-epsilon-max together, or none of them: docs/privacy.md says how to choose them")
    }
}

fn settings(clip: f64, noise: f64, epsilon_max: f64, delta: f64) -> Result<PrivacySettings> {
    PrivacySettings::new(clip, noise, epsilon_max, delta).map_err(|error| {
        let option = match error {
            SettingsError::Clip(_) => "dp-clip",
            SettingsError::Noise(_) => "dp-noise",
            SettingsError::EpsilonMax(_) | SettingsError::NotEvenOne { .. } => "dp-epsilon-max",
            SettingsError::Delta(_) => "dp-delta",
        };
        Error::new(ErrorKind::BadInput, format!("--{option}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refusal(options: PrivacyOptions) -> String {
        options.settings().unwrap_err().to_string()
    }

    #[test]
    fn all_that_matters_is_given_or_nothing_is() {
        let whole = PrivacyOptions {
            dp_clip: Some(1.0),
            dp_noise: Some(4.0),
            dp_epsilon_max: Some(8.0),
            ..PrivacyOptions::default()
        };
        let settings = whole.settings().unwrap();
        assert_eq!(settings, Some(PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).unwrap()));
        assert_eq!(PrivacyOptions::of(settings).settings().unwrap(), settings);
        assert_eq!(PrivacyOptions::default().settings().unwrap(), None);

        let alone = PrivacyOptions { dp_noise: Some(4.0), ..PrivacyOptions::default() };
        assert_eq!(refusal(alone), "--dp-noise protects nothing without --dp-clip and --dp-epsilon-max");
        assert_eq!(
            refusal(PrivacyOptions { dp_epsilon_max: None, ..whole }),
            "--dp-clip protects nothing without --dp-epsilon-max"
        );
        let delta = PrivacyOptions { dp_delta: Some(1e-6), ..PrivacyOptions::default() };
        assert!(refusal(delta).starts_with("--dp-delta protects nothing without --dp-clip and"));
        let colluders = PrivacyOptions { dp_colluders: Some(2), ..PrivacyOptions::default() };
        assert!(refusal(colluders).starts_with("--dp-colluders protects nothing without --dp-clip and"));
        let shared = PrivacyOptions { dp_colluders: Some(2), ..whole };
        assert_eq!(PrivacyOptions::of(shared.settings().unwrap()).dp_colluders, Some(2));
    }

    #[test]
    fn a_number_that_means_nothing_is_refused_by_its_option() {
        let whole = PrivacyOptions {
            dp_clip: Some(1.0),
            dp_noise: Some(4.0),
            dp_epsilon_max: Some(8.0),
            ..PrivacyOptions::default()
        };
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refusal(PrivacyOptions { dp_clip: Some(bad), ..whole }).starts_with("--dp-clip: the clip is"));
            assert!(refusal(PrivacyOptions { dp_noise: Some(bad), ..whole }).starts_with("--dp-noise: the noise is"));
            assert!(refusal(PrivacyOptions { dp_epsilon_max: Some(bad), ..whole }).starts_with("--dp-epsilon-max: "));
            assert!(refusal(PrivacyOptions { dp_delta: Some(bad), ..whole }).starts_with("--dp-delta: delta is"));
        }
        assert!(refusal(PrivacyOptions { dp_colluders: Some(0), ..whole }).starts_with("--dp-colluders 0 protects"));
        let tight = refusal(PrivacyOptions { dp_epsilon_max: Some(0.5), ..whole });
        assert!(tight.starts_with("--dp-epsilon-max: one change with noise 4 costs epsilon"), "{tight}");
    }
}
