//! Tables of comma separated values: one sample per line, numbers and one label.
//!
//! A first line without a single number outside the label column is a header. Labels may be words
//! or numbers; classes are numbered in the order of the numbers, or else of the alphabet. Features
//! are shifted and scaled to mean 0 and variance 1 over the training samples of this file: columns
//! in grams and in metres then weigh the same.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};

use super::{DataError, SampleShape, Samples};

/// The largest table accepted, in numbers: 1 GiB of them.
const CELLS_MAX: usize = 1 << 28;

/// A table and its label column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvSource {
    /// The file.
    pub path: PathBuf,
    /// Which column is the label.
    pub label: LabelColumn,
}

/// Which column of a table is the label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelColumn {
    /// The last one.
    #[default]
    Last,
    /// The one with this name in the header.
    Named(String),
    /// The one at this place, counted from 1.
    Numbered(NonZeroUsize),
}

impl fmt::Display for LabelColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("at the end"),
            Self::Named(name) => write!(f, "named {name:?}"),
            Self::Numbered(number) => write!(f, "number {number}"),
        }
    }
}

/// A table in memory, before it is split and scaled.
pub(super) struct Table {
    columns: usize,
    features: Vec<f32>,
    labels: Vec<u16>,
    pub(super) class_names: Vec<String>,
}

impl Table {
    /// Reads the whole file.
    pub(super) fn read(source: &CsvSource) -> Result<Self, DataError> {
        let path = &source.path;
        let file = File::open(path).map_err(|error| read_error(path, error))?;
        let mut reader = ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(file);
        let mut record = StringRecord::new();
        let mut rows: Option<Rows<'_>> = None;
        while read_record(&mut reader, &mut record, path)? {
            let rows = match &mut rows {
                Some(rows) => rows,
                None => {
                    let (first, is_header) = Rows::starting_with(source, &record)?;
                    let rows = rows.insert(first);
                    if is_header {
                        continue;
                    }
                    rows
                }
            };
            rows.push(&record)?;
        }
        match rows {
            Some(rows) => rows.finish(),
            None => Err(DataError::TooFew { path: path.clone(), samples: 0, classes: 0 }),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Scales by the samples at `train` and cuts the table into those and the ones at `test`.
    pub(super) fn split(
        mut self,
        classes: usize,
        train: &[usize],
        test: &[usize],
    ) -> Result<(Samples, Samples), DataError> {
        for column in 0..self.columns {
            self.standardize(column, train);
        }
        let shape = SampleShape::Flat { features: self.columns };
        let all = Samples::new(shape, classes, self.features, self.labels)?;
        Ok((all.select(train), all.select(test)))
    }

    /// Subtracts the mean of a column over `train` and divides by its standard deviation; a column
    /// that never changes becomes zero.
    fn standardize(&mut self, column: usize, train: &[usize]) {
        let cell = |row: usize| f64::from(self.features[row * self.columns + column]);
        let count = train.len() as f64;
        let mean = train.iter().map(|&row| cell(row)).sum::<f64>() / count;
        let variance = train.iter().map(|&row| (cell(row) - mean).powi(2)).sum::<f64>() / count;
        let scale = if variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
        for value in self.features.iter_mut().skip(column).step_by(self.columns) {
            *value = ((f64::from(*value) - mean) * scale) as f32;
        }
    }
}

/// The lines read so far.
struct Rows<'a> {
    path: &'a Path,
    label: usize,
    width: usize,
    header: Option<StringRecord>,
    features: Vec<f32>,
    labels: Vec<String>,
}

impl<'a> Rows<'a> {
    /// Finds the label column in the first line, and whether that line is a header.
    fn starting_with(source: &'a CsvSource, first: &StringRecord) -> Result<(Self, bool), DataError> {
        let missing = |names| DataError::LabelColumn {
            path: source.path.clone(),
            wanted: source.label.to_string(),
            columns: first.len(),
            names,
        };
        let (label, named) = match &source.label {
            LabelColumn::Last => (first.len() - 1, false),
            LabelColumn::Numbered(number) if number.get() <= first.len() => (number.get() - 1, false),
            LabelColumn::Numbered(_) => return Err(missing("numbered from 1".into())),
            LabelColumn::Named(name) => match first.iter().position(|cell| cell == name) {
                Some(label) => (label, true),
                None => return Err(missing(first.iter().collect::<Vec<_>>().join(", "))),
            },
        };
        let has_numbers = first.iter().enumerate().any(|(column, cell)| column != label && number(cell).is_some());
        let is_header = named || !has_numbers;
        let rows = Self {
            path: &source.path,
            label,
            width: first.len(),
            header: is_header.then(|| first.clone()),
            features: Vec::new(),
            labels: Vec::new(),
        };
        if rows.width < 2 {
            return Err(rows.reject(first, "a label and at least one feature are needed".into()));
        }
        Ok((rows, is_header))
    }

    fn push(&mut self, record: &StringRecord) -> Result<(), DataError> {
        if record.len() != self.width {
            let reason = format!("{} cells where the first line has {}", record.len(), self.width);
            return Err(self.reject(record, reason));
        }
        if self.features.len() + self.width > CELLS_MAX {
            let announced = (self.features.len() + self.width) as u64;
            return Err(DataError::TooLarge { path: self.path.into(), announced, max: CELLS_MAX });
        }
        for (column, cell) in record.iter().enumerate() {
            if column == self.label {
                self.labels.push(cell.to_owned());
            } else {
                let value = number(cell).ok_or_else(|| self.bad_cell(record, column, cell))?;
                self.features.push(value);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Table, DataError> {
        let class_names = classes(&self.labels);
        let numbers: BTreeMap<&str, usize> =
            class_names.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let labels = self.labels.iter().map(|label| u16::try_from(numbers[label.as_str()]));
        let Ok(labels) = labels.collect::<Result<Vec<u16>, _>>() else {
            return Err(DataError::TooLarge {
                path: self.path.into(),
                announced: class_names.len() as u64,
                max: usize::from(u16::MAX) + 1,
            });
        };
        Ok(Table { columns: self.width - 1, features: self.features, labels, class_names })
    }

    fn bad_cell(&self, record: &StringRecord, column: usize, cell: &str) -> DataError {
        let name = self.header.as_ref().and_then(|header| header.get(column));
        DataError::Cell {
            path: self.path.into(),
            line: line(record),
            column: match name {
                Some(name) => format!("{} ({name})", column + 1),
                None => (column + 1).to_string(),
            },
            cell: cell.to_owned(),
        }
    }

    fn reject(&self, record: &StringRecord, reason: String) -> DataError {
        DataError::Row { path: self.path.into(), line: line(record), reason }
    }
}

/// The different labels, by value if all are numbers and by the alphabet otherwise.
fn classes(labels: &[String]) -> Vec<String> {
    let mut names = labels.to_vec();
    names.sort_unstable();
    names.dedup();
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    names
}

fn number(cell: &str) -> Option<f32> {
    cell.parse::<f32>().ok().filter(|number| number.is_finite())
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn read_record(reader: &mut csv::Reader<File>, record: &mut StringRecord, path: &Path) -> Result<bool, DataError> {
    reader.read_record(record).map_err(|error| {
        let line = error.position().map_or(0, csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Io(error) => read_error(path, error),
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => DataError::Row {
                path: path.into(),
                line,
                reason: format!("{len} cells where the first line has {expected_len}"),
            },
            csv::ErrorKind::Utf8 { .. } => DataError::Row { path: path.into(), line, reason: "not UTF-8 text".into() },
            other => read_error(path, std::io::Error::new(ErrorKind::InvalidData, format!("{other:?}"))),
        }
    })
}

fn read_error(path: &Path, error: std::io::Error) -> DataError {
    DataError::Read { path: path.into(), error }
}
