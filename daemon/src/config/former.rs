//! Former names of settings, and problems given as tasks: advice with the new name and its form, or on the present way.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A renamed setting.
struct Former {
    /// Its former key, with the unit of its numbers if it had one.
    key: &'static str,
    /// Its present key.
    now: &'static str,
    /// The unit of its former numbers, which is now written behind them.
    unit: &'static str,
}

const fn former(key: &'static str, now: &'static str, unit: &'static str) -> Former {
    Former { key, now, unit }
}

const FORMER: &[Former] = &[
    former("bootstrap_timeout_s", "bootstrap_timeout", "s"),
    former("gather_s", "join_timeout", "s"),
    former("forget_after_h", "evict_after", "h"),
    former("deadline_ms", "deadline", "ms"),
    former("time_box_ms", "time_box", "ms"),
    former("training_deadline_s", "training_deadline", "s"),
    former("drain_ms", "shutdown_timeout", "ms"),
    former("largest_norm", "max_norm", ""),
    former("survive", "fault_tolerance", ""),
    former("timeout_s", "timeout", "s"),
];

impl Former {
    fn find(key: &str) -> Option<&'static Self> {
        FORMER.iter().find(|former| former.key == key)
    }

    /// The advice, with both names in the form of `write`.
    fn advice(&self, write: impl Fn(&str) -> String) -> String {
        let (key, now) = (write(self.key), write(self.now));
        match self.unit {
            "" => format!("{key} is called {now} now"),
            unit => format!("{key} is called {now} now, and takes a time with its unit, such as 10{unit}"),
        }
    }
}

/// Advice on a key of a configuration file that was renamed.
pub(super) fn of_key(key: &str) -> Option<String> {
    Former::find(key).map(|former| former.advice(|key| format!("`{key}`")))
}

/// Advice on an option unknown to clap, if it was renamed.
pub(crate) fn of_option(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let key = option.strip_prefix("--")?.split('=').next()?.replace('-', "_");
    Former::find(&key).map(|former| former.advice(|key| format!("--{}", key.replace('_', "-"))))
}

/// Advice on a `--task` for which no model is trained, if it is a kind of problem.
pub(crate) fn of_task(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(option)), Some(ContextValue::String(task))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return None;
    };
    if !option.starts_with("--task ") {
        return None;
    }
    let kind = match task.as_str() {
        "nodes" | "node" | "graph" | "node-classification" => "node-classification",
        "recommend" | "recommender" | "recommendation" => "recommendation",
        _ => return None,
    };
    Some(format!(
        "--task {task}: this is a problem, which a file with kind = \"{kind}\" describes: `mingle run --problem FILE` is one peer of those \
         who learn it, `mingle solve --problem FILE --plan FILE` is all of them in one process, and `mingle demo --problem {kind}` shows it"
    ))
}

/// Advice on a variable of the environment that is set under a former name; it would have no effect.
pub(crate) fn of_variable(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let variable = |key: &str| format!("MINGLE_{}", key.to_uppercase());
    FORMER.iter().find(|former| is_set(&variable(former.key))).map(|former| former.advice(variable))
}

/// Renames a remembered option to its present name.
pub(super) fn renamed((key, values): (String, Vec<String>)) -> (String, Vec<String>) {
    match Former::find(&key) {
        None => (key, values),
        Some(Former { now, unit, .. }) => {
            ((*now).to_owned(), values.into_iter().map(|value| format!("{value}{unit}")).collect())
        }
    }
}

/// Returns `true` if the process has a non-empty variable of this name.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value: OsString| !value.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{SETTINGS, command_line};

    #[test]
    fn former_options_are_answered_with_the_name_that_they_have_now() {
        let error = command_line().try_get_matches_from(["mingle", "run", "--gather-s=5"]).unwrap_err();
        let advice = of_option(&error).unwrap();
        assert_eq!(advice, "--gather-s is called --join-timeout now, and takes a time with its unit, such as 10s");
        let error = command_line().try_get_matches_from(["mingle", "run", "--largest-norm", "5"]).unwrap_err();
        assert_eq!(of_option(&error).unwrap(), "--largest-norm is called --max-norm now");
        let error = command_line().try_get_matches_from(["mingle", "run", "--no-such-thing"]).unwrap_err();
        assert_eq!(of_option(&error), None);
    }

    #[test]
    fn former_names_are_not_names_of_settings_and_the_new_ones_are() {
        for Former { key, now, .. } in FORMER {
            assert!(SETTINGS.iter().all(|setting| setting.key != *key), "{key}");
            let is_of_plans = ["fault_tolerance", "timeout"].contains(now);
            assert!(is_of_plans || SETTINGS.iter().any(|setting| setting.key == *now), "{now}");
        }
    }

    #[test]
    fn variables_and_remembered_options_are_found_too() {
        let advice = of_variable(|variable| variable == "MINGLE_DRAIN_MS").unwrap();
        assert!(advice.starts_with("MINGLE_DRAIN_MS is called MINGLE_SHUTDOWN_TIMEOUT now"), "{advice}");
        assert_eq!(of_variable(|_| false), None);
        let option = renamed(("time_box_ms".to_owned(), vec!["250".to_owned()]));
        assert_eq!(option, ("time_box".to_owned(), vec!["250ms".to_owned()]));
    }
}
