//! IDX, the format of MNIST and its relatives: a magic number, big-endian sizes, then bytes.
//!
//! A directory holds four files under the names MNIST was published with, plain or gzipped. Nothing
//! in a header is believed: memory grows only as bytes arrive.

use std::path::{Path, PathBuf};

use crate::gzipped::GzippedFile;
use crate::{DataError, SampleShape, Samples};

/// `0x00 0x00`, then the type (8: unsigned bytes), then the number of dimensions.
const LABEL_MAGIC: u32 = 0x0000_0801;
const IMAGE_MAGIC: u32 = 0x0000_0803;

/// The largest file accepted, in values: sixteen times MNIST's training images.
const VALUES_MAX: usize = 1 << 30;

/// From bytes to `[-1, 1]`. Constants, so that peers with different files agree.
pub(crate) const SCALING: (f32, f32) = (2.0 / 255.0, -1.0);

/// Training samples and test samples of `directory`.
pub(crate) fn load(directory: &Path) -> Result<(Samples, Samples), DataError> {
    let train = Raw::read(directory, "train-images-idx3-ubyte", "train-labels-idx1-ubyte")?;
    let test = Raw::read(directory, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")?;
    if train.shape != test.shape {
        return Err(DataError::TestShape { path: test.image_file, train: train.shape, test: test.shape });
    }
    let classes = train.labels.iter().chain(&test.labels).max().map_or(0, |&label| usize::from(label) + 1);
    Ok((train.samples(classes)?, test.samples(classes)?))
}

/// Images and labels which belong together.
struct Raw {
    image_file: PathBuf,
    shape: SampleShape,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Raw {
    fn read(directory: &Path, images: &'static str, labels: &'static str) -> Result<Self, DataError> {
        let mut image_file = IdxFile::open(directory, images)?;
        let [count, height, width] = image_file.header(IMAGE_MAGIC, "images")?;
        let pixels = image_file.values(&[count, height, width])?;
        let mut label_file = IdxFile::open(directory, labels)?;
        let [label_count] = label_file.header(LABEL_MAGIC, "labels")?;
        let labels = label_file.values(&[label_count])?;
        if count != label_count {
            return Err(DataError::Counts {
                image_file: image_file.0.path,
                images: count as usize,
                label_file: label_file.0.path,
                labels: label_count as usize,
            });
        }
        let shape = SampleShape::Image { channels: 1, height: height as usize, width: width as usize };
        Ok(Self { image_file: image_file.0.path, shape, pixels, labels })
    }

    fn samples(self, classes: usize) -> Result<Samples, DataError> {
        let labels = self.labels.into_iter().map(u16::from).collect();
        Samples::from_pixels(self.shape, classes, self.pixels, SCALING, labels)
    }
}

/// One open file.
struct IdxFile(GzippedFile);

impl IdxFile {
    fn open(directory: &Path, name: &'static str) -> Result<Self, DataError> {
        GzippedFile::open(directory, name).map(Self)
    }

    /// Checks the magic number and reads the sizes.
    fn header<const D: usize>(&mut self, magic: u32, wanted: &'static str) -> Result<[u32; D], DataError> {
        let found = self.number()?;
        if found != magic {
            return Err(DataError::Magic { path: self.0.path.clone(), wanted, expected: magic, found });
        }
        let mut sizes = [0; D];
        for size in &mut sizes {
            *size = self.number()?;
        }
        Ok(sizes)
    }

    /// Reads exactly the values which `sizes` announce; the file must end with them.
    fn values(&mut self, sizes: &[u32]) -> Result<Vec<u8>, DataError> {
        let announced = sizes.iter().fold(1u64, |product, &size| product.saturating_mul(u64::from(size)));
        if announced > VALUES_MAX as u64 {
            return Err(DataError::TooLarge { path: self.0.path.clone(), announced, max: VALUES_MAX });
        }
        let values = self.0.read_up_to(announced as usize + 1)?;
        self.expect_length(values.len(), announced as usize)?;
        Ok(values)
    }

    fn number(&mut self) -> Result<u32, DataError> {
        let bytes = self.0.read_up_to(4)?;
        match bytes.as_slice().try_into() {
            Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
            Err(_) => Err(self.truncated(bytes.len(), 4)),
        }
    }

    fn expect_length(&self, found: usize, announced: usize) -> Result<(), DataError> {
        match found.cmp(&announced) {
            std::cmp::Ordering::Less => Err(self.truncated(found, announced)),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(DataError::Trailing { path: self.0.path.clone(), announced }),
        }
    }

    fn truncated(&self, found: usize, announced: usize) -> DataError {
        DataError::Truncated { path: self.0.path.clone(), announced, missing: announced - found }
    }
}
