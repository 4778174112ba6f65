//! Errors of reading a table.

use mingle_plaintext::{is_missing, way_out};
use thiserror::Error;

/// The most characters of a text that an error repeats.
const SHOWN_CHARS: usize = 40;
/// The most names of columns that an error lists.
const SHOWN_NAMES: usize = 20;

/// Errors of reading a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TableError {
    /// The text cannot be read, or is no table.
    #[error("{0}")]
    Csv(String),
    /// A name is not in the first line.
    #[error("there is no column `{name}`; the first line has {}", listed(.names))]
    NoColumn { name: String, names: Vec<String> },
    /// Two columns have the same name, or the target is among the explanatory columns.
    #[error("the column `{}` is there twice", cut(.name))]
    Twice { name: String },
    /// A cell is not a number.
    #[error("line {line}, column `{}`: `{}` is not a number up to 1e100 in magnitude{}", cut(.column), cut(.text), way_out(.text))]
    NotANumber { line: u64, column: String, text: String },
    /// A column that is used has no name.
    #[error(
        "the first line has no name for column {column}: pandas writes its index so (index=False leaves it out), and a \
         separator at the end of every line makes such a column"
    )]
    NoName { column: usize },
    /// All cells of a row are empty, and there are rows behind it.
    #[error("line {line}: all of its cells are empty, and there are rows behind it: remove the line, or fill it in")]
    Blank { line: u64 },
    /// The text is not UTF-8.
    #[error("line {line}: it is no text in UTF-8: save the table as UTF-8 (Excel: \"CSV UTF-8\")")]
    NotUtf8 { line: u64 },
    /// A cell of the target is neither label.
    #[error(
        "line {line}, column `{}`: `{}` is neither `{}` nor `{}`{}", cut(.column), cut(.text), cut(&.labels[0]),
        cut(&.labels[1]), no_label(.text)
    )]
    NotALabel {
        /// The line, from 1.
        line: u64,
        /// The target column.
        column: String,
        /// The text of the cell.
        text: String,
        /// The label that becomes -1, and the one that becomes 1.
        labels: Box<[String; 2]>,
    },
    /// There is no row, or no column.
    #[error("there is {what} below the names of the columns")]
    Empty { what: &'static str },
    /// A table is too large.
    #[error("{what} are too many; {most} are the most")]
    TooMuch { what: String, most: usize },
}

/// Advice for a cell that is no label.
fn no_label(cell: &str) -> &'static str {
    if is_missing(cell) { ": the label is missing; leave the row out, or write down its label" } else { "" }
}

fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() { shown + "..." } else { shown }
}

pub(super) fn listed(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(SHOWN_NAMES).map(|name| cut(name)).collect();
    if names.len() > SHOWN_NAMES {
        shown.push(format!("... ({} in all)", names.len()));
    }
    shown.join(", ")
}
