//! Where samples come from, by name, and the part nobody trains on.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::csv_table::{CsvSource, LabelColumn, Table};
use super::{DataError, Samples, cifar10, digits, idx};

/// The samples held out of the 1,797 digits, about a fifth.
const DIGITS_TEST: usize = 360;

/// A table needs one test sample among five.
const SAMPLES_MIN: usize = 5;

/// A data source, as written by the user.
///
/// | text | samples |
/// | --- | --- |
/// | `digits` | the embedded 8x8 handwritten digits |
/// | `idx:DIR` | a directory in the format and with the file names of MNIST, gzipped or not |
/// | `cifar10:DIR` | a directory with the binary version of CIFAR-10, gzipped or not |
/// | `csv:FILE`, `csv:FILE,label=NAME`, `csv:FILE,label=5` | a table; the label is its last column, or the named one, or the one at this place counted from 1 |
///
/// ```
/// use mingle_models::DataSource;
///
/// let data = "digits".parse::<DataSource>()?.load(1)?;
/// assert_eq!((data.train.len(), data.test.len()), (1437, 360));
/// # Ok::<(), mingle_models::DataError>(())
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
}

/// Samples to train on and samples to judge by, of one shape and the same classes.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// What peers share out and train on.
    pub train: Samples,
    /// What no peer trains on.
    pub test: Samples,
    /// What the classes are called, in order. Peers with different files compare these.
    pub class_names: Vec<String>,
}

impl DataSource {
    /// Reads everything into memory.
    ///
    /// The test part is the one published with IDX data (`t10k-*`) and CIFAR-10; of the digits 360 and of a
    /// table a fifth are set aside, chosen by `seed`.
    ///
    /// # Errors
    ///
    /// A [`DataError`] naming the file and the place in it.
    pub fn load(&self, seed: u64) -> Result<DataSet, DataError> {
        match self {
            Self::Digits => {
                let digits = digits::load()?;
                let (train, test) = hold_out(digits.len(), DIGITS_TEST, seed);
                let (train, test) = (digits.select(&train), digits.select(&test));
                Ok(DataSet { class_names: numbered(train.classes()), train, test })
            }
            Self::Idx(directory) => {
                let (train, test) = idx::load(directory)?;
                Ok(DataSet { class_names: numbered(train.classes()), train, test })
            }
            Self::Cifar10(directory) => {
                let (train, test) = cifar10::load(directory)?;
                Ok(DataSet { class_names: cifar10::CLASSES.map(str::to_owned).to_vec(), train, test })
            }
            Self::Csv(source) => {
                let mut table = Table::read(source)?;
                let class_names = std::mem::take(&mut table.class_names);
                let samples = table.len();
                if samples < SAMPLES_MIN || class_names.len() < 2 {
                    let path = source.path.clone();
                    return Err(DataError::TooFew { path, samples, classes: class_names.len() });
                }
                let (train, test) = hold_out(samples, samples / SAMPLES_MIN, seed);
                let (train, test) = table.split(class_names.len(), &train, &test)?;
                Ok(DataSet { train, test, class_names })
            }
        }
    }
}

fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

/// Shuffles `0..samples` and sets the last `held_out` aside.
fn hold_out(samples: usize, held_out: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut train: Vec<usize> = (0..samples).collect();
    train.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let test = train.split_off(samples - held_out);
    (train, test)
}

impl FromStr for DataSource {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        let unknown = || DataError::UnknownSource(text.to_owned());
        if text == "digits" {
            return Ok(Self::Digits);
        }
        match text.split_once(':') {
            Some(("idx", directory)) if !directory.is_empty() => Ok(Self::Idx(directory.into())),
            Some(("cifar10", directory)) if !directory.is_empty() => Ok(Self::Cifar10(directory.into())),
            Some(("csv", rest)) => {
                let (file, label) = match rest.rsplit_once(",label=") {
                    Some((file, label)) => (file, label_column(label).ok_or_else(unknown)?),
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

fn label_column(text: &str) -> Option<LabelColumn> {
    if text.is_empty() {
        return None;
    }
    match text.parse::<usize>() {
        Ok(number) => NonZeroUsize::new(number).map(LabelColumn::Numbered),
        Err(_) => Some(LabelColumn::Named(text.to_owned())),
    }
}

impl TryFrom<String> for DataSource {
    type Error = DataError;

    fn try_from(text: String) -> Result<Self, DataError> {
        text.parse()
    }
}

impl From<DataSource> for String {
    fn from(source: DataSource) -> Self {
        source.to_string()
    }
}

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits => f.write_str("digits"),
            Self::Cifar10(directory) => write!(f, "cifar10:{}", directory.display()),
            Self::Idx(directory) => write!(f, "idx:{}", directory.display()),
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
