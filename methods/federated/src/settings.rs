//! The settings of federated averaging, the same at all members.

use mingle_privacy::{PrivacySettings, ProtectedUnit};
use mingle_solving::{RoundRules, RulesError};
use serde::{Deserialize, Serialize};

/// With differential privacy the epsilon of all releases of a member so far.
pub const EPSILON: &str = "epsilon";

/// With differential privacy 1 for a member whose last contribution was noise alone, else 0.
pub const SPENT: &str = "spent";

/// The metrics that are reported beside those of the model; not measured without differential privacy.
const METRICS_OF_PRIVACY: [&str; 2] = [EPSILON, SPENT];

/// The metric of a training that is no evaluation: the mean loss of a round's steps.
pub const TRAIN_LOSS: &str = "train_loss";

/// The use of what the members train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FederatedMethod {
    /// All go on from the mean of their changes (McMahan et al. 2017).
    #[default]
    Fedavg,
    /// Each goes on by itself.
    Alone,
}

/// The settings of federated averaging.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FederatedSettings {
    /// The use of what the members train.
    pub method: FederatedMethod,
    /// Rounds of training and averaging.
    pub rounds: u64,
    /// Steps of a member in a round.
    pub local_steps: u32,
    /// The factor of the mean change.
    pub outer_learning_rate: f64,
    /// The momentum of mean changes, from round to round.
    pub outer_momentum: f64,
    /// The names of the model's metrics.
    pub metrics: Vec<String>,
    /// Rounds from one measurement of them to the next; they are measured after the last round too.
    pub evaluate_every: u64,
    /// The differential privacy of all changes, if they are to have it.
    pub privacy: Option<SharedPrivacy>,
}

/// Differential privacy whose noise all members share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SharedPrivacy {
    /// Clip, noise of the sum, and the largest cost.
    pub settings: PrivacySettings,
    /// Members against whom the guarantee holds even if they work together.
    pub colluders: usize,
    /// The unit that the noise hides. For single samples a round is one step of gradient descent over all samples of all
    /// members, with each gradient cut to the clip by itself; the outer learning rate is that of the step.
    pub protects: ProtectedUnit,
}

impl FederatedSettings {
    /// Rounds of so many local steps: plain averaging, measured after each round, without privacy.
    ///
    /// ```
    /// use mingle_federated::{FederatedSettings, SharedPrivacy};
    /// use mingle_privacy::{PrivacySettings, ProtectedUnit};
    ///
    /// let rounds = 40;
    /// let settings = PrivacySettings::for_changes(0.3, rounds, 8.1, 1e-5)?;
    /// let privacy = Some(SharedPrivacy { settings, colluders: 2, protects: ProtectedUnit::Member });
    /// let private = FederatedSettings { privacy, ..FederatedSettings::new(rounds, 10) };
    /// # Ok::<(), mingle_privacy::SettingsError>(())
    /// ```
    pub fn new(rounds: u64, local_steps: u32) -> Self {
        Self {
            method: FederatedMethod::Fedavg,
            rounds,
            local_steps,
            outer_learning_rate: 1.0,
            outer_momentum: 0.0,
            metrics: Vec::new(),
            evaluate_every: 1,
            privacy: None,
        }
    }

    /// The privacy of contributions; `None` also where nothing is shared.
    pub fn shared_privacy(&self) -> Option<SharedPrivacy> {
        self.privacy.filter(|_| self.method == FederatedMethod::Fedavg)
    }

    /// Returns `true` if a round is one step over all samples, of which each is protected by itself.
    pub fn protects_samples(&self) -> bool {
        self.shared_privacy().is_some_and(|privacy| privacy.protects == ProtectedUnit::Sample)
    }

    /// Returns `true` if the model after so many rounds is measured.
    pub(crate) fn evaluates_after(&self, rounds: u64) -> bool {
        rounds == self.rounds || rounds.is_multiple_of(self.evaluate_every.max(1))
    }

    /// The rules of learning by these settings.
    ///
    /// # Errors
    /// Too few or too many rounds, or too many metrics.
    pub fn rules(&self) -> Result<RoundRules, RulesError> {
        let names = self.metrics.iter().map(String::as_str).chain(METRICS_OF_PRIVACY);
        RoundRules::new(self.rounds, names.map(str::to_owned).collect())
    }

    /// Returns `true` if all members have one model.
    pub fn has_common_model(&self) -> bool {
        self.method == FederatedMethod::Fedavg
    }

    /// The fewest members that such a training can have: beside those that collude, two have to be in a sum.
    pub fn least_members(&self) -> usize {
        self.shared_privacy().map_or(1, |privacy| privacy.colluders + 2)
    }

    /// Describes the training of a model of this name in one line.
    pub fn describe(&self, model: &str) -> String {
        let method = match self.method {
            FederatedMethod::Fedavg => "the mean of all",
            FederatedMethod::Alone => "each alone",
        };
        let private = self.shared_privacy().map(|SharedPrivacy { settings, colluders, protects }| {
            let hidden = match protects {
                ProtectedUnit::Member => "each member",
                ProtectedUnit::Sample => "each sample",
            };
            format!("; noise that all share hides {hidden} from any {colluders} others: {settings}")
        });
        let private = private.unwrap_or_default();
        format!("training of {model}, {method}: {} rounds of {} steps{private}", self.rounds, self.local_steps)
    }
}
