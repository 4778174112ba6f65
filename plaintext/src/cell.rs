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

/// Returns `true` if a cell is empty, or has a word for a missing value of pandas, R, Excel, SAS or the UCI repository.
#[must_use]
pub fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 13] =
        ["NA", "N/A", "<NA>", "#N/A", "NULL", "Null", "null", "None", "NaT", "n/a", "na", "?", "."];
    cell.is_empty() || WORDS.contains(&cell) || cell.parse::<f64>().is_ok_and(f64::is_nan)
}

/// Advice for a cell that is no number where one is required: ` (...)`; empty for one that is out of range.
#[must_use]
pub fn way_out(cell: &str) -> &'static str {
    if cell.is_empty() {
        return " (the cell is empty: fill it in, or leave the row or the column out)";
    }
    if is_missing(cell) {
        return " (the value is missing: fill it in, or leave the row or the column out)";
    }
    if has_thousands(cell) {
        return " (write thousands without commas, and decimals behind a point, as in 1234.5)";
    }
    if cell.contains(',') && number(&cell.replace(',', ".")).is_some() {
        return " (write the decimals behind a point, as in 1.5)";
    }
    if cell.strip_suffix('%').is_some_and(|cell| number(cell.trim_end()).is_some()) {
        return " (leave the percent sign out in the whole column)";
    }
    if cell.parse::<f64>().is_ok() {
        return "";
    }
    " (all columns beside the label hold numbers: write words as numbers, or leave the column out)"
}

/// Returns `true` for a whole number with a comma before each three digits, and perhaps decimals behind a point. One
/// comma alone may as well precede decimals, unless there is a point too.
fn has_thousands(cell: &str) -> bool {
    let (whole, decimals) = cell.split_once('.').map_or((cell, None), |(whole, decimals)| (whole, Some(decimals)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.trim_start_matches(['-', '+']).split(',');
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    let is_whole = (1..=3).contains(&first.len()) && is_digits(first);
    let are_thousands = rest.iter().all(|group| group.len() == 3 && is_digits(group));
    is_whole && are_thousands && (rest.len() > 1 || (rest.len() == 1 && decimals.is_some_and(is_digits)))
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

    #[test]
    fn a_cell_that_is_no_number_comes_with_the_way_out() {
        for (cell, advice) in [
            ("", "empty"),
            ("NA", "missing"),
            ("nan", "missing"),
            ("1,5", "decimals behind a point, as in 1.5"),
            ("1,500", "decimals behind a point, as in 1.5"),
            ("1,234.5", "thousands without commas"),
            ("-1,234,567", "thousands without commas"),
            ("5 %", "percent sign"),
            ("red", "write words as numbers"),
            ("1,2,3", "write words as numbers"),
        ] {
            assert!(way_out(cell).contains(advice), "{cell}: {}", way_out(cell));
        }
        assert_eq!(way_out("inf"), "");
    }
}
