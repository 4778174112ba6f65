//! Cells of a table: numbers, truth values, missing values, and blank rows at the end.

use csv::StringRecord;
use icu_normalizer::ComposingNormalizerBorrowed;
use mingle_plaintext::{number, truth};

/// The line of a record, from 1.
pub(crate) fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

/// Puts the cells of a record into one form of Unicode (NFC): an é of one character and one of two, as macOS writes it in
/// names of files, look the same and are the same here.
pub(crate) fn compose(record: &mut StringRecord) {
    let form = ComposingNormalizerBorrowed::new_nfc();
    if record.as_slice().is_ascii() || form.is_normalized(record.as_slice()) {
        return;
    }
    let mut composed: StringRecord = record.iter().map(|cell| form.normalize(cell)).collect();
    composed.set_position(record.position().cloned());
    *record = composed;
}

/// The feature that a cell holds: a finite number, or 1 and 0 for true and false.
pub(crate) fn feature(cell: &str) -> Option<f64> {
    number(cell).or_else(|| truth(cell).map(f64::from))
}

/// Returns `true` if cells are whole numbers that count up by one: from 0 or 1, or three of them from anywhere.
/// Programs number columns without names so; columns named by years look the same.
pub(crate) fn count_up<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let Some(numbers) = cells.map(whole).collect::<Option<Vec<u64>>>() else { return false };
    let is_known = numbers.len() >= 3 || (numbers.len() == 2 && numbers[0] <= 1);
    is_known && numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]))
}

/// Returns `true` if cells are distinct whole numbers.
pub(crate) fn are_different_whole_numbers<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let Some(mut numbers) = cells.map(whole).collect::<Option<Vec<u64>>>() else { return false };
    numbers.sort_unstable();
    numbers.windows(2).all(|pair| pair[0] != pair[1])
}

/// Returns `true` if cells rise in equal steps, as the names of columns of spectra and series do: `400.0,400.5,401.0,401.5`.
/// Three cells do only in steps of one.
pub(crate) fn are_evenly_spaced<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    const TOLERANCE: f64 = 1e-6;
    let Some(numbers) = cells.map(number).collect::<Option<Vec<f64>>>() else { return false };
    let [first, second, _, ..] = numbers[..] else { return false };
    let step = second - first;
    let is_known = numbers.len() > 3 || step == 1.0;
    step > 0.0 && is_known && numbers.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() <= TOLERANCE * step)
}

/// Returns `true` if cells may be names of columns that are numbers: different whole numbers, however they are written,
/// or three or more that rise.
pub(crate) fn may_be_names<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let Some(numbers) = cells.map(number).collect::<Option<Vec<f64>>>() else { return false };
    let rise = numbers.len() >= 3 && numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let mut sorted = numbers;
    sorted.sort_by(f64::total_cmp);
    let are_whole = sorted.iter().all(|number| number.fract() == 0.0);
    rise || (are_whole && sorted.windows(2).all(|pair| pair[0] < pair[1]))
}

/// A whole number in plain notation: without sign, point and leading zeros.
fn whole(cell: &str) -> Option<u64> {
    cell.parse::<u64>().ok().filter(|number| number.to_string() == cell)
}

/// Blank rows, as spreadsheets leave them at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlankRows {
    /// The line of the first blank row.
    pub(crate) line: u64,
    pub(crate) count: usize,
}

impl BlankRows {
    /// Counts `record` and returns `true` if all of its cells are empty; else returns `false`.
    pub(crate) fn count(found: &mut Option<Self>, record: &StringRecord, line: u64) -> bool {
        let is_blank = record.iter().all(str::is_empty);
        if is_blank {
            found.get_or_insert(Self { line, count: 0 }).count += 1;
        }
        is_blank
    }

    /// The error message for a blank row that another row follows.
    pub(crate) fn in_the_middle() -> String {
        "all of its cells are empty, and there are rows behind it: remove the line, or fill it in".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_columns_are_told_from_samples() {
        let count = |line: &str| count_up(line.split(','));
        for line in ["0,1", "1,2", "0,1,2,3", "1,2,3", "2019,2020,2021"] {
            assert!(count(line), "{line}");
        }
        for line in ["0", "5,6", "1,0", "0,1,1", "0,2", "0.0,1.0", "01,02", "1,2,x", "18446744073709551615,0"] {
            assert!(!count(line), "{line}");
        }
        let spaced = |line: &str| are_evenly_spaced(line.split(','));
        for line in ["400.0,400.5,401.0,401.5", "-1,0,1", "0.1,0.2,0.3,0.4", "10,20,30,40", "0.0,1.0,2.0"] {
            assert!(spaced(line), "{line}");
        }
        for line in ["0,0,0,0", "4,3,2,1", "2,4,6", "0.1,0.2,0.4,0.5", "1,2", "1,2,x,4"] {
            assert!(!spaced(line), "{line}");
        }
        let names = |line: &str| may_be_names(line.split(','));
        for line in ["0.0,1.0", "-1,0", "02,01", "400.5,401,407.25", "7"] {
            assert!(names(line), "{line}");
        }
        for line in ["1.5,2", "1,1", "0.5", "3.5,1.2,9", "1,x"] {
            assert!(!names(line), "{line}");
        }
        assert!(are_different_whole_numbers("2021,2019".split(',')) && !are_different_whole_numbers("1,1".split(',')));
    }
}
