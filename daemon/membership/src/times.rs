//! Points in time, in seconds since 1970, as signed messages contain them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999, printed for later times too.
const LATEST: u64 = 253_402_300_799;

/// The present time. A clock set before 1970 gives 0, which accepts everything as valid for a while, but nothing for
/// ever.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time in RFC 3339, such as 2027-03-01T00:00:00Z.
pub fn date(unix_s: u64) -> impl std::fmt::Display {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix_s.min(LATEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_date() {
        assert_eq!(date(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(date(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
    }
}
