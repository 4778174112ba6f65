//! The settings of a peer: options of `mingle run` that may stand in its configuration file.

use clap::{ArgMatches, FromArgMatches};

use crate::cli::RunArgs;

/// An option of `run` that describes the peer. `cli/run.rs` defines its meaning and its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The group under which help and file show it.
    pub(crate) group: Group,
    /// Its key in the file, which is the name of its option with `_` for `-`.
    pub(crate) key: &'static str,
    /// The variable of the environment.
    pub(crate) env: &'static str,
    /// Form of its value in TOML.
    pub(crate) form: ValueForm,
    /// An example of its value, as TOML.
    pub(crate) example: &'static str,
}

/// The groups of settings, by what they are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Network,
    Plan,
    Task,
    Training,
    Exchange,
    Privacy,
    Results,
}

impl Group {
    /// The heading of the group.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Plan => "Plan",
            Self::Task => "Task and data",
            Self::Training => "Training",
            Self::Exchange => "Exchange with neighbours",
            Self::Privacy => "Differential privacy",
            Self::Results => "Records and results",
        }
    }
}

/// The form of a setting's value in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// Text in quotes.
    Text,
    /// Texts in quotes, between brackets.
    Texts,
    /// A whole number, not negative.
    Whole,
    /// A number.
    Number,
}

impl ValueForm {
    /// The form in words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Text => "text in quotes",
            Self::Texts => "a list of texts in quotes",
            Self::Whole => "a whole number",
            Self::Number => "a number",
        }
    }

    /// Values of this form in the notation that TOML and JSON share.
    pub(crate) fn write(self, values: &[String]) -> String {
        let quoted = |value: &String| serde_json::Value::from(value.as_str()).to_string();
        match (self, values) {
            (Self::Texts, values) => format!("[{}]", values.iter().map(quoted).collect::<Vec<_>>().join(", ")),
            (Self::Text, [value, ..]) => quoted(value),
            (Self::Whole | Self::Number, [value, ..]) => value.clone(),
            (_, []) => "null".to_owned(),
        }
    }
}

const fn setting(
    group: Group,
    key: &'static str,
    env: &'static str,
    form: ValueForm,
    example: &'static str,
) -> Setting {
    Setting { group, key, env, form, example }
}

/// All settings, in the order of the file.
pub(crate) const SETTINGS: &[Setting] = &[
    setting(
        Group::Network,
        "listen",
        "MINGLE_LISTEN",
        ValueForm::Texts,
        r#"["/ip4/0.0.0.0/udp/4717/quic-v1", "/ip4/0.0.0.0/tcp/4717"]"#,
    ),
    setting(Group::Network, "bootstrap", "MINGLE_BOOTSTRAP", ValueForm::Texts, r#"["/ip4/10.0.1.5/udp/4717/quic-v1"]"#),
    setting(Group::Network, "bootstrap_timeout", "MINGLE_BOOTSTRAP_TIMEOUT", ValueForm::Text, r#""30s""#),
    setting(Group::Network, "mdns", "MINGLE_MDNS", ValueForm::Text, r#""off""#),
    setting(Group::Network, "medium", "MINGLE_MEDIUM", ValueForm::Text, r#""multicast%eth0""#),
    setting(Group::Network, "air_rate", "MINGLE_AIR_RATE", ValueForm::Text, r#""20mbit""#),
    setting(Group::Network, "slots", "MINGLE_SLOTS", ValueForm::Text, r#""on""#),
    setting(Group::Network, "followers", "MINGLE_FOLLOWERS", ValueForm::Whole, "16"),
    setting(Group::Network, "follower_rate", "MINGLE_FOLLOWER_RATE", ValueForm::Whole, "16"),
    setting(Group::Network, "http", "MINGLE_HTTP", ValueForm::Text, r#""127.0.0.1:7717""#),
    setting(Group::Plan, "plan", "MINGLE_PLAN", ValueForm::Text, r#""plan.json""#),
    setting(Group::Plan, "planning", "MINGLE_PLANNING", ValueForm::Text, r#""operator""#),
    setting(Group::Plan, "evict_after", "MINGLE_EVICT_AFTER", ValueForm::Text, r#""24h""#),
    setting(Group::Plan, "local_steps", "MINGLE_LOCAL_STEPS", ValueForm::Whole, "20"),
    setting(
        Group::Plan,
        "without",
        "MINGLE_WITHOUT",
        ValueForm::Texts,
        r#"["12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"]"#,
    ),
    setting(Group::Task, "trainer", "MINGLE_TRAINER", ValueForm::Text, r#""python train.py""#),
    setting(Group::Task, "trainer_tcp", "MINGLE_TRAINER_TCP", ValueForm::Text, r#""127.0.0.1:7718""#),
    setting(Group::Task, "trainer_crashes", "MINGLE_TRAINER_CRASHES", ValueForm::Whole, "10"),
    setting(Group::Task, "problem", "MINGLE_PROBLEM", ValueForm::Text, r#""problem.toml""#),
    setting(Group::Task, "card", "MINGLE_CARD", ValueForm::Text, r#""card.json""#),
    setting(Group::Task, "data", "MINGLE_DATA", ValueForm::Text, r#""csv:train.csv""#),
    setting(Group::Task, "task", "MINGLE_TASK", ValueForm::Text, r#""regression""#),
    setting(Group::Task, "model", "MINGLE_MODEL", ValueForm::Text, r#""mlp:hidden=128""#),
    setting(Group::Task, "split", "MINGLE_SPLIT", ValueForm::Text, r#""dirichlet:0.3""#),
    setting(Group::Task, "weight", "MINGLE_WEIGHT", ValueForm::Text, r#""samples:1000""#),
    setting(Group::Task, "personal", "MINGLE_PERSONAL", ValueForm::Texts, r#"["fc2.*"]"#),
    setting(Group::Training, "rounds", "MINGLE_ROUNDS", ValueForm::Whole, "200"),
    setting(Group::Training, "batch_size", "MINGLE_BATCH_SIZE", ValueForm::Whole, "32"),
    setting(Group::Training, "augment", "MINGLE_AUGMENT", ValueForm::Text, r#""flip,crop:4""#),
    setting(Group::Training, "optimizer", "MINGLE_OPTIMIZER", ValueForm::Text, r#""adamw""#),
    setting(Group::Training, "learning_rate", "MINGLE_LEARNING_RATE", ValueForm::Number, "0.1"),
    setting(Group::Training, "momentum", "MINGLE_MOMENTUM", ValueForm::Number, "0.9"),
    setting(Group::Training, "beta2", "MINGLE_BETA2", ValueForm::Number, "0.99"),
    setting(Group::Training, "weight_decay", "MINGLE_WEIGHT_DECAY", ValueForm::Number, "0.0001"),
    setting(Group::Training, "schedule", "MINGLE_SCHEDULE", ValueForm::Text, r#""cosine""#),
    setting(Group::Training, "warmup", "MINGLE_WARMUP", ValueForm::Whole, "10"),
    setting(Group::Training, "clip_gradients", "MINGLE_CLIP_GRADIENTS", ValueForm::Number, "1.0"),
    setting(Group::Training, "seed", "MINGLE_SEED", ValueForm::Whole, "0"),
    setting(Group::Training, "device", "MINGLE_DEVICE", ValueForm::Text, r#""cpu""#),
    setting(Group::Training, "threads", "MINGLE_THREADS", ValueForm::Whole, "2"),
    setting(Group::Training, "priority", "MINGLE_PRIORITY", ValueForm::Text, r#""low""#),
    setting(Group::Training, "evaluate_every", "MINGLE_EVALUATE_EVERY", ValueForm::Whole, "10"),
    setting(Group::Training, "evaluate_samples", "MINGLE_EVALUATE_SAMPLES", ValueForm::Whole, "1000"),
    setting(Group::Exchange, "wait", "MINGLE_WAIT", ValueForm::Text, r#""bounded:4""#),
    setting(Group::Exchange, "codec", "MINGLE_CODEC", ValueForm::Text, r#""int8""#),
    setting(Group::Exchange, "momentum_across_rounds", "MINGLE_MOMENTUM_ACROSS_ROUNDS", ValueForm::Text, r#""auto""#),
    setting(Group::Exchange, "overlap", "MINGLE_OVERLAP", ValueForm::Text, r#""on""#),
    setting(Group::Exchange, "join_timeout", "MINGLE_JOIN_TIMEOUT", ValueForm::Text, r#""60s""#),
    setting(Group::Exchange, "deadline", "MINGLE_DEADLINE", ValueForm::Text, r#""2s""#),
    setting(Group::Exchange, "time_box", "MINGLE_TIME_BOX", ValueForm::Text, r#""500ms""#),
    setting(Group::Exchange, "training_deadline", "MINGLE_TRAINING_DEADLINE", ValueForm::Text, r#""60s""#),
    setting(Group::Exchange, "shutdown_timeout", "MINGLE_SHUTDOWN_TIMEOUT", ValueForm::Text, r#""10s""#),
    setting(Group::Exchange, "robust", "MINGLE_ROBUST", ValueForm::Text, r#""clip""#),
    setting(Group::Exchange, "max_norm", "MINGLE_MAX_NORM", ValueForm::Number, "10000.0"),
    setting(Group::Privacy, "dp_clip", "MINGLE_DP_CLIP", ValueForm::Number, "1.0"),
    setting(Group::Privacy, "dp_noise", "MINGLE_DP_NOISE", ValueForm::Number, "4.0"),
    setting(Group::Privacy, "dp_epsilon_max", "MINGLE_DP_EPSILON_MAX", ValueForm::Number, "8.0"),
    setting(Group::Privacy, "dp_delta", "MINGLE_DP_DELTA", ValueForm::Number, "0.00001"),
    setting(Group::Privacy, "dp_colluders", "MINGLE_DP_COLLUDERS", ValueForm::Whole, "1"),
    setting(Group::Privacy, "plain_sums", "MINGLE_PLAIN_SUMS", ValueForm::Text, r#""off""#),
    setting(Group::Privacy, "least_members", "MINGLE_LEAST_MEMBERS", ValueForm::Whole, "3"),
    setting(Group::Results, "durability", "MINGLE_DURABILITY", ValueForm::Text, r#""on""#),
    setting(Group::Results, "keep_best", "MINGLE_KEEP_BEST", ValueForm::Text, r#""accuracy""#),
    setting(Group::Results, "compare_alone", "MINGLE_COMPARE_ALONE", ValueForm::Text, r#""on""#),
    setting(Group::Results, "tensorboard", "MINGLE_TENSORBOARD", ValueForm::Text, r#""runs/site-a""#),
    setting(Group::Results, "timeline", "MINGLE_TIMELINE", ValueForm::Text, r#""off""#),
];

/// Options of `run` that apply to one start only.
pub(super) const OF_ONE_START: &[&str] = &["fresh", "continues", "begin_with", "stop_with_stdin"];
/// The heading of these options.
pub(super) const ONE_START: &str = "This start";

/// The setting with this key.
pub(super) fn find(key: &str) -> Option<Setting> {
    SETTINGS.iter().find(|setting| setting.key == key).copied()
}

/// The arguments of `run` as parsed by clap.
pub(super) fn run_arguments(matches: &ArgMatches) -> Result<RunArgs, clap::Error> {
    RunArgs::from_arg_matches(matches.subcommand_matches("run").unwrap_or(matches))
}
