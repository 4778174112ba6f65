//! Cells of a table: numbers, truth values, what stands for nothing, and rows of nothing at the end.

use csv::StringRecord;
use mingle_plaintext::{number, truth};

/// The feature that a cell holds: a finite number, or 1 and 0 for true and false.
pub(crate) fn feature(cell: &str) -> Option<f64> {
    number(cell).or_else(|| truth(cell).map(f64::from))
}

/// True for a cell that is empty, or one of the words that pandas, R, Excel, SAS and the UCI repository have for a missing value.
pub(crate) fn is_missing(cell: &str) -> bool {
    const WORDS: [&str; 13] =
        ["NA", "N/A", "<NA>", "#N/A", "NULL", "Null", "null", "None", "NaT", "n/a", "na", "?", "."];
    cell.is_empty() || WORDS.contains(&cell) || cell.parse::<f64>().is_ok_and(f64::is_nan)
}

/// Advice for a cell that is no number where there should be one: ` (...)`.
pub(crate) fn way_out(cell: &str) -> &'static str {
    if cell.is_empty() {
        return " (the cell is empty: fill it in, or leave the row or the column out)";
    }
    if is_missing(cell) {
        return " (the value is missing: fill it in, or leave the row or the column out)";
    }
    if cell.contains(',') && number(&cell.replace(',', ".")).is_some() {
        return " (write the decimals behind a point, as in 1.5)";
    }
    if cell.parse::<f64>().is_ok() {
        return "";
    }
    " (all columns beside the label hold numbers: write words as numbers, or leave the column out)"
}

/// Whether cells are whole numbers that count up by one: from 0 or 1, or three of them from anywhere. So programs number columns that have
/// no names, and years stand side by side.
pub(crate) fn count_up<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let Some(numbers) = cells.map(whole).collect::<Option<Vec<u64>>>() else { return false };
    let is_known = numbers.len() >= 3 || (numbers.len() == 2 && numbers[0] <= 1);
    is_known && numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]))
}

/// Whether cells are whole numbers of which no two are equal.
pub(crate) fn are_different_whole_numbers<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let Some(mut numbers) = cells.map(whole).collect::<Option<Vec<u64>>>() else { return false };
    numbers.sort_unstable();
    numbers.windows(2).all(|pair| pair[0] != pair[1])
}

/// A whole number as people write it: without sign, point and leading zeros.
fn whole(cell: &str) -> Option<u64> {
    cell.parse::<u64>().ok().filter(|number| number.to_string() == cell)
}

/// Rows without anything in them, as spreadsheets leave them at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlankRows {
    /// The line of the first.
    pub(crate) line: u64,
    pub(crate) count: usize,
}

impl BlankRows {
    /// Counts `record` if it is one of them; false if it is not.
    pub(crate) fn count(found: &mut Option<Self>, record: &StringRecord, line: u64) -> bool {
        let is_blank = record.iter().all(str::is_empty);
        if is_blank {
            found.get_or_insert(Self { line, count: 0 }).count += 1;
        }
        is_blank
    }

    /// What is wrong where a row with something in it follows.
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
        assert!(are_different_whole_numbers("2021,2019".split(',')) && !are_different_whole_numbers("1,1".split(',')));
    }
}
