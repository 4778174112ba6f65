//! Samples, and where they come from. One file format per file.

mod card;
mod cifar10;
mod csv_classes;
mod csv_columns;
mod csv_header;
mod csv_table;
mod decimal;
mod digits;
mod error;
mod gzipped;
mod idx;
mod samples;
mod source;

pub use card::{CardDifference, CardError, DataCard, Scaling};
pub use csv_table::{CsvSource, LabelColumn};
pub use decimal::Decimal;
pub use error::DataError;
pub use samples::{SampleShape, Samples};
pub use source::{DataSet, DataSource, RawData};
