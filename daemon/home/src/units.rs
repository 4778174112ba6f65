//! Numbers for people: ledger units as weights, bytes as megabytes.

/// A push-sum weight from ledger units of 2^-40.
#[allow(clippy::cast_precision_loss)] // for display; equality is tested on the integers
pub fn weight(units: u64) -> f64 {
    units as f64 / (1_u64 << 40) as f64
}

/// Bytes as megabytes of 10^6 bytes.
#[allow(clippy::cast_precision_loss)] // for display
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A time span for people: the two largest units.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, not negative, and bounded
pub fn time_span(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.min(1e12).round() as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3_600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3_600..86_400 => format!("{}h{:02}m", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

/// A count; exact below 2^53.
#[allow(clippy::cast_precision_loss)] // for display
pub fn count(number: u64) -> f64 {
    number as f64
}

/// One count over another; both are far below 2^52.
#[allow(clippy::cast_precision_loss)] // exact for such counts
pub fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// A weight from ledger units of 2^-40: all its digits where it is whole, nine decimals where it is not.
#[allow(clippy::cast_precision_loss)] // for display
pub fn exact_weight(units: u128) -> String {
    let one = 1 << 40;
    if units.is_multiple_of(one) { (units / one).to_string() } else { format!("{:.9}", units as f64 / one as f64) }
}

/// A weight that may be negative.
pub fn signed_weight(units: i128) -> String {
    let sign = if units < 0 { "-" } else { "" };
    format!("{sign}{}", exact_weight(units.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_show_when_they_are_whole() {
        assert_eq!(exact_weight(8 << 40), "8");
        assert_eq!(exact_weight((8 << 40) - (1 << 30)), "7.999023438");
        assert_eq!(signed_weight(-(1_i128 << 39)), "-0.500000000");
    }

    #[test]
    fn time_spans_show_their_two_largest_units() {
        let spans = [(0.25, "0.2s"), (42.4, "42s"), (94.0, "1m34s"), (7_325.0, "2h02m"), (200_000.0, "2d07h")];
        for (seconds, text) in spans {
            assert_eq!(time_span(seconds), text);
        }
        assert_eq!(time_span(f64::INFINITY), time_span(1e12));
    }
}
