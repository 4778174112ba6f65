//! Samples for Mingle, and their sources. One file format per file.
//!
//! A name such as `digits` or `csv:FILE` is a [`DataSource`]. Its content is [`RawData`]; a [`DataCard`], which all
//! sites of a swarm share, gives meaning to columns and classes. With a card the data become [`Samples`], some to train
//! on and some held out.
//!
//! ```
//! use mingle_datasets::DataSource;
//!
//! let data = "digits".parse::<DataSource>()?.load(1)?;
//! assert_eq!(data.train.classes(), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod text_form;

mod augmentation;
mod batches;
mod card;
mod card_error;
mod cifar10;
mod csv_cells;
mod csv_classes;
mod csv_columns;
mod csv_features;
mod csv_header;
mod csv_source;
mod csv_table;
mod data_set;
mod decimal;
mod digits;
mod error;
mod exact_sum;
mod gzipped;
mod idx;
mod objective;
mod sample_shape;
mod samples;
mod source;
mod table_sums;
mod target;
mod text;
mod vocabulary;

pub use augmentation::{Augmentation, AugmentationError};
pub use batches::Batches;
pub use card::{DataCard, FeatureScaling, Sites};
pub use card_error::{CardDifference, CardError};
pub use csv_features::CsvFeatures;
pub use csv_source::{CsvSource, LabelColumn};
pub use data_set::DataSet;
pub use decimal::Decimal;
pub use error::DataError;
pub use exact_sum::NotExact;
pub use objective::{Objective, ObjectiveKind, UnknownObjective};
pub use sample_shape::SampleShape;
pub use samples::Samples;
pub use source::{DataSource, RawData};
pub use table_sums::{SumsError, TableSums};
pub use target::Target;
pub use text::TextSource;
pub use vocabulary::{Tokens, UnknownCharacter, Vocabulary};
