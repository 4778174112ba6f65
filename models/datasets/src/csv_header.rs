//! Which column of a table is the label, what the others are called, and whether the first line says so.
//!
//! ```text
//!   5.1,3.5,1.4,setosa       numbers beside the label     a sample: the columns are called x1, x2, x3
//!   length,width,depth,kind  words beside the label       a header
//!   length,3.5,depth,kind    both                         refused: it can be either
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use csv::StringRecord;

use crate::DataError;
use crate::csv_table::{CsvSource, LabelColumn, line, number};

/// The columns of a table.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Which column is the label, from 0.
    pub(crate) label: usize,
    /// Columns, the label among them.
    pub(crate) width: usize,
    /// The names of the others, in the order of the file.
    pub(crate) names: Vec<String>,
    /// What the first line calls the label; none where it is a sample.
    pub(crate) header: Option<String>,
}

impl Layout {
    /// What the first line says.
    pub(crate) fn of(source: &CsvSource, first: &StringRecord) -> Result<Self, DataError> {
        let label = find_label(source, first)?;
        let reject = |reason: String| row(&source.path, first, reason);
        if first.len() < 2 {
            return Err(reject("a label and at least one feature are needed".into()));
        }
        let others = || first.iter().enumerate().filter(|(column, _)| *column != label).map(|(_, cell)| cell);
        let numbers = others().filter(|cell| number(cell).is_some()).count();
        let is_header = numbers == 0;
        if is_header {
            let names: Vec<String> = others().map(str::to_owned).collect();
            check_names(&names).map_err(reject)?;
            let header = first.get(label).map(str::to_owned);
            return Ok(Self { label, width: first.len(), names, header });
        }
        if let LabelColumn::Named(name) = &source.label {
            return Err(reject(format!(
                "this line has a cell {name:?}, but numbers beside it: is it a header or a sample? Give the table a first \
                 line with the name of every column, or name the label by its place, as in label={}",
                label + 1
            )));
        }
        if numbers < first.len() - 1 {
            let word = others().find(|cell| number(cell).is_none()).unwrap_or_default();
            return Err(reject(format!(
                "numbers and words such as {word:?} stand side by side: is it a header or a sample? Give every column a name \
                 that is no number, or every cell of the first sample a number"
            )));
        }
        let names = (1..first.len()).map(|column| format!("x{column}")).collect();
        Ok(Self { label, width: first.len(), names, header: None })
    }

    /// What the label column is called; `y` where the table says nothing.
    pub(crate) fn label_name(&self) -> &str {
        self.header.as_deref().filter(|name| !name.is_empty()).unwrap_or("y")
    }

    /// What a person calls the label column: its place, and its name in the header.
    pub(crate) fn describe_label(&self) -> String {
        match &self.header {
            Some(name) => format!("{} ({name})", self.label + 1),
            None => (self.label + 1).to_string(),
        }
    }

    /// What a person calls a column of the file: its place, and its name in the header.
    pub(crate) fn describe(&self, column: usize) -> String {
        let feature = if column > self.label { column - 1 } else { column };
        match (&self.header, self.names.get(feature)) {
            (Some(_), Some(name)) => format!("{} ({name})", column + 1),
            _ => (column + 1).to_string(),
        }
    }
}

fn find_label(source: &CsvSource, first: &StringRecord) -> Result<usize, DataError> {
    let missing = |names| DataError::LabelColumn {
        path: source.path.clone(),
        wanted: source.label.to_string(),
        columns: first.len(),
        names,
    };
    match &source.label {
        LabelColumn::Last => Ok(first.len() - 1),
        LabelColumn::Numbered(number) if number.get() <= first.len() => Ok(number.get() - 1),
        LabelColumn::Numbered(_) => Err(missing("numbered from 1".into())),
        LabelColumn::Named(name) => first
            .iter()
            .position(|cell| cell == name)
            .ok_or_else(|| missing(first.iter().collect::<Vec<_>>().join(", "))),
    }
}

fn check_names(names: &[String]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err("the header has a column without a name".to_owned());
        }
        if name.len() > crate::card::NAME_MAX || name.chars().any(char::is_control) {
            return Err("the header has a name of more than 256 bytes, or with characters that do not print".to_owned());
        }
        if !seen.insert(name) {
            return Err(format!("the header has two columns `{name}`"));
        }
    }
    Ok(())
}

/// A line that cannot be used.
pub(crate) fn row(path: &Path, record: &StringRecord, reason: String) -> DataError {
    DataError::Row { path: path.into(), line: line(record), reason }
}
