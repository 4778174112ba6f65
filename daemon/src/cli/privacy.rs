//! The words for differential privacy, of `run`, `join` and `demo`.

use clap::Args;
use mingle_peer::training::{DEFAULT_DELTA, PrivacySettings, SettingsError};
use mingle_peer::{Error, ErrorKind, Result};

/// Whether changes are made private, and how.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PrivacyArgs {
    /// Make what this peer trains private (differential privacy): cut the change of each round to this L2 norm, and add
    /// noise; all peers must agree
    #[arg(long, value_name = "NORM")]
    pub(crate) dp_clip: Option<f64>,
    /// With --dp-clip: the standard deviation of the noise on each parameter, as a multiple of --dp-clip
    #[arg(long, value_name = "SIGMA")]
    pub(crate) dp_noise: Option<f64>,
    /// With --dp-clip: train no more once another round would cost more than this epsilon, over all runs in the home
    #[arg(long, value_name = "EPSILON")]
    pub(crate) dp_epsilon_max: Option<f64>,
    /// With --dp-clip: the delta at which epsilon is told [default: 0.00001]
    #[arg(long, value_name = "DELTA")]
    pub(crate) dp_delta: Option<f64>,
}

impl PrivacyArgs {
    /// The arguments that say the same as these settings.
    pub(crate) fn of(settings: Option<PrivacySettings>) -> Self {
        Self {
            dp_clip: settings.map(|settings| settings.clip()),
            dp_noise: settings.map(|settings| settings.noise()),
            dp_epsilon_max: settings.map(|settings| settings.epsilon_max()),
            dp_delta: settings.map(|settings| settings.delta()),
        }
    }

    /// Each by the key of its setting.
    pub(crate) fn entries(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("dp_clip", self.dp_clip),
            ("dp_noise", self.dp_noise),
            ("dp_epsilon_max", self.dp_epsilon_max),
            ("dp_delta", self.dp_delta),
        ]
    }

    /// Refuses numbers that mean nothing, whatever the others are.
    ///
    /// # Errors
    /// The option, and what it may be.
    pub(crate) fn check(&self) -> Result {
        // In place of those that are missing, what makes one change cost nothing.
        const QUIET: f64 = 1e6;
        let [clip, noise] = [self.dp_clip, self.dp_noise].map(|value| value.unwrap_or(QUIET));
        let epsilon_max = self.dp_epsilon_max.unwrap_or(QUIET);
        settings(clip, noise, epsilon_max, self.dp_delta.unwrap_or(DEFAULT_DELTA)).map(drop)
    }

    /// What they come to; none where privacy is not asked for.
    ///
    /// # Errors
    /// Some are there and others are missing, or numbers mean nothing.
    pub(crate) fn settings(&self) -> Result<Option<PrivacySettings>> {
        self.check()?;
        let Self { dp_clip, dp_noise, dp_epsilon_max, dp_delta } = *self;
        match (dp_clip, dp_noise, dp_epsilon_max) {
            (Some(clip), Some(noise), Some(epsilon_max)) => {
                settings(clip, noise, epsilon_max, dp_delta.unwrap_or(DEFAULT_DELTA)).map(Some)
            }
            (None, None, None) if dp_delta.is_none() => Ok(None),
            _ => Err(self.incomplete()),
        }
    }

    fn incomplete(&self) -> Error {
        let option = |key: &str| format!("--{}", key.replace('_', "-"));
        let entries = self.entries();
        let given = entries.iter().find(|(_, value)| value.is_some()).map(|(key, _)| option(key)).unwrap_or_default();
        // Delta has a default.
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

    fn refusal(arguments: PrivacyArgs) -> String {
        arguments.settings().unwrap_err().to_string()
    }

    #[test]
    fn all_that_matters_is_given_or_nothing_is() {
        let whole = PrivacyArgs { dp_clip: Some(1.0), dp_noise: Some(4.0), dp_epsilon_max: Some(8.0), dp_delta: None };
        let settings = whole.settings().unwrap();
        assert_eq!(settings, Some(PrivacySettings::new(1.0, 4.0, 8.0, 1e-5).unwrap()));
        assert_eq!(PrivacyArgs::of(settings).settings().unwrap(), settings);
        assert_eq!(PrivacyArgs::default().settings().unwrap(), None);

        let alone = PrivacyArgs { dp_noise: Some(4.0), ..PrivacyArgs::default() };
        assert_eq!(refusal(alone), "--dp-noise protects nothing without --dp-clip and --dp-epsilon-max");
        assert_eq!(
            refusal(PrivacyArgs { dp_epsilon_max: None, ..whole }),
            "--dp-clip protects nothing without --dp-epsilon-max"
        );
        let delta = PrivacyArgs { dp_delta: Some(1e-6), ..PrivacyArgs::default() };
        assert!(refusal(delta).starts_with("--dp-delta protects nothing without --dp-clip and"));
    }

    #[test]
    fn a_number_that_means_nothing_is_refused_by_its_option() {
        let whole = PrivacyArgs { dp_clip: Some(1.0), dp_noise: Some(4.0), dp_epsilon_max: Some(8.0), dp_delta: None };
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refusal(PrivacyArgs { dp_clip: Some(bad), ..whole }).starts_with("--dp-clip: the clip is"));
            assert!(refusal(PrivacyArgs { dp_noise: Some(bad), ..whole }).starts_with("--dp-noise: the noise is"));
            assert!(refusal(PrivacyArgs { dp_epsilon_max: Some(bad), ..whole }).starts_with("--dp-epsilon-max: "));
            assert!(refusal(PrivacyArgs { dp_delta: Some(bad), ..whole }).starts_with("--dp-delta: delta is"));
        }
        let tight = refusal(PrivacyArgs { dp_epsilon_max: Some(0.5), ..whole });
        assert!(tight.starts_with("--dp-epsilon-max: one change with noise 4 costs epsilon"), "{tight}");
    }
}
