//! Points in time, in seconds since 1970, as what is signed has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999; what is later is as good as that.
const LATEST: u64 = 253_402_300_799;

/// A clock that stands before 1970 makes everything valid for a while; it makes nothing valid for ever.
pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time as people read it, such as 2027-03-01T00:00:00Z.
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
