//! Data sources by name, and the held-out part of their samples.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::csv_source::{CsvSource, LabelColumn};
use crate::csv_table::Table;
use crate::objective::ObjectiveKind;
use crate::text::{Text, TextSource};
use crate::{
    CardDifference, DataCard, DataError, DataSet, SampleShape, Samples, TableSums, Tokens, cifar10, digits, idx,
};

/// The samples held out of the 1,797 digits, about a fifth.
const DIGITS_TEST: usize = 360;

/// The least samples of a table, and the inverse of the share held out: one in five.
const SAMPLES_MIN: usize = 5;

/// A data source, as written by the user.
///
/// | text | samples |
/// | --- | --- |
/// | `digits` | the embedded 8x8 handwritten digits |
/// | `idx:DIR` | a directory in the format and with the file names of MNIST, gzipped or not |
/// | `cifar10:DIR` | a directory with the binary version of CIFAR-10, gzipped or not |
/// | `csv:FILE`, `csv:FILE,label=NAME`, `csv:FILE,label=5` | a table; the label is its last column, or the named one, or the one at this place counted from 1 |
/// | `text` | the embedded text; its tokens are characters |
/// | `text:FILE`, `text:FILE,tokens=characters`, `text:FILE,tokens=bytes` | a text, gzipped if its name ends in `.gz` |
///
/// ```
/// use mingle_datasets::DataSource;
///
/// let data = "digits".parse::<DataSource>()?.load(1)?;
/// assert_eq!((data.train.len(), data.test.len()), (1437, 360));
/// # Ok::<(), mingle_datasets::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DataSource {
    /// The embedded digits.
    Digits,
    /// A directory of IDX files.
    Idx(PathBuf),
    /// A directory with CIFAR-10.
    Cifar10(PathBuf),
    /// A table of comma separated values.
    Csv(CsvSource),
    /// A text.
    Text(TextSource),
}

/// The content of a source, before a card gives it meaning.
#[derive(Debug)]
pub struct RawData {
    source: DataSource,
    raw: Raw,
}

// There is one at a time: the size of the small variant does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Raw {
    /// Images whose pixels have a fixed scaling and whose classes are numbers: the training part and, where the
    /// publisher chose one, the test part.
    Images {
        train: Samples,
        test: Option<Samples>,
        card: DataCard,
    },
    Table(Table),
    Text(Text),
}

impl DataSource {
    /// Reads everything into memory, to be used alone: columns, classes and scaling are this source's own.
    ///
    /// The test part is the one published with IDX data (`t10k-*`) and CIFAR-10, and the last tenth of a text. Of the
    /// digits 360 and of a table a fifth are held out, chosen by `seed`.
    ///
    /// # Errors
    ///
    /// A [`DataError`] naming the file and the place in it.
    pub fn load(&self, seed: u64) -> Result<DataSet, DataError> {
        self.load_for(ObjectiveKind::Classification, seed)
    }

    /// Reads everything into memory, to be used alone, for the prediction of classes or a quantity.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load).
    pub fn load_for(&self, objective: ObjectiveKind, seed: u64) -> Result<DataSet, DataError> {
        let raw = self.read()?;
        let card = raw.card_for(objective, seed)?;
        raw.data_set(&card, seed)
    }

    /// Reads everything into memory.
    ///
    /// # Errors
    ///
    /// A [`DataError`] naming the file and the place in it.
    pub fn read(&self) -> Result<RawData, DataError> {
        let raw = match self {
            Self::Digits => {
                let train = digits::load()?;
                Raw::Images { card: image_card(&train, numbered(train.classes()), digits::SCALING), train, test: None }
            }
            Self::Idx(directory) => {
                let (train, test) = idx::load(directory)?;
                let card = image_card(&train, numbered(train.classes()), idx::SCALING);
                Raw::Images { train, test: Some(test), card }
            }
            Self::Cifar10(directory) => {
                let (train, test) = cifar10::load(directory)?;
                let card = image_card(&train, cifar10::CLASSES.map(str::to_owned).to_vec(), cifar10::SCALING);
                Raw::Images { train, test: Some(test), card }
            }
            Self::Csv(source) => Raw::Table(Table::read(source)?),
            Self::Text(source) => Raw::Text(Text::read(source)?),
        };
        Ok(RawData { source: self.clone(), raw })
    }

    /// Returns `true` if all peers that name this source have the same columns, classes and scaling, whatever the files
    /// hold.
    pub fn means_the_same_everywhere(&self) -> bool {
        match self {
            Self::Digits | Self::Cifar10(_) => true,
            Self::Text(source) => source.means_the_same_everywhere(),
            Self::Idx(_) | Self::Csv(_) => false,
        }
    }
}

impl RawData {
    /// Returns `true` if all peers that name this source have the same card.
    pub fn means_the_same_everywhere(&self) -> bool {
        self.source.means_the_same_everywhere()
    }

    /// The shape of one sample.
    pub fn shape(&self) -> SampleShape {
        match &self.raw {
            Raw::Images { card, .. } => card.shape(),
            Raw::Table(table) => SampleShape::Flat { features: table.columns().len() },
            Raw::Text(text) => text.shape(),
        }
    }

    /// The number of training samples that remain when the test part is held out; for a text, of tokens.
    pub fn training_samples(&self) -> usize {
        match &self.raw {
            Raw::Images { train, test: Some(_), .. } => train.len(),
            Raw::Images { train, test: None, .. } => train.len() - DIGITS_TEST,
            Raw::Table(table) => table.len() - table.len() / SAMPLES_MIN,
            Raw::Text(text) => text.training_tokens(),
        }
    }

    /// Remarks for the user on how the data were read.
    pub fn remarks(&self) -> Vec<String> {
        match &self.raw {
            Raw::Table(table) => table.remarks(),
            Raw::Images { .. } | Raw::Text(_) => Vec::new(),
        }
    }

    /// The data's own card. A table is scaled by the mean and the deviation of the training samples that remain when a
    /// fifth is held out by `seed`.
    ///
    /// # Errors
    ///
    /// [`DataError::TooFew`] and [`DataError::Continuous`] when there are no classes to learn; [`DataError::Card`] for
    /// names that are not valid.
    pub fn card(&self, seed: u64) -> Result<DataCard, DataError> {
        match &self.raw {
            Raw::Images { card, .. } => Ok(card.clone()),
            Raw::Table(table) => {
                check_size(table)?;
                let (train, _) = hold_out(table.len(), table.len() / SAMPLES_MIN, seed);
                table.card(&train)
            }
            Raw::Text(text) => text.card(),
        }
    }

    /// The data's own card, for the prediction of classes or a quantity.
    ///
    /// # Errors
    ///
    /// Those of [`card`](Self::card). For a quantity [`DataError::Target`] and [`DataError::ConstantTarget`] where the
    /// label is none, and [`DataError::NoTarget`] for data other than a table.
    pub fn card_for(&self, objective: ObjectiveKind, seed: u64) -> Result<DataCard, DataError> {
        match (objective, &self.raw) {
            (ObjectiveKind::Classification, _) => self.card(seed),
            (ObjectiveKind::Regression, Raw::Images { .. } | Raw::Text(_)) => {
                Err(DataError::NoTarget { data: self.source.to_string() })
            }
            (ObjectiveKind::Regression, Raw::Table(table)) => {
                check_size(table)?;
                let (train, _) = hold_out(table.len(), table.len() / SAMPLES_MIN, seed);
                table.regression_card(&train)
            }
        }
    }

    /// A table's contribution to the card of several sites: exact sums over the training samples that remain when a
    /// fifth is held out by `seed`.
    ///
    /// # Errors
    ///
    /// [`DataError::NoTable`] for other data; [`DataError::TooFew`] for fewer than five rows; [`DataError::Continuous`]
    /// and [`DataError::Target`] where the label is no class, or no quantity.
    pub fn sums(&self, objective: ObjectiveKind, seed: u64) -> Result<TableSums, DataError> {
        let Raw::Table(table) = &self.raw else { return Err(DataError::NoTable { data: self.source.to_string() }) };
        check_size(table)?;
        let (train, _) = hold_out(table.len(), table.len() / SAMPLES_MIN, seed);
        table.sums(objective, &train)
    }

    /// The samples in the columns, classes and scaling of `card`. Columns of a table are found by their names; classes
    /// may be missing in it.
    ///
    /// # Errors
    ///
    /// The data have a column or a class that is not on the card, lack one of its columns, or are of another kind.
    pub fn data_set(self, card: &DataCard, seed: u64) -> Result<DataSet, DataError> {
        match self.raw {
            Raw::Images { train, test, card: own } => {
                let foreign = |difference| DataError::Foreign { data: self.source.to_string(), difference };
                if let Some(difference) = own.difference_but_for_missing_classes(card) {
                    return Err(foreign(difference));
                }
                let classes = card.classes().len();
                let train = train.with_classes(classes);
                let (train, test) = match test {
                    Some(test) => (train, test.with_classes(classes)),
                    None => {
                        let (kept, held_out) = hold_out(train.len(), DIGITS_TEST, seed);
                        (train.select(&kept), train.select(&held_out))
                    }
                };
                Ok(DataSet { train, test, card: card.clone() })
            }
            Raw::Table(table) => {
                check_size(&table)?;
                let here = SampleShape::Flat { features: table.columns().len() };
                if let there @ (SampleShape::Image { .. } | SampleShape::Text { .. }) = card.shape() {
                    let difference = CardDifference::Shape { here, there };
                    return Err(DataError::Foreign { data: self.source.to_string(), difference });
                }
                let (train, test) = hold_out(table.len(), table.len() / SAMPLES_MIN, seed);
                let all = table.samples(card)?;
                Ok(DataSet { train: all.select(&train), test: all.select(&test), card: card.clone() })
            }
            Raw::Text(text) => text.data_set(card),
        }
    }
}

fn image_card(samples: &Samples, classes: Vec<String>, scaling: (f32, f32)) -> DataCard {
    DataCard::of_images(samples.shape(), classes, scaling)
}

fn check_size(table: &Table) -> Result<(), DataError> {
    if table.len() >= SAMPLES_MIN {
        return Ok(());
    }
    Err(DataError::TooFew { path: table.path().into(), samples: table.len(), classes: table.label_count() })
}

fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

/// Shuffles `0..samples` and splits off the last `held_out`.
fn hold_out(samples: usize, held_out: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut train: Vec<usize> = (0..samples).collect();
    train.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let test = train.split_off(samples - held_out);
    (train, test)
}

impl FromStr for DataSource {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let unknown = || DataError::UnknownSource { text: text.to_owned(), advice: advice_on_path(text) };
        let no_column = || DataError::LabelPlace { text: text.to_owned() };
        if text == "digits" {
            return Ok(Self::Digits);
        }
        if let Some(rest) = text.strip_prefix("text") {
            return text_source(rest).map(Self::Text).ok_or_else(unknown);
        }
        match text.split_once(':') {
            Some(("idx", directory)) if !directory.is_empty() => Ok(Self::Idx(directory.into())),
            Some(("cifar10", directory)) if !directory.is_empty() => Ok(Self::Cifar10(directory.into())),
            Some(("csv", rest)) => {
                let (file, label) = match rest.rsplit_once(",label=") {
                    Some((file, label)) => (file, label_column(label).ok_or_else(no_column)?),
                    None => (rest, LabelColumn::Last),
                };
                if file.is_empty() {
                    return Err(unknown());
                }
                Ok(Self::Csv(CsvSource { path: file.into(), label }))
            }
            _ => Err(unknown()),
        }
    }
}

/// Advice to one who named a file or folder without its kind.
fn advice_on_path(text: &str) -> String {
    let path = Path::new(text);
    if path.is_file() {
        format!("; this is a file: csv:{text} for a table, text:{text} for text")
    } else if path.is_dir() {
        format!("; this is a folder: idx:{text} for files as of MNIST, cifar10:{text}")
    } else {
        String::new()
    }
}

/// Parses the part after `text`: nothing or a file, then nothing or the kind of token.
fn text_source(rest: &str) -> Option<TextSource> {
    let (file, tokens) = match rest.rsplit_once(",tokens=") {
        None => (rest, None),
        Some((file, word)) => {
            let known = [Tokens::Characters, Tokens::Bytes];
            (file, Some(known.into_iter().find(|tokens| tokens.to_string() == word)?))
        }
    };
    let path = match file.strip_prefix(':') {
        None if file.is_empty() => None,
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => return None,
    };
    Some(TextSource { path, tokens })
}

fn label_column(text: &str) -> Option<LabelColumn> {
    if text.is_empty() {
        return None;
    }
    match text.parse::<usize>() {
        Ok(number) => NonZeroUsize::new(number).map(LabelColumn::Numbered),
        Err(_) => Some(LabelColumn::Named(text.to_owned())),
    }
}

text_form!(DataSource, DataError);

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits => f.write_str("digits"),
            Self::Cifar10(directory) => write!(f, "cifar10:{}", directory.display()),
            Self::Idx(directory) => write!(f, "idx:{}", directory.display()),
            Self::Text(TextSource { path, tokens }) => {
                let file = path.as_ref().map(|path| format!(":{}", path.display())).unwrap_or_default();
                let tokens = tokens.map(|tokens| format!(",tokens={tokens}")).unwrap_or_default();
                write!(f, "text{file}{tokens}")
            }
            Self::Csv(CsvSource { path, label }) => {
                write!(f, "csv:{}", path.display())?;
                match label {
                    LabelColumn::Last => Ok(()),
                    LabelColumn::Named(name) => write!(f, ",label={name}"),
                    LabelColumn::Numbered(number) => write!(f, ",label={number}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_mutations::for_each_input;

    use super::*;

    fn load(table: &[u8], label: LabelColumn, objective: ObjectiveKind) -> Result<DataSet, DataError> {
        let source = CsvSource { path: "table.csv".into(), label };
        let raw = Raw::Table(Table::of(&source, table)?);
        let raw = RawData { source: DataSource::Csv(source), raw };
        let card = raw.card_for(objective, 1)?;
        raw.data_set(&card, 1)
    }

    #[test]
    fn mutated_tables_are_refused_or_read() {
        let columns =
            [LabelColumn::Last, LabelColumn::Named("label".to_owned()), LabelColumn::Numbered(NonZeroUsize::MIN)];
        let objectives = [ObjectiveKind::Classification, ObjectiveKind::Regression];
        let seeds = [
            "x, y ,label\n0.5,0,ham\n1.5,\"2\",spam\n-2,4,ham\n3e2,1,spam\n.5,3,ham\n",
            "1,2;3\n4,5;6\n",
            "\u{feff}kind,b\r\n1,0\r\n2,1\r\n2,5\r\n1,7\r\n1,3.0\r\n",
            "1,0\n2,1.0\n3,0\n4,1\n5,0\n",
        ];
        let seeds = seeds.map(|seed| seed.as_bytes().to_vec());
        for (seed, label) in [(0, 0), (0, 1), (2, 2), (3, 0)] {
            assert!(
                load(&seeds[seed], columns[label].clone(), ObjectiveKind::Classification).is_ok(),
                "{seed} {label}"
            );
        }
        assert!(load(&seeds[2], LabelColumn::Last, ObjectiveKind::Regression).is_ok());
        let mut turn = 0;
        for_each_input("csv", &seeds, |input| {
            turn += 1;
            let (label, objective) = (columns[turn % 3].clone(), objectives[turn % 2]);
            if let Ok(data) = load(input, label, objective) {
                assert!(!data.train.is_empty() && data.train.shape() == data.card.shape());
            }
        });
    }
}
