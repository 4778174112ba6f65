//! The settings of a peer: options of `mingle run` that may stand in its configuration file.

use clap::{ArgMatches, FromArgMatches};

use crate::cli::RunArgs;

/// An option of `run` that describes the peer. `cli/run.rs` defines its meaning and its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its key in the file, which is the name of its option with `_` for `-`.
    pub(crate) key: &'static str,
    /// The variable of the environment.
    pub(crate) env: &'static str,
    /// Form of its value in TOML.
    pub(crate) form: ValueForm,
    /// An example of its value, as TOML.
    pub(crate) example: &'static str,
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

const fn setting(key: &'static str, env: &'static str, form: ValueForm, example: &'static str) -> Setting {
    Setting { key, env, form, example }
}

/// All settings, in the order of the file.
pub(crate) const SETTINGS: &[Setting] = &[
    setting(
        "listen",
        "MINGLE_LISTEN",
        ValueForm::Texts,
        r#"["/ip4/0.0.0.0/udp/4717/quic-v1", "/ip4/0.0.0.0/tcp/4717"]"#,
    ),
    setting("bootstrap", "MINGLE_BOOTSTRAP", ValueForm::Texts, r#"["/ip4/10.0.1.5/udp/4717/quic-v1"]"#),
    setting("bootstrap_timeout", "MINGLE_BOOTSTRAP_TIMEOUT", ValueForm::Text, r#""30s""#),
    setting("join_timeout", "MINGLE_JOIN_TIMEOUT", ValueForm::Text, r#""60s""#),
    setting("mdns", "MINGLE_MDNS", ValueForm::Text, r#""off""#),
    setting("planning", "MINGLE_PLANNING", ValueForm::Text, r#""operator""#),
    setting("evict_after", "MINGLE_EVICT_AFTER", ValueForm::Text, r#""24h""#),
    setting("local_steps", "MINGLE_LOCAL_STEPS", ValueForm::Whole, "20"),
    setting("plan", "MINGLE_PLAN", ValueForm::Text, r#""plan.json""#),
    setting(
        "without",
        "MINGLE_WITHOUT",
        ValueForm::Texts,
        r#"["12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"]"#,
    ),
    setting("card", "MINGLE_CARD", ValueForm::Text, r#""card.json""#),
    setting("problem", "MINGLE_PROBLEM", ValueForm::Text, r#""problem.toml""#),
    setting("trainer", "MINGLE_TRAINER", ValueForm::Text, r#""python train.py""#),
    setting("trainer_tcp", "MINGLE_TRAINER_TCP", ValueForm::Text, r#""127.0.0.1:7718""#),
    setting("trainer_crashes", "MINGLE_TRAINER_CRASHES", ValueForm::Whole, "10"),
    setting("data", "MINGLE_DATA", ValueForm::Text, r#""csv:train.csv""#),
    setting("task", "MINGLE_TASK", ValueForm::Text, r#""regression""#),
    setting("model", "MINGLE_MODEL", ValueForm::Text, r#""mlp:hidden=128""#),
    setting("split", "MINGLE_SPLIT", ValueForm::Text, r#""dirichlet:0.3""#),
    setting("weight", "MINGLE_WEIGHT", ValueForm::Text, r#""samples:1000""#),
    setting("personal", "MINGLE_PERSONAL", ValueForm::Texts, r#"["fc2.*"]"#),
    setting("rounds", "MINGLE_ROUNDS", ValueForm::Whole, "200"),
    setting("batch_size", "MINGLE_BATCH_SIZE", ValueForm::Whole, "32"),
    setting("augment", "MINGLE_AUGMENT", ValueForm::Text, r#""flip,crop:4""#),
    setting("optimizer", "MINGLE_OPTIMIZER", ValueForm::Text, r#""adamw""#),
    setting("learning_rate", "MINGLE_LEARNING_RATE", ValueForm::Number, "0.1"),
    setting("momentum", "MINGLE_MOMENTUM", ValueForm::Number, "0.9"),
    setting("beta2", "MINGLE_BETA2", ValueForm::Number, "0.99"),
    setting("weight_decay", "MINGLE_WEIGHT_DECAY", ValueForm::Number, "0.0001"),
    setting("schedule", "MINGLE_SCHEDULE", ValueForm::Text, r#""cosine""#),
    setting("warmup", "MINGLE_WARMUP", ValueForm::Whole, "10"),
    setting("clip_gradients", "MINGLE_CLIP_GRADIENTS", ValueForm::Number, "1.0"),
    setting("seed", "MINGLE_SEED", ValueForm::Whole, "0"),
    setting("device", "MINGLE_DEVICE", ValueForm::Text, r#""cpu""#),
    setting("evaluate_every", "MINGLE_EVALUATE_EVERY", ValueForm::Whole, "10"),
    setting("dp_clip", "MINGLE_DP_CLIP", ValueForm::Number, "1.0"),
    setting("dp_noise", "MINGLE_DP_NOISE", ValueForm::Number, "4.0"),
    setting("dp_epsilon_max", "MINGLE_DP_EPSILON_MAX", ValueForm::Number, "8.0"),
    setting("dp_delta", "MINGLE_DP_DELTA", ValueForm::Number, "0.00001"),
    setting("wait", "MINGLE_WAIT", ValueForm::Text, r#""bounded:4""#),
    setting("codec", "MINGLE_CODEC", ValueForm::Text, r#""int8""#),
    setting("deadline", "MINGLE_DEADLINE", ValueForm::Text, r#""2s""#),
    setting("time_box", "MINGLE_TIME_BOX", ValueForm::Text, r#""500ms""#),
    setting("training_deadline", "MINGLE_TRAINING_DEADLINE", ValueForm::Text, r#""60s""#),
    setting("threads", "MINGLE_THREADS", ValueForm::Whole, "2"),
    setting("priority", "MINGLE_PRIORITY", ValueForm::Text, r#""low""#),
    setting("shutdown_timeout", "MINGLE_SHUTDOWN_TIMEOUT", ValueForm::Text, r#""10s""#),
    setting("http", "MINGLE_HTTP", ValueForm::Text, r#""127.0.0.1:7717""#),
    setting("max_norm", "MINGLE_MAX_NORM", ValueForm::Number, "10000.0"),
    setting("robust", "MINGLE_ROBUST", ValueForm::Text, r#""clip""#),
    setting("momentum_across_rounds", "MINGLE_MOMENTUM_ACROSS_ROUNDS", ValueForm::Text, r#""auto""#),
    setting("keep_best", "MINGLE_KEEP_BEST", ValueForm::Text, r#""accuracy""#),
    setting("tensorboard", "MINGLE_TENSORBOARD", ValueForm::Text, r#""runs/site-a""#),
    setting("compare_alone", "MINGLE_COMPARE_ALONE", ValueForm::Text, r#""on""#),
    setting("timeline", "MINGLE_TIMELINE", ValueForm::Text, r#""off""#),
    setting("durability", "MINGLE_DURABILITY", ValueForm::Text, r#""on""#),
];

/// Options of `run` that are not settings: they locate the settings, or apply to one start only.
#[cfg(test)]
pub(super) const NO_SETTINGS: &[&str] =
    &["home", "config", "json", "fresh", "continues", "begin_with", "stop_with_stdin"];

/// The setting with this key.
pub(super) fn find(key: &str) -> Option<Setting> {
    SETTINGS.iter().find(|setting| setting.key == key).copied()
}

/// The arguments of `run` as parsed by clap.
pub(super) fn run_arguments(matches: &ArgMatches) -> Result<RunArgs, clap::Error> {
    RunArgs::from_arg_matches(matches.subcommand_matches("run").unwrap_or(matches))
}
