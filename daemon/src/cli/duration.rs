//! Times on the command line: a number with its unit, such as `500ms`, `30s`, `5m`, `2h` or `1h 30m`.

use std::time::Duration;

/// Parses a time span.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberExpected(0) | humantime::DurationError::Empty => {
            "write it as 500ms, 30s, 5m or 2h".to_owned()
        }
        error => format!("{error}: write it as 500ms, 30s, 5m or 2h"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn time_spans_have_units_and_what_is_none_is_refused() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("1m 30s", 90_000)] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "s", "7", "-1s", "5 parsecs", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(text).unwrap_err().contains("500ms"), "{text}");
        }
    }
}
