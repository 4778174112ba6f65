//! Cells of tables, normalised over the spellings of different programs.

/// The magnitudes that are written in decimal notation where the cell has a point or an exponent; others have an
/// exponent.
const WRITTEN_OUT: std::ops::Range<f64> = 1e-5..1e30;

/// A finite number, if the cell holds one.
#[must_use]
pub fn number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// The truth value of `true` or `false` in any case: pandas writes `True`, R and Excel `TRUE`.
#[must_use]
pub fn truth(cell: &str) -> Option<bool> {
    let is = |word: &str| cell.eq_ignore_ascii_case(word);
    (is("true") || is("false")).then(|| is("true"))
}

/// The name of the class that a cell stands for. Equal numbers and equal truth values have one name, whatever their
/// spelling: `3` for `3.0` and `03`, `100000` for `1e+05`, `true` for `TRUE`. Whole numbers keep all of their digits.
///
/// ```
/// use mingle_plaintext::class_name;
/// assert_eq!(["1.0", "TRUE", "ill"].map(class_name), ["1", "true", "ill"]);
/// ```
#[must_use]
pub fn class_name(cell: &str) -> String {
    if let Some(truth) = truth(cell) {
        return truth.to_string();
    }
    let Some(value) = number(cell) else { return cell.to_owned() };
    let (sign, digits) = match cell.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", cell.strip_prefix('+').unwrap_or(cell)),
    };
    match digits.trim_start_matches('0') {
        _ if value == 0.0 => "0".to_owned(),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => format!("{sign}{digits}"),
        _ if WRITTEN_OUT.contains(&value.abs()) => value.to_string(),
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_and_truth_values_are_one_class() {
        for (name, cells) in [
            ("100000", &["100000", "1e+05", "1E5", "100000.0", "0100000", "+100000"][..]),
            ("1", &["1", "01", "1.", "1.00", "1e0"]),
            ("-2", &["-2", "-02", "-2.0", "-2e0"]),
            ("0", &["0", "-0", "0.0", "00", "0e9"]),
            ("0.5", &[".5", "0.50", "5e-1", "+0.5"]),
            ("true", &["TRUE", "True", "true"]),
            ("false", &["FALSE", "False"]),
            ("100000000000000000000", &["1e20", "100000000000000000000"]),
        ] {
            for cell in cells {
                assert_eq!(class_name(cell), name, "{cell}");
            }
        }
        // Different cells stay different, however long.
        for cell in ["12345678901234567890", "12345678901234567891", "yes", "Yes", "1a", "1_0", "1e-300", "-"] {
            assert_eq!(class_name(cell), cell);
        }
    }
}
