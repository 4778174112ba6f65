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

/// A limit in time and the present time of this machine, for messages: where the two clocks involved differ by days,
/// their readers see which is wrong.
pub(crate) fn beside_now(limit_unix_s: u64) -> String {
    format!("{} {BY_A_CLOCK} {}", date(limit_unix_s), date(now_unix_s()))
}

/// Words between a limit in time and the present time of the machine that judges.
const BY_A_CLOCK: &str = "by a clock that shows";

/// A refusal of another peer, with the present time of this machine if that peer's clock is a part of the reason.
pub(crate) fn with_own_clock(refusal: &str) -> String {
    if refusal.contains(BY_A_CLOCK) {
        format!("{refusal}; the clock of this machine shows {}", date(now_unix_s()))
    } else {
        refusal.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_depends_on_a_clock_names_both() {
        let refused = with_own_clock(&format!("this invitation expired {}", beside_now(1_800_000_000)));
        assert!(refused.contains("2027-01-15T08:00:00Z by a clock that shows 20"), "{refused}");
        assert!(refused.contains("the clock of this machine shows 20"), "{refused}");
        assert_eq!(with_own_clock("the swarm is full"), "the swarm is full");
    }

    #[test]
    fn any_number_is_a_date() {
        assert_eq!(date(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(date(u64::MAX).to_string(), "9999-12-31T23:59:59Z");
    }
}
