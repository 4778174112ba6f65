//! The embedded data set: 1,797 handwritten digits of 8 x 8 pixels.
//!
//! From the UCI repository's "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak 1998,
//! CC BY 4.0), the part that scikit-learn ships; see `data/README.md`. Each pixel counts the dark
//! points of a 4 x 4 block, 0 to 16, and becomes `pixel / 16 - 0.3`, which is roughly centred.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::{DataError, SampleShape, Samples};

/// Gzip of 1,797 labels followed by 1,797 x 64 pixels, one byte each.
const PACKED: &[u8] = include_bytes!("../../data/digits.bin.gz");

const COUNT: usize = 1_797;
const SHAPE: SampleShape = SampleShape::Image { channels: 1, height: 8, width: 8 };
const PIXELS: usize = 64;
const INK_MAX: u8 = 16;

/// `pixel / 16 - 0.3`.
pub(crate) const SCALING: (f32, f32) = (1.0 / INK_MAX as f32, -0.3);

/// All digits, in the order of the source.
pub(crate) fn load() -> Result<Samples, DataError> {
    let mut labels = vec![0; COUNT];
    let mut pixels = vec![0; COUNT * PIXELS];
    let mut decoder = GzDecoder::new(PACKED);
    decoder
        .read_exact(&mut labels)
        .and_then(|()| decoder.read_exact(&mut pixels))
        .map_err(|error| DataError::Embedded(error.to_string()))?;
    if pixels.iter().any(|&pixel| pixel > INK_MAX) {
        return Err(DataError::Embedded(format!("a pixel is darker than {INK_MAX}")));
    }
    let labels = labels.into_iter().map(u16::from).collect();
    Samples::from_pixels(SHAPE, 10, pixels, SCALING, labels)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_embedded_digits_are_the_published_ones() {
        let digits = load().unwrap();
        assert_eq!(digits.len(), 1_797);
        // Class counts as published with the data.
        assert_eq!(digits.class_counts(), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let first = digits.gather(0..1);
        let ink: Vec<i32> = first.iter().map(|x| ((x + 0.3) * 16.0).round() as i32).collect();
        assert_eq!(ink[..16], [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]);
        assert_eq!(digits.labels()[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mean = digits.gather(0..1_797).iter().sum::<f32>() / (1_797.0 * 64.0);
        assert!(mean.abs() < 0.02, "the features are centred, their mean is {mean}");
    }
}
