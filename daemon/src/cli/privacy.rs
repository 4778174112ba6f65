//! Options of differential privacy, for `run`, `join` and `demo`.

use clap::Args;
use mingle_builtin::options::PrivacyOptions;

/// Options of differential privacy.
#[derive(Args, Clone, Copy, Debug)]
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
    /// With --dp-clip: the delta at which epsilon is reported [default: 0.00001]
    #[arg(long, value_name = "DELTA")]
    pub(crate) dp_delta: Option<f64>,
    /// With --dp-clip: share noise with members, so that less stays in the model; it protects against any N others, not all
    #[arg(long, value_name = "N")]
    pub(crate) dp_colluders: Option<u32>,
}

impl PrivacyArgs {
    /// The names of these options.
    pub(crate) const NAMES: [&str; 5] = ["dp_clip", "dp_noise", "dp_epsilon_max", "dp_delta", "dp_colluders"];
}

impl From<PrivacyArgs> for PrivacyOptions {
    fn from(PrivacyArgs { dp_clip, dp_noise, dp_epsilon_max, dp_delta, dp_colluders }: PrivacyArgs) -> Self {
        Self { dp_clip, dp_noise, dp_epsilon_max, dp_delta, dp_colluders }
    }
}
