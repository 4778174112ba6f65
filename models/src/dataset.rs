//! Samples, and where they come from. One file format per file.

mod cifar10;
mod csv_table;
mod digits;
mod error;
mod gzipped;
mod idx;
mod samples;
mod source;

pub use csv_table::{CsvSource, LabelColumn};
pub use error::DataError;
pub use samples::{SampleShape, Samples};
pub use source::{DataSet, DataSource};
