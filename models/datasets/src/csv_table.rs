//! Tables of comma separated values: one sample per line, numbers and one label.
//!
//! This module reads raw values and the words of the labels. A [`DataCard`] gives them meaning: the table's own, or
//! that of other peers, whose columns and classes are then matched by name.

use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};
use mingle_plaintext::{InputFile, class_name, is_missing, number};

use crate::csv_cells::{BlankRows, compose, feature, line};
use crate::csv_header::{ColumnLayout, FirstLine, row};
use crate::csv_source::CsvSource;
use crate::objective::ObjectiveKind;
use crate::{DataCard, DataError, Samples, TableSums, csv_classes, csv_columns};

/// The most numbers in a table: 2 GiB of them.
const CELLS_MAX: usize = 1 << 28;

/// A table in memory, with the raw values of its file.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    layout: ColumnLayout,
    /// Row after row, without the label.
    raw: Vec<f64>,
    /// The label of each row, an index into `label_names`.
    labels: Vec<u32>,
    /// The distinct labels, in the order in which they first occur.
    label_names: Vec<String>,
    /// The line of the first label that is no number, and the label.
    first_word: Option<(u64, String)>,
    /// Blank rows at the end, which are left out.
    blank: Option<BlankRows>,
}

impl Table {
    /// Reads the whole file.
    pub(crate) fn read(source: &CsvSource) -> Result<Self, DataError> {
        let file = InputFile::open(&source.path).map_err(|error| read_error(&source.path, error))?;
        Self::of(source, file)
    }

    /// Reads a table from `file`; the path of `source` names it in errors.
    pub(crate) fn of(source: &CsvSource, file: impl Read + Send) -> Result<Self, DataError> {
        let path = &source.path;
        let mut reader = reader(file, path)?;
        let mut record = StringRecord::new();
        if !read_record(&mut reader, &mut record, path)? {
            return Err(DataError::TooFew { path: path.clone(), samples: 0, classes: 0 });
        }
        let (layout, sample, unclear) = match FirstLine::of(source, &record)? {
            FirstLine::Names(layout) => (layout, None, None),
            FirstLine::Sample(layout) => (layout, Some(record.clone()), None),
            FirstLine::Unclear(layout) => (layout, None, Some(record.clone())),
        };
        let mut rows = TableLines::new(path, layout);
        if let Some(sample) = sample {
            rows.push(&sample)?;
        }
        while read_record(&mut reader, &mut record, path)? {
            rows.push(&record)?;
        }
        if let Some(first) = unclear {
            rows.settle(source, &first)?;
        }
        rows.finish()
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The number of distinct labels.
    pub(crate) fn label_count(&self) -> usize {
        self.label_names.len()
    }

    /// The file of the table.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the first line names the columns; else their names are generated.
    pub(crate) fn has_header(&self) -> bool {
        self.layout.header.is_some()
    }

    /// Remarks for the user: the origin of names and label, and the rows left out.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let path = self.path.display();
        let names = match &self.layout.header {
            None => Some(format!(
                "{path} has no first line with names: its columns are called x1 to x{}{}",
                self.columns().len(),
                self.rare_first_label()
            )),
            Some(label) if self.layout.has_numbers_for_names => Some(format!(
                "the first line of {path} is taken for names of columns: no sample has the label `{label}`"
            )),
            Some(_) => None,
        };
        let are_classes = csv_classes::of_site(&self.path, &self.label_names, self.len()).is_ok();
        let label = format!(
            "label: {}; {} samples, {} {}",
            self.layout.label_and_reason(),
            self.len(),
            self.label_count(),
            if are_classes { "classes" } else { "different values" }
        );
        let blank = self.blank.map(|blank| {
            format!("{path}: the rows at the end from line {} on, {}, are empty and left out", blank.line, blank.count)
        });
        let similar = csv_classes::equal_but_for_case(&self.label_names).filter(|_| are_classes).map(|(one, other)| {
            format!(
                "{path}: the classes `{one}` and `{other}` differ in case alone: are they one? Write one of them then"
            )
        });
        names.into_iter().chain([label]).chain(similar).chain(blank).collect()
    }

    /// A remark on a first sample with a word for its label that no other sample has: it may be a header after all.
    fn rare_first_label(&self) -> String {
        let [first, others @ ..] = &self.labels[..] else { return String::new() };
        let word = &self.label_names[*first as usize];
        if others.contains(first) || number(word).is_some() {
            return String::new();
        }
        format!("; the first line is taken for a sample, the only one with the label `{word}`")
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> &[String] {
        &self.layout.names
    }

    /// The table's own card, scaled by the samples at `train`.
    pub(crate) fn card(&self, train: &[usize]) -> Result<DataCard, DataError> {
        let classes = csv_classes::in_order(&self.path, &self.label_names, self.len())?;
        self.card_of(&TableSums::of_classes(self.columns(), &self.raw, train, classes))
    }

    /// The table's own card where its label is a quantity to predict, scaled by the samples at `train`.
    pub(crate) fn regression_card(&self, train: &[usize]) -> Result<DataCard, DataError> {
        let quantities = self.quantities()?;
        let mut ours = train.iter().map(|&row| quantities[row]);
        let first = ours.next();
        if ours.all(|value| Some(value) == first) {
            let column = self.layout.describe_label();
            return Err(DataError::ConstantTarget { path: self.path.clone(), column });
        }
        self.card_of(&self.quantity_sums(train, &quantities))
    }

    fn card_of(&self, sums: &TableSums) -> Result<DataCard, DataError> {
        let card = sums.card().map_err(|reason| DataError::Card { path: self.path.clone(), reason })?;
        Ok(card.without_sites())
    }

    /// The table's contribution to the card of several sites: classes may be missing in it.
    pub(crate) fn sums(&self, objective: ObjectiveKind, train: &[usize]) -> Result<TableSums, DataError> {
        match objective {
            ObjectiveKind::Classification => {
                let classes = csv_classes::of_site(&self.path, &self.label_names, self.len())?;
                Ok(TableSums::of_classes(self.columns(), &self.raw, train, classes))
            }
            ObjectiveKind::Regression => Ok(self.quantity_sums(train, &self.quantities()?)),
        }
    }

    fn quantity_sums(&self, train: &[usize], quantities: &[f64]) -> TableSums {
        TableSums::of_quantity(self.columns(), &self.raw, train, (self.layout.label_name(), quantities))
    }

    /// The labels as numbers, row by row.
    fn quantities(&self) -> Result<Vec<f64>, DataError> {
        if let Some((line, cell)) = &self.first_word {
            return Err(DataError::Target {
                path: self.path.clone(),
                line: *line,
                column: self.layout.describe_label(),
                cell: cell.clone(),
            });
        }
        let values: Vec<f64> = self.label_names.iter().map(|name| number(name).unwrap_or_default()).collect();
        Ok(self.labels.iter().map(|&label| values[label as usize]).collect())
    }

    /// The samples in the columns, classes and scaling of the card.
    pub(crate) fn samples(self, card: &DataCard) -> Result<Samples, DataError> {
        let order = csv_columns::match_to(&self.path, self.columns(), self.has_header(), card)?;
        let features = self.features(card, &order);
        if let Some(target) = card.target() {
            let targets = self.quantities()?.into_iter().map(|raw| target.standardised(raw)).collect();
            return Samples::of_regression(card.shape(), features, targets, target.deviation());
        }
        let classes = csv_classes::match_to(&self.path, &self.label_names, card)?;
        let labels = self.labels.iter().map(|&label| classes[label as usize]).collect();
        Samples::new(card.shape(), card.classes().len(), features, labels)
    }

    /// The features row after row, scaled by the card; `order` has the place in this table of each of its columns.
    fn features(&self, card: &DataCard, order: &[usize]) -> Vec<f32> {
        let width = self.columns().len();
        let scaled = |row: &[f64], column: usize| card.scale(column, row[order[column]]);
        let features = self.raw.chunks_exact(width).flat_map(|row| (0..width).map(move |column| scaled(row, column)));
        features.collect()
    }
}

/// The lines read so far.
struct TableLines {
    table: Table,
    /// The index of each distinct label.
    numbers: BTreeMap<String, u32>,
}

impl TableLines {
    fn new(path: &Path, layout: ColumnLayout) -> Self {
        let table = Table {
            path: path.into(),
            layout,
            raw: Vec::new(),
            labels: Vec::new(),
            label_names: Vec::new(),
            first_word: None,
            blank: None,
        };
        Self { table, numbers: BTreeMap::new() }
    }

    fn push(&mut self, record: &StringRecord) -> Result<(), DataError> {
        let Table { path, layout, raw, blank, .. } = &mut self.table;
        if BlankRows::count(blank, record, line(record)) {
            return Ok(());
        }
        if let Some(BlankRows { line, .. }) = *blank {
            return Err(DataError::Row { path: path.clone(), line, reason: BlankRows::in_the_middle() });
        }
        if record.len() != layout.width {
            let reason = format!("{} cells where the first line has {}", record.len(), layout.width);
            return Err(row(path, record, reason));
        }
        if raw.len() + layout.width > CELLS_MAX {
            let announced = (raw.len() + layout.width) as u64;
            return Err(DataError::TooLarge { path: path.clone(), announced, max: CELLS_MAX });
        }
        for (column, cell) in record.iter().enumerate().filter(|(column, _)| *column != layout.label) {
            raw.push(feature(cell).ok_or_else(|| DataError::Cell {
                path: path.clone(),
                line: line(record),
                column: layout.describe(column),
                cell: cell.to_owned(),
            })?);
        }
        let cell = record.get(layout.label).unwrap_or_default();
        if is_missing(cell) {
            return Err(DataError::MissingLabel {
                path: path.clone(),
                line: line(record),
                column: layout.describe_label(),
                cell: cell.to_owned(),
            });
        }
        if cell.contains('\n') {
            let reason = "the label has a line break in it: is a quote not closed?".to_owned();
            return Err(row(path, record, reason));
        }
        let label = class_name(cell);
        if self.table.first_word.is_none() && number(&label).is_none() {
            self.table.first_word = Some((line(record), label.clone()));
        }
        let label = self.number(label);
        self.table.labels.push(label);
        Ok(())
    }

    /// Takes an unclear first line for a header or for the first sample.
    fn settle(&mut self, source: &CsvSource, first: &StringRecord) -> Result<(), DataError> {
        let layout = std::mem::take(&mut self.table.layout);
        self.table.layout = layout.settle(source, first, &self.table.label_names)?;
        if self.table.layout.header.is_some() {
            return Ok(());
        }
        let blank = self.table.blank.take();
        self.push(first)?;
        let Table { layout, raw, labels, .. } = &mut self.table;
        raw.rotate_right(layout.width - 1);
        labels.rotate_right(1);
        let label = class_name(first.get(layout.label).unwrap_or_default());
        self.table.first_word = Some((line(first), label));
        self.table.blank = blank;
        Ok(())
    }

    fn number(&mut self, label: String) -> u32 {
        let names = &mut self.table.label_names;
        *self.numbers.entry(label).or_insert_with_key(|label| {
            names.push(label.clone());
            // A table has at most `CELLS_MAX` rows, and no more labels than rows.
            names.len() as u32 - 1
        })
    }

    fn finish(self) -> Result<Table, DataError> {
        let Table { path, layout, .. } = &self.table;
        if let Some(label) = layout.header.as_ref().filter(|label| self.numbers.contains_key(label.as_str())) {
            let reason = format!(
                "it has no numbers, as a header, but its label {label:?} is also that of a sample: give the table a first line \
                 with the name of every column"
            );
            return Err(DataError::Row { path: path.clone(), line: 1, reason });
        }
        Ok(self.table)
    }
}

/// Reads records of any length, in the encoding and with the separator of the file.
pub(crate) fn reader<'a>(
    file: impl Read + Send + 'a,
    path: &Path,
) -> Result<csv::Reader<Box<dyn BufRead + Send + 'a>>, DataError> {
    let table = mingle_plaintext::open_table(file).map_err(|error| read_error(path, error))?;
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(table.separator).trim(csv::Trim::All);
    Ok(builder.from_reader(table.text))
}

pub(crate) fn read_record(
    reader: &mut csv::Reader<impl Read>,
    record: &mut StringRecord,
    path: &Path,
) -> Result<bool, DataError> {
    let is_there = reader.read_record(record).map_err(|error| {
        let line = error.position().map_or(0, csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Io(error) => read_error(path, error),
            csv::ErrorKind::Utf8 { .. } => {
                let reason = "not UTF-8 text: save the table as UTF-8 (Excel: \"CSV UTF-8\")".to_owned();
                DataError::Row { path: path.into(), line, reason }
            }
            other => read_error(path, std::io::Error::new(ErrorKind::InvalidData, format!("{other:?}"))),
        }
    })?;
    compose(record);
    Ok(is_there)
}

pub(crate) fn read_error(path: &Path, error: std::io::Error) -> DataError {
    DataError::Read { path: path.into(), error }
}
