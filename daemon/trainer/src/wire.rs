//! The JSON bodies of the trainer protocol, and their bounds.

use std::collections::BTreeMap;

use mingle_peer::training::{Layout, Metrics};
use serde::{Deserialize, Serialize};

use crate::error::Refusal;

/// The version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;
/// Bytes of a request to attach at most; the layout takes most of them.
pub(crate) const MAX_ATTACH_BYTES: usize = 1 << 20;
/// Bytes of metrics at most.
pub(crate) const MAX_METRICS_BYTES: usize = 8 << 10;
/// Characters of the name of a task at most.
const MAX_NAME: usize = 100;
/// Characters kept of the name of a client; the rest is cut off.
const MAX_CLIENT: usize = 100;
/// Characters of the name of a metric at most.
const MAX_METRIC_NAME: usize = 100;

/// A request to attach.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attach {
    pub(crate) protocol: u32,
    pub(crate) name: String,
    layout: Vec<(String, Vec<usize>)>,
    pub(crate) initial: Initial,
    #[serde(default)]
    pub(crate) samples: usize,
    #[serde(default)]
    pub(crate) evaluates: bool,
    #[serde(default)]
    pub(crate) state_bytes: usize,
    /// Set when members that join may have the trainer's state, and it begins with theirs when it joins.
    #[serde(default)]
    pub(crate) shares_state: bool,
    #[serde(default)]
    pub(crate) pid: Option<i32>,
    #[serde(default)]
    pub(crate) client: Option<String>,
}

/// The initial model of a trainer: one that the swarm may begin with, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Initial {
    Offer,
    Take,
}

/// The answer to a request to attach.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Attached {
    pub(crate) protocol: u32,
    pub(crate) session: String,
    pub(crate) dimension: usize,
    pub(crate) needs: Need,
    pub(crate) most_state_bytes: usize,
    pub(crate) peer: String,
    pub(crate) rounds: u64,
}

/// The input that the peer needs from a trainer before its first order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Need {
    /// The vector to begin with.
    Initial,
    Nothing,
}

/// Metrics as a trainer sends them, by name: the mean and the number of samples behind it.
pub(crate) type WeightedMetrics = BTreeMap<String, (f64, f64)>;

/// The body of an answer to an order to evaluate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvaluationBody {
    pub(crate) metrics: WeightedMetrics,
}

impl Attach {
    /// Parses and checks a request. Control characters in the name of the client are removed.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let wrong = |error| Refusal::bad(format!("this is no request to attach: {error}"));
        let mut attach: Self = serde_json::from_slice(bytes).map_err(wrong)?;
        if attach.protocol != PROTOCOL {
            let message = format!("this peer speaks trainer protocol {PROTOCOL}, and the trainer {}", attach.protocol);
            return Err(Refusal::bad(message).hint("use a client and a peer of the same release"));
        }
        let characters = attach.name.chars().count();
        if !(1..=MAX_NAME).contains(&characters) || attach.name.chars().any(char::is_control) {
            return Err(Refusal::bad(format!("the name of what is trained has 1 to {MAX_NAME} printable characters")));
        }
        if let Some(client) = &mut attach.client {
            *client = client.chars().filter(|character| !character.is_control()).take(MAX_CLIENT).collect();
        }
        if attach.layout().dimension() == 0 {
            let message = "the model has no parameter to train";
            return Err(
                Refusal::bad(message).hint("parameters that are frozen, or named in `local`, are not exchanged")
            );
        }
        Ok(attach)
    }

    /// The tensors that are exchanged.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.layout.iter().map(|(name, shape)| (name.as_str(), shape.clone())))
    }

    /// The client and its process, for people.
    pub(crate) fn describe(&self) -> String {
        let client = self.client.as_deref().unwrap_or("a trainer");
        self.pid.map_or_else(|| client.to_owned(), |pid| format!("{client}, process {pid}"))
    }
}

/// Parses and checks metrics.
///
/// # Errors
/// The text is no such object, a name is empty or too long or has control characters, or a value is not a finite number
/// over a positive number of samples.
pub(crate) fn metrics(text: &[u8]) -> Result<WeightedMetrics, Refusal> {
    let wrong = |error| Refusal::bad(format!("these are no metrics, such as {{\"accuracy\": [0.97, 360]}}: {error}"));
    check_metrics(serde_json::from_slice(text).map_err(wrong)?)
}

/// The means by name, and the largest number of samples behind one.
pub(crate) fn means(metrics: &WeightedMetrics) -> (Metrics, usize) {
    let samples = metrics.values().map(|(_, samples)| *samples).fold(0.0, f64::max);
    // No data set has more samples than a float can count exactly.
    (metrics.iter().map(|(name, (value, _))| (name.as_str(), *value)).collect(), samples as usize)
}

/// Refuses metrics that cannot be means over samples, or whose names cannot be printed.
pub(crate) fn check_metrics(metrics: WeightedMetrics) -> Result<WeightedMetrics, Refusal> {
    for (name, (value, samples)) in &metrics {
        if name.is_empty() || name.chars().count() > MAX_METRIC_NAME || name.chars().any(char::is_control) {
            return Err(Refusal::bad(format!("the name of a metric has 1 to {MAX_METRIC_NAME} printable characters")));
        }
        if !value.is_finite() || !samples.is_finite() || *samples <= 0.0 {
            return Err(Refusal::bad(format!(
                "the metric `{name}` is {value} over {samples} samples: it must be a finite number over a positive number of them"
            )));
        }
    }
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLAIN: &str = r#"{"protocol": 1, "name": "x", "layout": [["w", [2, 3]], ["b", []]], "initial": "take"}"#;

    #[test]
    fn a_trainer_says_what_it_trains_and_may_leave_the_rest_out() {
        let attach = Attach::parse(PLAIN.as_bytes()).unwrap();
        assert_eq!((attach.layout().dimension(), attach.initial, attach.samples), (7, Initial::Take, 0));
        assert_eq!(attach.describe(), "a trainer");
        let named = PLAIN.replace("\"initial\"", "\"client\": \"mine\\u001b[2J 1.0\", \"pid\": 7, \"initial\"");
        assert_eq!(Attach::parse(named.as_bytes()).unwrap().describe(), "mine[2J 1.0, process 7");
    }

    #[test]
    fn what_cannot_be_trained_is_refused_and_says_why() {
        let says = |text: &str| Attach::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(says("{").contains("no request to attach"));
        assert!(says(&PLAIN.replace(": 1", ": 2")).contains("protocol 1, and the trainer 2"));
        assert!(says(&PLAIN.replace("\"x\"", "\"\"")).contains("1 to 100"));
        assert!(says(&PLAIN.replace("[2, 3]", "[0, 3]").replace(", [\"b\", []]", "")).contains("no parameter"));
        assert!(says(&PLAIN.replace("take", "give")).contains("unknown variant"));
    }

    #[test]
    fn metrics_are_finite_means_over_samples() {
        assert_eq!(metrics(br#"{"a": [0.5, 10]}"#).unwrap()["a"], (0.5, 10.0));
        for wrong in [r#"{"a": 0.5}"#, r#"{"a": [0.5, 0]}"#, r#"{"a": [1e999, 1]}"#, r#"{"": [1, 1]}"#, "[", "7"] {
            assert!(metrics(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mutated_words_of_a_trainer_are_refused_or_make_sense() {
        let seeds = [
            PLAIN.as_bytes().to_vec(),
            PLAIN.replace("[2, 3]", "[18446744073709551615, 3]").into_bytes(),
            br#"{"metrics": {"accuracy": [0.97, 360], "loss": [1e-3, 360]}}"#.to_vec(),
            br#"{"accuracy": [0.97, 360]}"#.to_vec(),
        ];
        mingle_mutations::for_each_input("trainer_words", &seeds, |input| {
            if let Ok(attach) = Attach::parse(input) {
                assert!(attach.layout().dimension() > 0);
                assert!(attach.describe().chars().all(|character| !character.is_control()));
            }
            if let Ok(body) = serde_json::from_slice::<EvaluationBody>(input) {
                let _ = check_metrics(body.metrics);
            }
            drop(metrics(input));
        });
    }
}
