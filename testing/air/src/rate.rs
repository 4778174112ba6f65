//! Rates as people write them.

/// The highest rate, in bits per second.
const MAX_RATE: f64 = 1e12;

/// A text that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no rate: write a number with kbit, mbit or gbit, such as 10mbit")]
pub struct ParseRateError {
    text: String,
}

/// Reads a rate such as `10mbit`, `500kbit` or `2.5mbit`, in bits per second.
///
/// # Errors
///
/// A text of another form, or a rate that is not above zero.
pub fn parse_rate(text: &str) -> Result<u64, ParseRateError> {
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
    let of_unit = |&(unit, factor): &(&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some((number * factor).round()).filter(|rate| (1.0..=MAX_RATE).contains(rate))
    };
    // The check above keeps the rate in range.
    let rate = units.iter().find_map(of_unit).map(|rate| rate as u64);
    rate.ok_or_else(|| ParseRateError { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_and_nothing_else() {
        assert_eq!(parse_rate("10mbit"), Ok(10_000_000));
        assert_eq!(parse_rate("2.5mbit"), Ok(2_500_000));
        assert_eq!(parse_rate("500 kbit"), Ok(500_000));
        for wrong in ["", "10", "mbit", "-1mbit", "0mbit", "NaNmbit", "infmbit", "10MB", "1e30gbit"] {
            assert!(parse_rate(wrong).is_err(), "{wrong} was taken");
        }
    }
}
