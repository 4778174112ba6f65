//! The classes of a table: the words in its label column, in an order, or as other peers number them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::csv_cells::{number, truth};
use crate::{DataCard, DataError};

/// With more classes than this, a class needs more than [`SAMPLES_PER_CLASS`] samples on average.
const CLASSES_UNQUESTIONED: usize = 10;
const SAMPLES_PER_CLASS: usize = 2;
/// Labels are 16 bits wide.
pub(crate) const CLASSES_MAX: usize = 1 << 16;

/// From here on, and below the least, numbers with a point or an exponent are written with one.
const WRITTEN_OUT: std::ops::Range<f64> = 1e-5..1e30;

/// The name of the class that a cell stands for: equal numbers and equal truth values have one, however programs write them: `3` for `3.0`
/// and `03`, `100000` for `1e+05`, `true` for `TRUE`. Whole numbers keep all of their digits.
pub(crate) fn name_of(cell: &str) -> String {
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

/// Names of classes in their order: by value if all are numbers and by the alphabet otherwise.
pub(crate) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    names
}

/// The different labels of one site, [sorted]: there may be a single one where other sites have others.
///
/// # Errors
///
/// [`DataError::Continuous`] when they look like quantities or names of samples, not of classes; [`DataError::TooLarge`] for
/// more than can be numbered.
pub(crate) fn of_site(path: &Path, labels: &[String], samples: usize) -> Result<Vec<String>, DataError> {
    let continuous = |reason: String| Err(DataError::Continuous { path: path.into(), classes: labels.len(), reason });
    let names = sorted(labels.to_vec());
    if names.iter().all(|name| number(name).is_some())
        && let Some(fraction) = names.iter().find(|name| number(name).is_some_and(|value| value.fract() != 0.0))
    {
        return continuous(format!("it holds numbers with a fraction, such as {fraction}"));
    }
    if labels.len() > CLASSES_UNQUESTIONED && labels.len() * SAMPLES_PER_CLASS > samples {
        return continuous(format!("{samples} samples have {} different labels", labels.len()));
    }
    if labels.len() > CLASSES_MAX {
        return Err(DataError::TooLarge { path: path.into(), announced: labels.len() as u64, max: CLASSES_MAX });
    }
    Ok(names)
}

/// The different labels, sorted.
///
/// # Errors
///
/// Those of [`of_site`], and [`DataError::TooFew`] for fewer than two.
pub(crate) fn in_order(path: &Path, labels: &[String], samples: usize) -> Result<Vec<String>, DataError> {
    let names = of_site(path, labels, samples)?;
    if names.len() < 2 {
        return Err(DataError::TooFew { path: path.into(), samples, classes: names.len() });
    }
    Ok(names)
}

/// The number that each of the labels has on the card.
///
/// # Errors
///
/// [`DataError::ForeignClass`] for the first that it has not.
pub(crate) fn match_to(path: &Path, labels: &[String], card: &DataCard) -> Result<Vec<u16>, DataError> {
    let exact = card.classes().iter().enumerate().map(|(number, name)| (name.clone(), number));
    // Cards may have names that were written another way.
    let equal = card.classes().iter().enumerate().map(|(number, name)| (name_of(name), number));
    let numbers: BTreeMap<String, usize> = equal.chain(exact).collect();
    let number_of = |label: &String| {
        let number = numbers.get(label).and_then(|number| u16::try_from(*number).ok());
        number.ok_or_else(|| DataError::ForeignClass {
            path: path.into(),
            class: label.clone(),
            known: some_of(card.classes()),
        })
    };
    labels.iter().map(number_of).collect()
}

/// Enough names to recognise a list by.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
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
                assert_eq!(name_of(cell), name, "{cell}");
            }
        }
        // What differs stays so, however long it is.
        for cell in ["12345678901234567890", "12345678901234567891", "yes", "Yes", "1a", "1_0", "1e-300", "-"] {
            assert_eq!(name_of(cell), cell);
        }
    }
}
