//! Tables of numbers with named columns, of which many nodes hold parts.

mod error;

use std::collections::BTreeSet;
use std::io::Read;

use mingle_plaintext::{class_name, truth};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::{LeastSquares, Standardization};
pub use error::TableError;
use error::listed;

/// The most columns that are used of a table.
pub const MAX_COLUMNS: usize = 50_000;
/// The largest absolute value in a table: squares and sums stay far from the largest f64.
const LARGEST: f64 = 1e100;
/// The most numbers in a table.
const MAX_VALUES: usize = 1 << 27;

/// One node's rows: the explanatory columns, and the target.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionTable {
    columns: Vec<String>,
    /// Row by row.
    values: Vec<f64>,
    target: Vec<f64>,
}

/// The columns of a table that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The target column.
    pub target: String,
    /// The explanatory columns; all others if this is empty.
    pub columns: Vec<String>,
}

impl RegressionTable {
    /// Reads a table with the names of the columns in its first line. [`mingle_plaintext::open_table`] handles
    /// compressed texts, encodings and separators.
    ///
    /// # Errors
    ///
    /// [`TableError`] names the line and the column.
    pub fn read(text: impl Read + Send, selection: &Selection) -> Result<Self, TableError> {
        Self::read_with(text, selection, number)
    }

    /// Reads a table as [`read`](Self::read) does, but with a target of two labels: the first becomes -1, the second 1.
    /// Labels are compared by value: [`mingle_plaintext::class_name`].
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and a label that is neither.
    pub fn read_labelled(
        text: impl Read + Send,
        selection: &Selection,
        labels: &[String; 2],
    ) -> Result<Self, TableError> {
        let [negative, positive] = labels.each_ref().map(|label| class_name(label));
        Self::read_with(text, selection, |line, column, text| match class_name(text) {
            name if name == negative => Ok(-1.0),
            name if name == positive => Ok(1.0),
            _ => Err(TableError::NotALabel {
                line,
                column: column.to_owned(),
                text: text.to_owned(),
                labels: Box::new(labels.clone()),
            }),
        })
    }

    fn read_with(
        text: impl Read + Send,
        selection: &Selection,
        read_target: impl Fn(u64, &str, &str) -> Result<f64, TableError>,
    ) -> Result<Self, TableError> {
        let opened = mingle_plaintext::open_table(text).map_err(|error| TableError::Csv(error.to_string()))?;
        let mut reader =
            csv::ReaderBuilder::new().delimiter(opened.separator).trim(csv::Trim::All).from_reader(opened.text);
        let csv = |error: csv::Error| match error.kind() {
            csv::ErrorKind::Utf8 { pos, .. } => {
                TableError::NotUtf8 { line: pos.as_ref().map_or(0, csv::Position::line) }
            }
            _ => TableError::Csv(error.to_string()),
        };
        let names: Vec<String> = reader.headers().map_err(csv)?.iter().map(str::to_owned).collect();
        let (target, used) = selection.find(&names)?;
        let mut table = Self {
            columns: used.iter().map(|&at| names[at].clone()).collect(),
            values: Vec::new(),
            target: Vec::new(),
        };
        let mut blank = None;
        for record in reader.records() {
            let record = record.map_err(csv)?;
            let line = record.position().map_or(0, csv::Position::line);
            // Spreadsheets leave rows of empty cells at the end.
            if record.iter().all(str::is_empty) {
                blank.get_or_insert(line);
                continue;
            }
            if let Some(line) = blank {
                return Err(TableError::Blank { line });
            }
            let cell = |at: usize| record.get(at).unwrap_or_default();
            table.target.push(read_target(line, &names[target], cell(target))?);
            for &at in &used {
                table.values.push(number(line, &names[at], cell(at))?);
            }
            if table.values.len() > MAX_VALUES {
                return Err(TableError::TooMuch { what: format!("{} numbers", table.values.len()), most: MAX_VALUES });
            }
        }
        if table.target.is_empty() {
            return Err(TableError::Empty { what: "no row" });
        }
        Ok(table)
    }

    /// The names of the explanatory columns, in their order.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The names of the columns for a message: the first of them, where they are many.
    #[must_use]
    pub fn listed_columns(&self) -> String {
        listed(&self.columns)
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.target.len()
    }

    /// Each row, `[columns]`, and its target.
    pub fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.values.chunks_exact(self.columns.len()).zip(self.target.iter().copied())
    }

    /// The table as CSV; the target is the last column, under this name.
    #[must_use]
    pub fn to_csv(&self, target: &str) -> String {
        let mut text = format!("{},{target}\n", self.columns.join(","));
        for (row, explained) in self.rows() {
            row.iter().for_each(|value| text += &format!("{value},"));
            text += &format!("{explained}\n");
        }
        text
    }

    /// The same rows, shuffled by the seed.
    #[must_use]
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..self.row_count()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let rows: Vec<(&[f64], f64)> = self.rows().collect();
        let values = order.iter().flat_map(|&row| rows[row].0).copied().collect();
        let target = order.iter().map(|&row| rows[row].1).collect();
        Self { columns: self.columns.clone(), values, target }
    }

    /// Every `nodes`-th row, beginning with row `node`: one node's part of a table.
    #[must_use]
    pub fn dealt(&self, node: usize, nodes: usize) -> Self {
        let mut values = Vec::new();
        let mut target = Vec::new();
        for (row, explained) in self.rows().skip(node).step_by(nodes) {
            values.extend_from_slice(row);
            target.push(explained);
        }
        Self { columns: self.columns.clone(), values, target }
    }

    /// Appends the rows of another table with the same columns.
    ///
    /// # Errors
    ///
    /// The other table's columns, where they differ.
    pub fn append(&mut self, other: &Self) -> Result<(), Vec<String>> {
        if other.columns != self.columns {
            return Err(other.columns.clone());
        }
        self.values.extend_from_slice(&other.values);
        self.target.extend_from_slice(&other.target);
        Ok(())
    }

    /// The number of rows, the sum of each column, and that of the target: `[1 + columns + 1]`.
    #[must_use]
    pub fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns.len() + 2];
        for (row, explained) in self.rows() {
            sums[0] += 1.0;
            sums[1..].iter_mut().zip(row.iter().chain([&explained])).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    /// The sum of the squared distances of each column from a mean: `[columns]`.
    #[must_use]
    pub fn squares(&self, scaling: &Standardization) -> Vec<f64> {
        let mut squares = vec![0.0; self.columns.len()];
        for (row, _) in self.rows() {
            for ((square, value), mean) in squares.iter_mut().zip(row).zip(scaling.columns().0) {
                *square += (value - mean) * (value - mean);
            }
        }
        squares
    }

    /// The least and the largest number of each explanatory column, `[columns]` each.
    #[must_use]
    pub fn extrema(&self) -> (Vec<f64>, Vec<f64>) {
        let columns = self.columns.len();
        let mut least = vec![f64::INFINITY; columns];
        let mut largest = vec![f64::NEG_INFINITY; columns];
        for (row, _) in self.rows() {
            for ((least, largest), value) in least.iter_mut().zip(&mut largest).zip(row) {
                *least = least.min(*value);
                *largest = largest.max(*value);
            }
        }
        (least, largest)
    }

    /// `factor / 2 || A x - b ||^2`, where `A` and `b` are the scaled columns.
    #[must_use]
    pub fn least_squares(&self, scaling: &Standardization, factor: f64) -> LeastSquares {
        let root = factor.sqrt();
        let matrix = self.rows().flat_map(|(row, _)| scaled(row, scaling, root)).collect();
        LeastSquares::new(self.columns.len(), matrix, self.scaled_target(scaling, root))
    }

    /// The term of [`least_squares`](Self::least_squares) with a constant as the last variable, and `ridge / 2` of the squares
    /// of all others.
    #[must_use]
    pub fn least_squares_with_constant(&self, scaling: &Standardization, factor: f64, ridge: f64) -> LeastSquares {
        let root = factor.sqrt();
        let columns = self.columns.len();
        let mut matrix: Vec<f64> = self.rows().flat_map(|(row, _)| scaled(row, scaling, root).chain([root])).collect();
        let mut target = self.scaled_target(scaling, root);
        for column in (0..columns).filter(|_| ridge > 0.0) {
            matrix.extend((0..=columns).map(|at| if at == column { ridge.sqrt() } else { 0.0 }));
            target.push(0.0);
        }
        LeastSquares::new(columns + 1, matrix, target)
    }

    fn scaled_target(&self, scaling: &Standardization, factor: f64) -> Vec<f64> {
        self.target.iter().map(|explained| factor * (explained - scaling.target())).collect()
    }
}

/// The numbers of a row, scaled, times `factor`.
fn scaled<'a>(row: &'a [f64], scaling: &'a Standardization, factor: f64) -> impl Iterator<Item = f64> + 'a {
    let (means, deviations) = scaling.columns();
    let scale = move |(value, (mean, deviation)): (&f64, (&f64, &f64))| factor * ((value - mean) / deviation);
    row.iter().zip(means.iter().zip(deviations)).map(scale)
}

fn number(line: u64, column: &str, text: &str) -> Result<f64, TableError> {
    let number = text.parse().ok().or_else(|| truth(text).map(f64::from));
    number.filter(|number: &f64| number.abs() <= LARGEST).ok_or_else(|| TableError::NotANumber {
        line,
        column: column.to_owned(),
        text: text.to_owned(),
    })
}

impl Selection {
    /// The index of the target, and those of the explanatory columns.
    fn find(&self, names: &[String]) -> Result<(usize, Vec<usize>), TableError> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(TableError::Twice { name: twice.clone() });
        }
        let place = |name: &String| {
            let at = names.iter().position(|other| other == name);
            at.ok_or_else(|| TableError::NoColumn { name: name.clone(), names: names.to_vec() })
        };
        let target = place(&self.target)?;
        let used: Vec<usize> = if self.columns.is_empty() {
            (0..names.len()).filter(|&at| at != target).collect()
        } else {
            self.columns.iter().map(place).collect::<Result<_, _>>()?
        };
        if let Some(unnamed) = used.iter().find(|&&at| names[at].is_empty()) {
            return Err(TableError::NoName { column: unnamed + 1 });
        }
        let mut seen = BTreeSet::from([target]);
        if let Some(&twice) = used.iter().find(|&&at| !seen.insert(at)) {
            return Err(TableError::Twice { name: names[twice].clone() });
        }
        match used.len() {
            0 => Err(TableError::Empty { what: "no column" }),
            count if count > MAX_COLUMNS => {
                Err(TableError::TooMuch { what: format!("{count} columns"), most: MAX_COLUMNS })
            }
            _ => Ok((target, used)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Smooth;

    const CSV: &str = "age, dose, answer\n50, 1.5, 7\n60, 2.5, 9\n70, 0.5, 5\n";

    fn selection(target: &str, columns: &[&str]) -> Selection {
        Selection { target: target.to_owned(), columns: columns.iter().map(|&name| name.to_owned()).collect() }
    }

    fn read(text: &str, target: &str, columns: &[&str]) -> Result<RegressionTable, TableError> {
        RegressionTable::read(text.as_bytes(), &selection(target, columns))
    }

    #[test]
    fn columns_are_found_by_name_in_the_order_asked_for() {
        let all = read(CSV, "answer", &[]).unwrap();
        assert_eq!((all.columns(), all.row_count()), (&["age".to_owned(), "dose".to_owned()][..], 3));
        assert_eq!(all.sums(), [3.0, 180.0, 4.5, 21.0]);
        let one = read(CSV, "age", &["answer"]).unwrap();
        assert_eq!(one.sums(), [3.0, 21.0, 180.0]);
    }

    #[test]
    fn a_table_that_is_dealt_out_is_all_there() {
        let all = read(CSV, "answer", &[]).unwrap();
        let mut parts = all.dealt(0, 2);
        parts.append(&all.dealt(1, 2)).unwrap();
        assert_eq!((parts.row_count(), parts.sums()), (3, all.sums()));
        assert_eq!(all.dealt(5, 9).row_count(), 0);
        assert_eq!(read(&all.to_csv("answer"), "answer", &[]).unwrap(), all);
        assert_eq!(parts.append(&read(CSV, "age", &["answer"]).unwrap()), Err(vec!["answer".to_owned()]));
    }

    #[test]
    fn a_seed_draws_the_order_of_the_rows_and_keeps_each_row_together() {
        let text: String = (0..40).map(|row| format!("{row},{},{}\n", 2 * row, 3 * row)).collect();
        let table = read(&format!("a,b,y\n{text}"), "y", &[]).unwrap();
        let shuffled = table.shuffled(1);
        assert!(shuffled.rows().all(|(row, target)| row[1] == 2.0 * row[0] && target == 3.0 * row[0]));
        assert_eq!((&shuffled, shuffled.sums()), (&table.shuffled(1), table.sums()));
        assert!(shuffled != table && shuffled != table.shuffled(2));
    }

    #[test]
    fn tables_are_read_as_programs_write_them() {
        let wanted = read(CSV, "answer", &[]).unwrap();
        let utf_16: Vec<u8> = std::iter::once(0xfeff).chain(CSV.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let semicolons = CSV.replace(',', ";");
        for bytes in [
            format!("\u{feff}{CSV}").into_bytes(),
            utf_16,
            semicolons.clone().into_bytes(),
            format!("sep=;\n{semicolons}").into_bytes(),
        ] {
            assert_eq!(RegressionTable::read(&bytes[..], &selection("answer", &[])).as_ref(), Ok(&wanted), "{bytes:?}");
        }
        let blank = format!("{}\n,,\n,,\n", CSV.trim_end());
        assert_eq!(RegressionTable::read(blank.as_bytes(), &selection("answer", &[])).as_ref(), Ok(&wanted));
        let workbook = RegressionTable::read(&b"PK\x03\x04 and so on"[..], &selection("answer", &[])).unwrap_err();
        assert!(matches!(workbook, TableError::Csv(_)), "{workbook}");
    }

    #[test]
    fn columns_without_names_missing_values_and_other_encodings_are_refused_with_the_way_out() {
        let refused = |bytes: &[u8]| RegressionTable::read(bytes, &selection("y", &[])).unwrap_err().to_string();
        for (bytes, message) in [
            (&b",a,y\n0,5,1\n1,6,2\n"[..], "no name for column 1: pandas writes its index so"),
            (b"a,y,\n5,1,\n6,2,\n", "no name for column 3"),
            (b"a,y\n5,1\n,2\n", "line 3, column `a`: `` is not a number up to 1e100 in magnitude (the cell is empty"),
            (
                b"a;y\n5;1\n6,5;2\n",
                "line 3, column `a`: `6,5` is not a number up to 1e100 in magnitude (write the decimals",
            ),
            (b"a,y\n5,1\n,\n6,2\n", "line 3: all of its cells are empty"),
            (b"a,y\n5,1\n\xe9,2\n", "line 3: it is no text in UTF-8"),
        ] {
            assert!(refused(bytes).contains(message), "{}", refused(bytes));
        }
        let labels = ["x", "y"].map(str::to_owned);
        let missing = RegressionTable::read_labelled(&b"a,k\n1,x\n2,NA\n"[..], &selection("k", &[]), &labels);
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains("line 3, column `k`: `NA` is neither `x` nor `y`: the label is missing")
        );
        let truths = RegressionTable::read(&b"a,y\nTrue,1\nFALSE,2\n"[..], &selection("y", &[])).unwrap();
        assert_eq!(truths.rows().map(|(row, _)| row[0]).collect::<Vec<_>>(), [1.0, 0.0]);
        let chosen = RegressionTable::read(&b",a,y\n0,5,1\n"[..], &selection("y", &["a"])).unwrap();
        assert_eq!(chosen.columns(), ["a"]);
    }

    #[test]
    fn labels_of_one_value_are_one_label() {
        let labelled = |labels: [&str; 2], text: &str| {
            let table =
                RegressionTable::read_labelled(text.as_bytes(), &selection("y", &[]), &labels.map(str::to_owned));
            table.map(|table| table.rows().map(|(_, target)| target).collect::<Vec<f64>>())
        };
        let text = "a,y\n1,0\n2,1\n3,1.0\n4,0e0\n5,01\n";
        assert_eq!(labelled(["0", "1"], text).unwrap(), [-1.0, 1.0, 1.0, -1.0, 1.0]);
        assert_eq!(labelled(["1.0", "0.0"], text).unwrap(), [1.0, -1.0, -1.0, 1.0, -1.0]);
        assert_eq!(labelled(["no", "TRUE"], "a,y\n1,no\n2,True\n").unwrap(), [-1.0, 1.0]);
        assert!(matches!(labelled(["0", "1"], "a,y\n1,2\n"), Err(TableError::NotALabel { line: 2, .. })));
    }

    #[test]
    fn scaled_columns_have_mean_0_and_deviation_1_and_solutions_go_back() {
        let table = read(CSV, "answer", &[]).unwrap();
        let centered = Standardization::centering(&table.sums());
        let scaling = centered.clone().with_deviations(&table.squares(&centered), 3.0);
        // answer = 4 + 2 dose, exactly, without age.
        let function = table.least_squares(&scaling, 1.0);
        let x = [0.0, 2.0 * scaling.columns().1[1]];
        assert!(function.value(&x) < 1e-20);
        let (coefficients, intercept) = scaling.back(&x);
        assert!((coefficients[1] - 2.0).abs() < 1e-12 && (intercept - 4.0).abs() < 1e-12);
        let squares: Vec<f64> = table.squares(&centered);
        assert!((squares[0] / scaling.columns().1[0].powi(2) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_column_that_does_not_vary_does_no_harm() {
        let table = read("a,b,y\n0.1,1,1\n0.1,2,3\n0.1,3,2\n", "y", &[]).unwrap();
        let centered = Standardization::centering(&table.sums());
        let scaling = centered.clone().with_deviations(&table.squares(&centered), 3.0);
        assert_eq!(scaling.columns().1[0], 1.0);
        assert!(table.least_squares(&scaling, 1.0).smoothness() < 4.0);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let refused = |text: &str, target: &str, columns: &[&str]| read(text, target, columns).unwrap_err().to_string();
        assert_eq!(refused(CSV, "weight", &[]), "there is no column `weight`; the first line has age, dose, answer");
        assert_eq!(refused(CSV, "answer", &["age", "age"]), "the column `age` is there twice");
        assert_eq!(refused(CSV, "answer", &["answer"]), "the column `answer` is there twice");
        assert_eq!(refused("a,a\n1,2\n", "a", &[]), "the column `a` is there twice");
        assert_eq!(
            refused("a,y\n1,2\n?,3\n", "y", &[]),
            "line 3, column `a`: `?` is not a number up to 1e100 in magnitude (the value is missing: fill it in, or leave the \
             row or the column out)"
        );
        assert_eq!(
            refused("a,y\n1,inf\n", "y", &[]),
            "line 2, column `y`: `inf` is not a number up to 1e100 in magnitude"
        );
        assert_eq!(refused("a,y\n", "y", &[]), "there is no row below the names of the columns");
        assert_eq!(refused("y\n1\n", "y", &[]), "there is no column below the names of the columns");
        assert!(refused("a,y\n1,2,3\n", "y", &[]).contains("line"));
        // A text that is no table is not repeated whole.
        assert!(refused(&"\0".repeat(100_000), "y", &[]).len() < 200);
        assert!(refused(&"x,".repeat(50_000), "y", &[]).len() < 400);
    }
    #[test]
    fn mutated_tables_are_refused_or_have_a_number_in_each_cell() {
        let labels = ["no".to_owned(), "yes".to_owned()];
        let selections = [selection("answer", &[]), selection("age", &["answer", "dose"]), selection("ill", &["age"])];
        let seeds =
            [CSV, "\"age\",ill\r\n-5e1,no\r\n.5,yes\r\n", "dose,answer\n1,2\n"].map(|text| text.as_bytes().to_vec());
        assert!(RegressionTable::read(&seeds[0][..], &selections[1]).is_ok());
        assert!(RegressionTable::read_labelled(&seeds[1][..], &selections[2], &labels).is_ok());
        let mut turn = 0;
        mingle_mutations::for_each_input("solver_table", &seeds, |input| {
            turn += 1;
            let selection = &selections[turn % 3];
            let table = match turn % 3 {
                2 => RegressionTable::read_labelled(input, selection, &labels),
                _ => RegressionTable::read(input, selection),
            };
            match table {
                Ok(table) => {
                    assert_eq!(table.rows().count(), table.row_count());
                    assert!(
                        table
                            .rows()
                            .all(|(row, target)| target.is_finite() && row.iter().all(|it| it.abs() <= LARGEST))
                    );
                    assert!(table.sums().iter().all(|sum| sum.is_finite()));
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        });
    }
}
