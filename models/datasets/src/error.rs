//! Errors of data.

use std::path::{Path, PathBuf};

use crate::{CardDifference, CardError, SampleShape, UnknownCharacter};

/// Errors of reading and checking data; every variant names the place.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum DataError {
    /// The text names no data source.
    #[error(
        "unknown data source {text:?}: write digits, idx:DIR, cifar10:DIR, csv:FILE[,label=NAME|INDEX] or text[:FILE][,tokens=bytes]{advice}"
    )]
    UnknownSource {
        /// The text.
        text: String,
        /// The kinds of source that fit a file or folder of this name, if there is one.
        advice: String,
    },
    /// The text names a table, and no column for its label.
    #[error("data source {text:?}: behind label= comes the name of a column or its place, counted from 1")]
    LabelPlace { text: String },
    /// A file cannot be opened or read.
    #[error("cannot read {}: {error}{}", path.display(), advice_on_tilde(path))]
    Read { path: PathBuf, error: std::io::Error },
    /// The data are no table, so there are no sums of columns.
    #[error("{data} is no table: its card is the same at all sites, or of one of them; only those of csv:FILE add up")]
    NoTable { data: String },
    /// Neither a file nor its compressed form exists.
    #[error("{} has no {name} and no {name}.gz", directory.display())]
    Missing {
        /// The directory that should have the file.
        directory: PathBuf,
        /// The name of the file.
        name: &'static str,
    },
    /// A file is not in the format that its name implies.
    #[error("{} is not an IDX file of {wanted}: it starts with {found:#010x}, not {expected:#010x}", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// The content that the file should have.
        wanted: &'static str,
        /// The number it should start with.
        expected: u32,
        /// The number it starts with.
        found: u32,
    },
    /// A file ends before the data it announces.
    #[error("{} is truncated: {missing} of {announced} bytes are missing", path.display())]
    Truncated { path: PathBuf, announced: usize, missing: usize },
    /// A file goes on after the data it announces.
    #[error("{} has bytes after the {announced} its header announces", path.display())]
    Trailing { path: PathBuf, announced: usize },
    /// A file announces more than is accepted.
    #[error("{} announces {announced} values, more than the {max} accepted", path.display())]
    TooLarge { path: PathBuf, announced: u64, max: usize },
    /// A file has more images than are accepted.
    #[error("{} has more images than the {max} accepted", path.display())]
    TooManyImages { path: PathBuf, max: usize },
    /// An image belongs to a class that does not exist.
    #[error("{}: image {image} has the label {label}, but there are {classes} classes", path.display())]
    NoSuchClass { path: PathBuf, image: usize, label: u8, classes: usize },
    /// A file of images and its file of labels have different counts.
    #[error("{} holds {images} images, but {} holds {labels} labels", image_file.display(), label_file.display())]
    Counts { image_file: PathBuf, images: usize, label_file: PathBuf, labels: usize },
    /// The training images and the test images have different sizes.
    #[error("{} has images of {test}, but the training images are {train}", path.display())]
    TestShape { path: PathBuf, train: SampleShape, test: SampleShape },
    /// A table is malformed.
    #[error("{}, line {line}: {reason}", path.display())]
    Row { path: PathBuf, line: u64, reason: String },
    /// A cell of a table is no number.
    #[error("{}, line {line}, column {column}: {cell:?} is not a finite number{}", path.display(), mingle_plaintext::way_out(cell))]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1, with its name if it has one.
        column: String,
        /// The text of the cell.
        cell: String,
    },
    /// A sample has no label.
    #[error(
        "{}, line {line}, column {column}: the label is missing: {cell:?} is no class. Leave the row out, or write down its label",
        path.display()
    )]
    MissingLabel {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1, with its name if it has one.
        column: String,
        /// The text of the cell.
        cell: String,
    },
    /// A table has no such column.
    #[error("{} has no label column {wanted}: its {columns} columns are {names}", path.display())]
    LabelColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        wanted: String,
        /// The number of columns.
        columns: usize,
        /// The names of the columns, or that they have none.
        names: String,
    },
    /// The label column does not hold classes.
    #[error(
        "{}: the label column looks like a measurement, not like classes: {reason}. Labels are words or whole numbers, each \
         for many samples. Is it the right column (label=NAME)? To predict a quantity, use --task regression",
        path.display()
    )]
    Continuous { path: PathBuf, classes: usize, reason: String },
    /// A label is no number, where a quantity is to be predicted.
    #[error(
        "{}, line {line}, column {column}: the label {cell:?} is not a finite number, which a regression needs. Is it the right \
         column (label=NAME)? To tell classes apart, use --task classification",
        path.display()
    )]
    Target {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1, with its name if it has one.
        column: String,
        /// The text of the cell.
        cell: String,
    },
    /// The quantity that is to be predicted never varies.
    #[error("{}, column {column}: the label never varies, so there is nothing to predict", path.display())]
    ConstantTarget {
        /// The file.
        path: PathBuf,
        /// The column, counted from 1, with its name if it has one.
        column: String,
    },
    /// A quantity is to be predicted of data that have classes.
    #[error("{data} has classes: --task regression is for csv:FILE")]
    NoTarget { data: String },
    /// The samples have a class that is not on the task's card.
    #[error("{} has the class `{class}`, which the task has not: its classes are {known}", path.display())]
    ForeignClass { path: PathBuf, class: String, known: String },
    /// The columns are not those of the task.
    #[error(
        "{} does not have the columns of the task: {difference}{}",
        path.display(),
        if *has_header { "" } else { " (it has no first line with names, so its columns are called x1, x2 and so on)" }
    )]
    ForeignColumns {
        /// The file.
        path: PathBuf,
        /// The first difference.
        difference: String,
        /// `true` if the file has a header.
        has_header: bool,
    },
    /// The samples are of another kind than the task's card describes.
    #[error("{data} does not fit the task: {difference}")]
    Foreign { data: String, difference: CardDifference },
    /// The card of the file cannot be made.
    #[error("{} cannot be used: {reason}", path.display())]
    Card { path: PathBuf, reason: CardError },
    /// There are too few samples or classes to train and evaluate.
    #[error("{} holds {samples} samples in {classes} classes: at least 5 samples and 2 classes are needed", path.display())]
    TooFew { path: PathBuf, samples: usize, classes: usize },
    /// A text is not in Unicode.
    #[error(
        "{}, line {line}: the byte at {byte} is not UTF-8, and characters are wanted; text:FILE,tokens=bytes takes any bytes",
        path.display()
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The place in the file, counted from 0.
        byte: usize,
    },
    /// A text has a character that is not in the task's vocabulary.
    #[error(
        "{}, {error} of the task, which has {known} characters: replace it there, or let all peers train on bytes \
         (text:FILE,tokens=bytes)",
        path.display()
    )]
    UnknownCharacter {
        /// The file.
        path: PathBuf,
        /// The number of characters in the task's vocabulary.
        known: usize,
        /// The character, and its place.
        error: UnknownCharacter,
    },
    /// A text has too many different characters.
    #[error(
        "{} has more than {} different characters; text:FILE,tokens=bytes trains on bytes",
        path.display(),
        crate::Vocabulary::CHARACTERS_MAX
    )]
    Vocabulary { path: PathBuf },
    /// A text is too short to train on and to evaluate.
    #[error("{} has {tokens} tokens: a text needs at least {least}", path.display())]
    ShortText { path: PathBuf, tokens: usize, least: usize },
    /// A text is too long to be kept in memory.
    #[error("{} is longer than the {max} bytes accepted", path.display())]
    LongText { path: PathBuf, max: usize },
    /// The numbers of features and labels do not fit.
    #[error("{labels} labels of samples of shape {shape} do not go with {features} numbers")]
    Lengths { shape: SampleShape, labels: usize, features: usize },
    /// A label is not below the number of classes.
    #[error("sample {sample} has label {label}, but there are {classes} classes")]
    Label { sample: usize, label: u16, classes: usize },
    /// A feature is infinite or not a number.
    #[error("sample {sample} has a feature {feature} that is not finite")]
    NotFinite { sample: usize, feature: usize },
    /// The embedded data set is damaged.
    #[error("the embedded digits are damaged: {0}")]
    Embedded(String),
}

/// Advice for a path that begins with an unexpanded `~`: ` (...)`.
fn advice_on_tilde(path: &Path) -> &'static str {
    if path.starts_with("~") { " (a shell leaves ~ behind a colon as it is: write $HOME in its place)" } else { "" }
}
