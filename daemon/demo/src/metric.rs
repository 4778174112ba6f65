//! The metric of a demo: the accuracy of a classification, r2 of a regression. For both larger is better, and 1 the
//! most.

use mingle_models::ObjectiveKind;
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use serde::Serialize;

/// The name of the metric.
pub fn name(objective: ObjectiveKind) -> &'static str {
    match objective {
        ObjectiveKind::Classification => "accuracy",
        ObjectiveKind::Regression => "r2",
    }
}

/// JSON whose keys have the metric's name: `mean_accuracy` or `mean_r2`.
///
/// # Errors
/// It cannot be encoded.
pub fn to_json(value: &impl Serialize, objective: ObjectiveKind) -> Result<String> {
    let text = serde_json::to_string(value).context(ErrorKind::Unexpected, "cannot encode what was measured")?;
    Ok(renamed(&text, objective))
}

/// JSON on several lines, with the keys of `to_json`.
///
/// # Errors
/// It cannot be encoded.
pub fn to_pretty_json(value: &impl Serialize, objective: ObjectiveKind) -> Result<String> {
    let text = serde_json::to_string_pretty(value).context(ErrorKind::Unexpected, "cannot encode what was measured")?;
    Ok(renamed(&text, objective))
}

fn renamed(text: &str, objective: ObjectiveKind) -> String {
    // Within a string a quotation mark has a backslash before it: only keys look like this.
    text.replace("_accuracy\":", &format!("_{}\":", name(objective)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_have_the_name_of_the_metric_and_values_stay() {
        let value = serde_json::json!({ "mean_accuracy": 0.5, "what": "the \"mean_accuracy\": 1" });
        let found: serde_json::Value =
            serde_json::from_str(&to_json(&value, ObjectiveKind::Regression).unwrap()).unwrap();
        assert_eq!(found, serde_json::json!({ "mean_r2": 0.5, "what": value["what"] }));
        assert_eq!(to_json(&value, ObjectiveKind::Classification).unwrap(), value.to_string());
    }
}
