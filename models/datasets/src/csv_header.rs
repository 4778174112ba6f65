//! The header of a table: the label column, the names of the others, and whether the first line is a header or a
//! sample.
//!
//! ```text
//!   5.1,3.5,1.4,setosa       numbers beside the label     a sample: the columns are called x1, x2, x3
//!   length,width,depth,kind  words beside the label       a header
//!   length,3.5,depth,kind    both                         refused: it can be either
//!   0,1,2,kind               whole numbers, and a word    a header if no sample has that label; refused where that is not sure
//!   0.5,1.5,7,kind           rising numbers, and a word   refused if no sample has that label
//!   0,1,2,3                  a line that counts up        refused: it can be either
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use csv::StringRecord;
use mingle_plaintext::{class_name, is_missing, number};

use crate::DataError;
use crate::csv_cells::{are_different_whole_numbers, are_evenly_spaced, count_up, feature, line, may_be_names};
use crate::csv_source::{CsvSource, LabelColumn};

/// Usual names of a label, in lower case.
const LABEL_NAMES: [&str; 6] = ["label", "labels", "target", "targets", "class", "y"];

/// The columns of a table.
#[derive(Debug, Default)]
pub(crate) struct ColumnLayout {
    /// The index of the label column, from 0.
    pub(crate) label: usize,
    /// The number of columns, the label among them.
    pub(crate) width: usize,
    /// The names of the columns other than the label, in the order of the file.
    pub(crate) names: Vec<String>,
    /// The name of the label in the first line; `None` where that is a sample.
    pub(crate) header: Option<String>,
    /// The label column as requested.
    asked: LabelColumn,
    /// `true` if a first line of numbers and a word at the label was taken for a header.
    pub(crate) has_numbers_for_names: bool,
}

/// The kind of the first line.
pub(crate) enum FirstLine {
    /// The names of the columns.
    Names(ColumnLayout),
    /// A sample.
    Sample(ColumnLayout),
    /// Numbers, and a word as the label: a header or a sample, by the labels below.
    Unclear(ColumnLayout),
}

impl FirstLine {
    /// Classifies the first line of a table.
    pub(crate) fn of(source: &CsvSource, first: &StringRecord) -> Result<Self, DataError> {
        let reject = |reason: String| row(&source.path, first, reason);
        let cell = first.get(0).unwrap_or_default();
        if let Some(format) = other_format(cell) {
            return Err(reject(format.to_owned()));
        }
        let label = find_label(source, first)?;
        if first.len() < 2 {
            return Err(reject(format!(
                "a label and at least one feature are needed, and this line has one cell, {:?}: {}",
                cell.chars().take(80).collect::<String>(),
                one_cell(cell)
            )));
        }
        let numbers = beside(first, label).filter(|cell| feature(cell).is_some()).count();
        if numbers == 0 {
            return ColumnLayout::named(source, first, label).map(Self::Names);
        }
        if numbers < first.len() - 1 {
            let word = beside(first, label).find(|cell| feature(cell).is_none()).unwrap_or_default();
            return Err(reject(format!(
                "numbers and words such as {word:?} stand side by side: is it a header or a sample? Give every column a name \
                 that is no number, or every cell of the first sample a number"
            )));
        }
        if count_up(first.iter()) || are_evenly_spaced(first.iter()) {
            return Err(reject(format!(
                "it counts from {} to {}, as programs number columns without names: is it a header or a sample? Give the table a \
                 first line with a name for every column, in place of these numbers or above them",
                first.get(0).unwrap_or_default(),
                first.get(first.len() - 1).unwrap_or_default()
            )));
        }
        let names = (1..first.len()).map(|column| format!("x{column}")).collect();
        let layout = ColumnLayout {
            label,
            width: first.len(),
            names,
            header: None,
            asked: source.label.clone(),
            has_numbers_for_names: false,
        };
        let cell = first.get(label).unwrap_or_default();
        let is_word = feature(cell).is_none() && !is_missing(cell);
        Ok(if is_word { Self::Unclear(layout) } else { Self::Sample(layout) })
    }
}

impl ColumnLayout {
    /// The layout of a table with a header.
    fn named(source: &CsvSource, first: &StringRecord, label: usize) -> Result<Self, DataError> {
        let reject = |reason: String| row(&source.path, first, reason);
        check_names(first, label).map_err(reject)?;
        if source.label == LabelColumn::Last && first.get(label) == Some("") {
            return Err(reject(format!(
                "the last column, {}, has no name: if all lines end with a separator, leave it out; else name the label",
                label + 1
            )));
        }
        if source.label == LabelColumn::Last {
            check_label(first).map_err(reject)?;
        }
        Ok(Self {
            label,
            width: first.len(),
            names: beside(first, label).map(str::to_owned).collect(),
            header: first.get(label).map(str::to_owned),
            asked: source.label.clone(),
            has_numbers_for_names: false,
        })
    }

    /// Takes an unclear first line for a header or a sample, given `labels`, those of all other lines.
    pub(crate) fn settle(self, source: &CsvSource, first: &StringRecord, labels: &[String]) -> Result<Self, DataError> {
        let word = first.get(self.label).unwrap_or_default();
        let is_class = labels.contains(&class_name(word));
        let is_named = matches!(source.label, LabelColumn::Named(_));
        if !is_named && (is_class || labels.is_empty()) {
            return Ok(self);
        }
        let is_over_numbers = labels.iter().all(|label| feature(label).is_some());
        let could_be_names = are_different_whole_numbers(beside(first, self.label));
        let is_sure = is_over_numbers || is_named || count_up(beside(first, self.label));
        if could_be_names && is_sure && !is_class && !labels.is_empty() {
            let named = Self::named(source, first, self.label)?;
            return Ok(Self { has_numbers_for_names: true, ..named });
        }
        if is_named {
            return Err(row(
                &source.path,
                first,
                format!(
                    "this line has a cell {word:?}, but numbers beside it: is it a header or a sample? Give the table a first line \
                     with the name of every column, or name the label by its place, as in label={}",
                    self.label + 1
                ),
            ));
        }
        if is_over_numbers || may_be_names(beside(first, self.label)) || is_usual(word) {
            let reason = format!(
                "no other line has its label {word:?}, and there are numbers beside it: is it a header or a sample? Give the table a \
                 first line with a name that is no number for every column, in place of this line or above it"
            );
            return Err(row(&source.path, first, reason));
        }
        Ok(self)
    }

    /// The name of the label column; `y` where the table has none.
    pub(crate) fn label_name(&self) -> &str {
        self.header.as_deref().filter(|name| !name.is_empty()).unwrap_or("y")
    }

    /// A description of the label column, and the reason that it was chosen.
    pub(crate) fn label_and_reason(&self) -> String {
        let place = self.label + 1;
        let column = match self.header.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => format!("column `{name}`"),
            None => format!("column {place}"),
        };
        match &self.asked {
            LabelColumn::Last => format!("{column}, the last"),
            LabelColumn::Named(name) => format!("{column}, as label={name} says"),
            LabelColumn::Numbered(number) => format!("{column}, as label={number} says"),
        }
    }

    /// The label column in a message: its place, and its name in the header.
    pub(crate) fn describe_label(&self) -> String {
        match &self.header {
            Some(name) => format!("{} ({name})", self.label + 1),
            None => (self.label + 1).to_string(),
        }
    }

    /// A column of the file in a message: its place, and its name in the header.
    pub(crate) fn describe(&self, column: usize) -> String {
        let feature = if column > self.label { column - 1 } else { column };
        match (&self.header, self.names.get(feature)) {
            (Some(_), Some(name)) => format!("{} ({name})", column + 1),
            _ => (column + 1).to_string(),
        }
    }
}

/// The format of a file whose first line begins with this cell, and what to do, where it is that of no table.
fn other_format(cell: &str) -> Option<&'static str> {
    let cell = cell.trim_ascii_start();
    let begins_with = |word: &str| cell.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if cell.starts_with(['{', '[']) {
        return Some(
            "it looks like JSON: save a table as CSV, with the names of the columns in the first line, such as by \
             pandas.read_json(FILE, lines=True).to_csv(NEW, index=False); a text to learn from is --data text:FILE",
        );
    }
    if ["<!doctype", "<html", "<?xml"].into_iter().any(begins_with) {
        return Some("it is a web page or XML, and no table: did a download end on a page for people?");
    }
    if begins_with("version https://git-lfs") {
        return Some("it is a pointer of Git LFS, and not the file: `git lfs pull` fetches that");
    }
    begins_with("@relation").then_some(
        "it looks like ARFF of Weka: save the data as CSV, with the names of the attributes in the first line",
    )
}

/// The likely reason why a first line has one cell.
fn one_cell(cell: &str) -> &'static str {
    let mut words = cell.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let is_sparse = words.any(|word| {
        word.split_once(':').is_some_and(|(place, value)| place.parse::<u64>().is_ok() && number(value).is_some())
    });
    if first.starts_with(['#', '%']) || first.starts_with("//") {
        return "a remark? Leave it out, so that the table begins in the first line";
    }
    if is_sparse {
        return "it looks like LIBSVM: save a table as CSV, with a cell for every feature and the label as the last";
    }
    if words_of(cell) > 1 {
        return "are its cells separated by blanks? Write commas, semicolons, tabs or bars between them";
    }
    "are cells separated by commas, semicolons, tabs or bars?"
}

fn words_of(cell: &str) -> usize {
    cell.split_ascii_whitespace().count()
}

/// The cells of a line other than the label.
fn beside(line: &StringRecord, label: usize) -> impl Iterator<Item = &str> {
    line.iter().enumerate().filter(move |(column, _)| *column != label).map(|(_, cell)| cell)
}

fn find_label(source: &CsvSource, first: &StringRecord) -> Result<usize, DataError> {
    let missing = |names| DataError::LabelColumn {
        path: source.path.clone(),
        wanted: source.label.to_string(),
        columns: first.len(),
        names,
    };
    match &source.label {
        LabelColumn::Last => Ok(first.len().saturating_sub(1)),
        LabelColumn::Numbered(number) if number.get() <= first.len() => Ok(number.get() - 1),
        LabelColumn::Numbered(_) => Err(missing("numbered from 1".into())),
        LabelColumn::Named(name) => first
            .iter()
            .position(|cell| cell == name)
            .ok_or_else(|| missing(first.iter().collect::<Vec<_>>().join(", "))),
    }
}

/// Checks that every column but the label has a name, and that no two have the same.
fn check_names(header: &StringRecord, label: usize) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (column, name) in header.iter().enumerate() {
        if name.is_empty() && column != label {
            let by_pandas = if column == 0 { " (pandas writes its index so; index=False leaves it out)" } else { "" };
            return Err(format!("the header has a column without a name, column {}{by_pandas}", column + 1));
        }
        if name.len() > crate::target::NAME_MAX || name.chars().any(char::is_control) {
            return Err("the header has a name of more than 256 bytes, or with characters that do not print".to_owned());
        }
        if !seen.insert(name) {
            return Err(two_columns(name));
        }
    }
    Ok(())
}

/// The error message for a header in which a name occurs twice.
pub(crate) fn two_columns(name: &str) -> String {
    format!("the header has two columns `{name}`: give each its own name")
}

/// Checks that no other column has a usual name of a label, where the last is taken by default.
fn check_label(header: &StringRecord) -> Result<(), String> {
    let last = header.get(header.len() - 1).unwrap_or_default();
    let are_places = header.iter().any(|name| name.eq_ignore_ascii_case("x"));
    let is_label = |name: &str| is_usual(name) && !(are_places && name.eq_ignore_ascii_case("y"));
    match header.iter().find(|name| is_label(name)) {
        Some(name) if !is_usual(last) => Err(format!(
            "is `{name}` the label, or the last column, `{last}`? Say so behind the name of the file: csv:FILE,label={name} or \
             csv:FILE,label={last}"
        )),
        _ => Ok(()),
    }
}

fn is_usual(name: &str) -> bool {
    LABEL_NAMES.iter().any(|usual| name.eq_ignore_ascii_case(usual))
}

/// A line that cannot be used.
pub(crate) fn row(path: &Path, record: &StringRecord, reason: String) -> DataError {
    DataError::Row { path: path.into(), line: line(record), reason }
}
