//! Numbers for people: ledger units as weights, bytes as megabytes.

/// A push-sum weight from ledger units of 2^-40.
#[allow(clippy::cast_precision_loss)] // for display; equality is tested on the integers
pub(crate) fn weight(units: u64) -> f64 {
    units as f64 / (1_u64 << 40) as f64
}

/// Bytes as megabytes of 10^6 bytes.
#[allow(clippy::cast_precision_loss)] // for display
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A weight from ledger units of 2^-40: all its digits where it is whole, nine decimals where it is not.
#[allow(clippy::cast_precision_loss)] // for display
pub(crate) fn exact_weight(units: u128) -> String {
    let one = 1 << 40;
    if units.is_multiple_of(one) { (units / one).to_string() } else { format!("{:.9}", units as f64 / one as f64) }
}

/// A weight that may be negative.
pub(crate) fn signed_weight(units: i128) -> String {
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
}
