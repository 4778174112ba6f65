//! IDX, the format of MNIST and its relatives: a magic number, big-endian sizes, then bytes.
//!
//! A directory holds four files under the names MNIST was published with, plain or gzipped. Archives of it have a dot
//! in place of the last dash but one (`train-images.idx3-ubyte`), which is accepted too. No header is trusted: memory
//! grows only as bytes arrive.

use std::path::{Path, PathBuf};

use crate::gzipped::GzippedFile;
use crate::{DataError, SampleShape, Samples};

/// `0x00 0x00`, then the type (8: unsigned bytes), then the number of dimensions.
const LABEL_MAGIC: u32 = 0x0000_0801;
const IMAGE_MAGIC: u32 = 0x0000_0803;

/// The largest file accepted, in values: sixteen times MNIST's training images.
const VALUES_MAX: usize = 1 << 30;

/// The map from bytes to `[-1, 1]`. Constants, so that peers with different files agree.
pub(crate) const SCALING: (f32, f32) = (2.0 / 255.0, -1.0);

/// Training samples and test samples of `directory`.
pub(crate) fn load(directory: &Path) -> Result<(Samples, Samples), DataError> {
    let open = |name: &'static str| {
        let dotted = name.replace("-idx", ".idx");
        GzippedFile::open(directory, name, &[&dotted]).map(IdxFile)
    };
    let train = Raw::read(open("train-images-idx3-ubyte")?, open("train-labels-idx1-ubyte")?)?;
    let test = Raw::read(open("t10k-images-idx3-ubyte")?, open("t10k-labels-idx1-ubyte")?)?;
    both(train, test)
}

/// The samples of two pairs of files, which have one shape and the same classes.
fn both(train: Raw, test: Raw) -> Result<(Samples, Samples), DataError> {
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
    fn read(mut image_file: IdxFile, mut label_file: IdxFile) -> Result<Self, DataError> {
        let [count, height, width] = image_file.header(IMAGE_MAGIC, "images")?;
        let pixels = image_file.values(&[count, height, width])?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use mingle_mutations::for_each_input;

    use super::*;

    /// An IDX file of `count` images of 2 by 3, or of their labels.
    fn idx(count: u32, is_image: bool) -> Vec<u8> {
        let sizes: Vec<u32> = if is_image { vec![IMAGE_MAGIC, count, 2, 3] } else { vec![LABEL_MAGIC, count] };
        let values = count * if is_image { 6 } else { 1 };
        let head = sizes.iter().flat_map(|size| size.to_be_bytes());
        head.chain((0..values).map(|value| (value % 10) as u8)).collect()
    }

    fn raw(images: &[u8], labels: &[u8]) -> Result<Raw, DataError> {
        let file = |bytes: &[u8]| {
            let is_gzipped = bytes.starts_with(&[0x1f, 0x8b]);
            IdxFile(GzippedFile::of("train".into(), is_gzipped, Cursor::new(bytes.to_vec())))
        };
        Raw::read(file(images), file(labels))
    }

    #[test]
    fn mutated_idx_files_are_refused_or_read() {
        let (images, labels) = (idx(4, true), idx(4, false));
        let gzipped = |bytes: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).unwrap();
            packed.finish().unwrap()
        };
        let seeds = [images.clone(), labels.clone(), gzipped(&images), gzipped(&labels)];
        assert_eq!(both(raw(&seeds[0], &seeds[3]).unwrap(), raw(&seeds[2], &seeds[1]).unwrap()).unwrap().0.len(), 4);
        for_each_input("idx", &seeds, |input| {
            for (images, labels) in [(input, &labels[..]), (&images[..], input)] {
                let Ok(train) = raw(images, labels) else { continue };
                let count = train.labels.len();
                if let Ok((train, test)) = both(train, raw(&idx(4, true), &idx(4, false)).unwrap()) {
                    assert_eq!((train.len(), test.len(), train.shape()), (count, 4, test.shape()));
                }
            }
        });
    }
}
