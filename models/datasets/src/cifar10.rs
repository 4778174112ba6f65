//! CIFAR-10 in its binary version: rows of one label and 3,072 bytes of an image, red, green and blue after each other.
//!
//! Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009. A directory holds five files of training
//! images and one of test images under the names they were published with, plain or gzipped.

use std::path::Path;

use crate::gzipped::GzippedFile;
use crate::{DataError, SampleShape, Samples};

const TRAIN: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: &str = "test_batch.bin";

const SHAPE: SampleShape = SampleShape::Image { channels: 3, height: 32, width: 32 };
const PIXELS: usize = 3 * 32 * 32;
const ROW: usize = 1 + PIXELS;

/// The most images in a file: ten times those of a published one.
const MAX_IMAGES: usize = 100_000;

/// The map from bytes to `[-1, 1]`. Constants, so that peers with different files agree.
pub(crate) const SCALING: (f32, f32) = (2.0 / 255.0, -1.0);

/// The names of the classes, in order.
pub(crate) const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// Training samples and test samples of `directory`.
pub(crate) fn load(directory: &Path) -> Result<(Samples, Samples), DataError> {
    Ok((read(directory, &TRAIN)?, read(directory, &[TEST])?))
}

fn read(directory: &Path, names: &[&'static str]) -> Result<Samples, DataError> {
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for name in names {
        append(&mut GzippedFile::open(directory, name, &[])?, &mut pixels, &mut labels)?;
    }
    Samples::from_pixels(SHAPE, CLASSES.len(), pixels, SCALING, labels)
}

fn append(file: &mut GzippedFile, pixels: &mut Vec<u8>, labels: &mut Vec<u16>) -> Result<(), DataError> {
    for image in 0.. {
        let row = file.read_up_to(ROW)?;
        let Some((&label, image_pixels)) = row.split_first() else { return Ok(()) };
        let path = || file.path.clone();
        if row.len() < ROW {
            return Err(DataError::Truncated { path: path(), announced: ROW, missing: ROW - row.len() });
        }
        if image == MAX_IMAGES {
            return Err(DataError::TooManyImages { path: path(), max: MAX_IMAGES });
        }
        if usize::from(label) >= CLASSES.len() {
            return Err(DataError::NoSuchClass { path: path(), image, label, classes: CLASSES.len() });
        }
        pixels.extend_from_slice(image_pixels);
        labels.push(u16::from(label));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::io::{Cursor, Write as _};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use mingle_mutations::for_each_input;

    use super::*;

    fn image(label: u8, pixel: u8) -> Vec<u8> {
        let mut row = vec![pixel; ROW];
        row[0] = label;
        row
    }

    /// A folder with one image in each file, of the class of the file's number.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, name) in TRAIN.iter().chain(&[TEST]).enumerate() {
            fs::write(folder.path().join(name), image(number as u8, 255)).unwrap();
        }
        folder
    }

    #[test]
    fn images_are_read_in_order_plain_or_gzipped() {
        let folder = folder();
        let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
        gzipped.write_all(&[image(9, 0), image(8, 51)].concat()).unwrap();
        fs::remove_file(folder.path().join(TRAIN[1])).unwrap();
        fs::write(folder.path().join("data_batch_2.bin.gz"), gzipped.finish().unwrap()).unwrap();
        let (train, test) = load(folder.path()).unwrap();
        assert_eq!(train.labels(), [0, 9, 8, 2, 3, 4]);
        assert_eq!(test.labels(), [5]);
        assert_eq!((train.shape(), train.classes()), (SHAPE, 10));
        let rows = train.gather(0..3);
        assert_eq!((rows[0], rows[PIXELS]), (1.0, -1.0));
        assert!((rows[2 * PIXELS] + 0.6).abs() < 1e-6);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let folder = folder();
        let third = folder.path().join(TRAIN[2]);
        let fails = |bytes: &[u8], words: &[&str]| {
            fs::write(&third, bytes).unwrap();
            let error = load(folder.path()).unwrap_err().to_string();
            assert!(error.contains("data_batch_3.bin") && words.iter().all(|word| error.contains(word)), "{error}");
        };
        fails(&image(3, 1)[..3000], &["truncated", "73"]);
        fails(&[image(3, 1), image(10, 1)].concat(), &["image 1", "10"]);
        fs::remove_file(&third).unwrap();
        assert!(load(folder.path()).unwrap_err().to_string().contains("no data_batch_3.bin"));
    }
    #[test]
    fn mutated_cifar_files_are_refused_or_read() {
        let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
        gzipped.write_all(&[image(9, 0), image(8, 51)].concat()).unwrap();
        let gzipped = gzipped.finish().unwrap();
        let read = |bytes: &[u8]| {
            let is_gzipped = bytes.starts_with(&[0x1f, 0x8b]);
            let (mut pixels, mut labels) = (Vec::new(), Vec::new());
            let mut file = GzippedFile::of(TEST.into(), is_gzipped, Cursor::new(bytes.to_vec()));
            append(&mut file, &mut pixels, &mut labels)?;
            Samples::from_pixels(SHAPE, CLASSES.len(), pixels, SCALING, labels)
        };
        let seeds = [image(3, 7), [image(0, 7), image(9, 200)].concat(), gzipped];
        assert_eq!(seeds.each_ref().map(|seed| read(seed).unwrap().len()), [1, 2, 2]);
        for_each_input("cifar", &seeds, |input| {
            if let Ok(samples) = read(input)
                && !input.starts_with(&[0x1f, 0x8b])
            {
                assert_eq!(samples.len() * ROW, input.len());
            }
        });
    }
}
