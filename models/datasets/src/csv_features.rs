//! Tables of unlabelled samples: the columns of a card, found by their names and read some rows at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use csv::StringRecord;
use mingle_plaintext::InputFile;

use crate::csv_cells::{BlankRows, count_up, feature, line};
use crate::csv_header::{row, two_columns};
use crate::csv_table::{read_error, read_record, reader};
use crate::{DataCard, DataError};

/// A reader of a table row by row; only the returned rows are held in memory.
///
/// ```
/// use mingle_datasets::{CsvFeatures, DataCard};
///
/// let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
/// let card = DataCard::of_table(names(["width", "height"]), names(["no", "yes"]), &[1.0, 0.0], &[2.0, 1.0])?;
/// let path = std::env::temp_dir().join(format!("mingle-features-{}.csv", std::process::id()));
/// std::fs::write(&path, "id,height,width\n7,0.5,3\n")?;
/// let mut table = CsvFeatures::open(&path, card)?;
/// assert_eq!(table.unused(), ["id"]);
/// assert_eq!(table.next_rows(100)?, [1.0, 0.5]);
/// assert!(table.next_rows(100)?.is_empty());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CsvFeatures {
    path: PathBuf,
    reader: csv::Reader<Box<dyn BufRead + Send>>,
    card: DataCard,
    /// The place in the file of each column of the card.
    places: Vec<usize>,
    /// The number of cells in a line.
    width: usize,
    unused: Vec<String>,
    /// The first line, if it is a sample.
    first: Option<StringRecord>,
    /// Blank rows at the end.
    blank: Option<BlankRows>,
}

impl CsvFeatures {
    /// Opens a table that has the columns of `card`, by their names, in any order and among others. A table without a
    /// header is accepted if the card's columns have no names either (`x1`, `x2` and so on); it has them in this order
    /// and no others.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or lacks one of the columns.
    pub fn open(path: &Path, card: DataCard) -> Result<Self, DataError> {
        let file = InputFile::open(path).map_err(|error| read_error(path, error))?;
        Self::of(path, Box::new(file), card)
    }

    /// Opens a table whose text is read from `text`; `path` names it in errors.
    fn of(path: &Path, text: Box<dyn Read + Send>, card: DataCard) -> Result<Self, DataError> {
        let mut reader = reader(text, path)?;
        let mut first = StringRecord::new();
        if !read_record(&mut reader, &mut first, path)? {
            return Err(DataError::Row { path: path.into(), line: 1, reason: "there is nothing in it".to_owned() });
        }
        let width = first.len();
        let mut cells: BTreeMap<&str, usize> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for (place, cell) in first.iter().enumerate() {
            if cells.insert(cell, place).is_some() {
                twice.insert(cell);
            }
        }
        let named: Option<Vec<usize>> = card.columns().iter().map(|name| cells.get(name.as_str()).copied()).collect();
        let (places, unused, first) = match named {
            Some(places) => {
                if let Some(name) = card.columns().iter().find(|name| twice.contains(name.as_str())) {
                    return Err(row(path, &first, two_columns(name)));
                }
                let used: BTreeSet<usize> = places.iter().copied().collect();
                let unused = first.iter().enumerate().filter(|(place, _)| !used.contains(place));
                let unused = unused.map(|(_, name)| name.to_owned()).collect();
                (places, unused, None)
            }
            None if first.iter().all(|cell| feature(cell).is_some()) => {
                check_nameless(&card, width, path)?;
                if count_up(first.iter()) {
                    let reason = "it counts up, as programs number columns without names: is it a header or a sample? Give the table a \
                                  first line with the names of the columns, x1 and so on, in place of it or above it";
                    return Err(row(path, &first, reason.to_owned()));
                }
                ((0..width).collect(), Vec::new(), Some(first))
            }
            None => return Err(missing(&card, &cells, path)),
        };
        Ok(Self { path: path.into(), reader, card, places, width, unused, first, blank: None })
    }

    /// The columns of the file that the card does not have.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// The features of the next rows, `most` at most: `[rows, columns of the card]`. Empty at the end.
    ///
    /// # Errors
    ///
    /// A line has another number of cells than the first, or a cell is no finite number; the error names line and
    /// column.
    pub fn next_rows(&mut self, most: usize) -> Result<Vec<f32>, DataError> {
        let mut features = Vec::new();
        let mut record = StringRecord::new();
        let mut rows = 0;
        while rows < most {
            if let Some(first) = self.first.take() {
                self.push(&first, &mut features)?;
            } else if read_record(&mut self.reader, &mut record, &self.path)? {
                if BlankRows::count(&mut self.blank, &record, line(&record)) {
                    continue;
                }
                if let Some(BlankRows { line, .. }) = self.blank {
                    return Err(DataError::Row { path: self.path.clone(), line, reason: BlankRows::in_the_middle() });
                }
                self.push(&record, &mut features)?;
            } else {
                break;
            }
            rows += 1;
        }
        Ok(features)
    }

    fn push(&self, record: &StringRecord, features: &mut Vec<f32>) -> Result<(), DataError> {
        if record.len() != self.width {
            let reason = format!("{} cells where the first line has {}", record.len(), self.width);
            return Err(row(&self.path, record, reason));
        }
        for (column, &place) in self.places.iter().enumerate() {
            let cell = record.get(place).unwrap_or_default();
            let scaled = feature(cell).map(|raw| self.card.scale(column, raw)).filter(|scaled| scaled.is_finite());
            features.push(scaled.ok_or_else(|| DataError::Cell {
                path: self.path.clone(),
                line: line(record),
                column: format!("{} ({})", place + 1, self.card.columns()[column]),
                cell: cell.to_owned(),
            })?);
        }
        Ok(())
    }
}

/// Refuses a table without a header, unless the card's columns have no names either and are as many.
fn check_nameless(card: &DataCard, width: usize, path: &Path) -> Result<(), DataError> {
    let wanted = card.columns().len();
    let is_nameless = card.columns().iter().enumerate().all(|(place, name)| *name == format!("x{}", place + 1));
    let difference = match is_nameless {
        true if width == wanted => return Ok(()),
        true => format!("it has {width} columns, and the task {wanted}"),
        false => format!("the first column of the task is `{}`", card.columns()[0]),
    };
    Err(DataError::ForeignColumns { path: path.into(), difference, has_header: false })
}

fn missing(card: &DataCard, cells: &BTreeMap<&str, usize>, path: &Path) -> DataError {
    let place = card.columns().iter().position(|name| !cells.contains_key(name.as_str())).unwrap_or_default();
    let difference = format!("column {} of the task is `{}`, which it has not", place + 1, card.columns()[place]);
    DataError::ForeignColumns { path: path.into(), difference, has_header: true }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Cursor, Write};

    use mingle_mutations::for_each_input;

    use super::*;

    fn card(columns: &[&str]) -> DataCard {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let zeros = vec![0.0; columns.len()];
        let ones = vec![1.0; columns.len()];
        DataCard::of_table(columns, vec!["a".to_owned(), "b".to_owned()], &zeros, &ones).unwrap()
    }

    fn open(text: &str, columns: &[&str]) -> Result<CsvFeatures, DataError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        CsvFeatures::open(file.path(), card(columns))
    }

    #[test]
    fn rows_come_in_the_order_of_the_card_some_at_a_time() {
        let mut table = open("kind,b,a\nx,2,1\ny,4,3\nz,6,5\n", &["a", "b"]).unwrap();
        assert_eq!(table.unused(), ["kind"]);
        assert_eq!(table.next_rows(2).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(table.next_rows(2).unwrap(), [5.0, 6.0]);
        assert!(table.next_rows(2).unwrap().is_empty());
        let mut nameless = open("2,1\n3,4\n", &["x1", "x2"]).unwrap();
        assert_eq!(nameless.next_rows(9).unwrap(), [2.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let fails = |text: &str, columns: &[&str]| open(text, columns).err().unwrap().to_string();
        assert!(fails("", &["a"]).contains("nothing in it"));
        assert!(fails("a,c\n1,2\n", &["a", "b"]).contains("column 2 of the task is `b`, which it has not"));
        assert!(fails("1,2\n", &["a", "b"]).contains("the first column of the task is `a`"));
        assert!(fails("1,2,3\n", &["x1", "x2"]).contains("it has 3 columns, and the task 2"));
        let row = |text: &str| open(text, &["a", "b"]).unwrap().next_rows(9).unwrap_err().to_string();
        assert!(row("a,b\n1,2\n1,x\n").contains("line 3, column 2 (b): \"x\" is not a finite number"));
        assert!(row("a,b\n1,1e300\n").contains("line 2, column 2 (b): \"1e300\""));
        assert!(row("a,b\n1,2\n1\n").contains("line 3"));
        assert!(row("a,b\n1,2\n,\n1,2\n").contains("line 3: all of its cells are empty"));
        assert!(fails("a,b,a\n1,2,9\n", &["a", "b"]).contains("line 1: the header has two columns `a`"));
        assert!(fails("1,2\n3,4\n", &["x1", "x2"]).contains("line 1: it counts up"));
    }

    #[test]
    fn tables_of_other_programs_and_rows_of_nothing_at_the_end_are_read() {
        let mut table = open("sep=;\r\nb;a;note\r\n2;True;x\r\n4;FALSE;y\r\n;;\r\n;;\r\n", &["a", "b"]).unwrap();
        assert_eq!(table.next_rows(9).unwrap(), [1.0, 2.0, 0.0, 4.0]);
        assert!(table.next_rows(9).unwrap().is_empty());
        // A column that is not used may occur twice.
        assert_eq!(open("a,b,c,c\n1,2,3,4\n", &["a", "b"]).unwrap().next_rows(9).unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn mutated_tables_without_labels_are_refused_or_read_in_the_order_of_the_card() {
        let (named, nameless) = (card(&["a", "b"]), card(&["x1", "x2"]));
        let read = |bytes: &[u8], card: &DataCard| {
            let mut table = CsvFeatures::of(Path::new("t.csv"), Box::new(Cursor::new(bytes.to_vec())), card.clone())?;
            let (first, rest) = (table.next_rows(1)?, table.next_rows(100)?);
            Ok::<_, DataError>([first, rest].concat())
        };
        let seeds = [&b"kind,b,a\nx,2,1\n\"y\",4e3,-3\n"[..], b"2,1\n.5,4\n", b"\xef\xbb\xbfb,a\r\n7,8\r\n"]
            .map(<[u8]>::to_vec);
        assert_eq!(read(&seeds[0], &named).unwrap(), [1.0, 2.0, -3.0, 4000.0]);
        assert_eq!((read(&seeds[1], &nameless).unwrap().len(), read(&seeds[2], &named).unwrap()), (4, vec![8.0, 7.0]));
        for_each_input("csv_features", &seeds, |input| {
            for card in [&named, &nameless] {
                if let Ok(features) = read(input, card) {
                    assert!(features.len() % 2 == 0 && features.iter().all(|value| value.is_finite()));
                }
            }
        });
    }
}
