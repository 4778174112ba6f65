//! Random changes to training images that leave their class as it is.
//!
//! The change of a sample follows from the seed of the data and the number of the step alone, so that a restarted peer
//! sees the same samples.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::sample_shape::SampleShape;

/// The changes to training images, as written by the user: `none`, or one or both of `flip` and `crop:N`, with a comma
/// between them.
///
/// | text | change |
/// | --- | --- |
/// | `flip` | left and right change places in half of the images |
/// | `crop:N` | the image moves by up to N pixels up or down and left or right; what comes in is zero |
///
/// ```
/// use mingle_datasets::Augmentation;
///
/// let usual_for_cifar: Augmentation = "flip,crop:4".parse()?;
/// assert_eq!(usual_for_cifar, Augmentation { flip: true, crop: 4 });
/// assert!("rotate".parse::<Augmentation>().is_err());
/// # Ok::<(), mingle_datasets::AugmentationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Augmentation {
    /// `true` if left and right may change places.
    pub flip: bool,
    /// The largest number of pixels by which an image moves.
    pub crop: usize,
}

impl Augmentation {
    /// No change.
    pub const NONE: Self = Self { flip: false, crop: 0 };

    /// Checks that samples of `shape` can be changed so: images alone, and larger than the crop.
    ///
    /// # Errors
    ///
    /// [`AugmentationError::Shape`] for other samples.
    pub fn check(self, shape: SampleShape) -> Result<(), AugmentationError> {
        let fits = match shape {
            _ if self == Self::NONE => true,
            SampleShape::Image { height, width, .. } => self.crop < height.min(width),
            SampleShape::Flat { .. } | SampleShape::Text { .. } => false,
        };
        if fits { Ok(()) } else { Err(AugmentationError::Shape { augmentation: self, shape }) }
    }

    /// Changes the rows of a batch, each a sample of `shape`, by the seed of the data and the number of the step.
    pub fn apply(self, rows: &mut [f32], shape: SampleShape, (seed, step): (u64, u64)) {
        let SampleShape::Image { height, width, .. } = shape else { return };
        if self == Self::NONE {
            return;
        }
        // Streams counted down from the last: batches of the same seed are drawn from the streams from 0 up.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(!step);
        let mut plane = vec![0.0; height * width];
        for image in rows.chunks_exact_mut(shape.features()) {
            let flip = self.flip && rng.random::<bool>();
            let [down, right] = [(); 2].map(|()| rng.random_range(0..=2 * self.crop));
            for channel in image.chunks_exact_mut(height * width) {
                plane.copy_from_slice(channel);
                self.draw(&plane, channel, width, (down, right), flip);
            }
        }
    }

    /// Draws `from` to `to`, moved by `down` and `right` less `crop`, and mirrored if `flip`.
    fn draw(self, from: &[f32], to: &mut [f32], width: usize, (down, right): (usize, usize), flip: bool) {
        let height = from.len() / width;
        let moved =
            |place: usize, by: usize, end: usize| (place + self.crop).checked_sub(by).filter(|&place| place < end);
        for (y, row) in to.chunks_exact_mut(width).enumerate() {
            for (x, pixel) in row.iter_mut().enumerate() {
                let x = if flip { width - 1 - x } else { x };
                *pixel = match (moved(y, down, height), moved(x, right, width)) {
                    (Some(y), Some(x)) => from[y * width + x],
                    _ => 0.0,
                };
            }
        }
    }
}

/// An augmentation that is not known, or not for the samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum AugmentationError {
    /// The text names no augmentation.
    #[error("unknown augmentation {0:?}: write none, flip, crop:N or flip,crop:N")]
    Unknown(String),
    /// Samples of this shape cannot be changed so.
    #[error("samples of shape {shape} cannot be changed by {augmentation}: it takes images, larger than the crop")]
    Shape { augmentation: Augmentation, shape: SampleShape },
}

impl FromStr for Augmentation {
    type Err = AugmentationError;

    fn from_str(text: &str) -> Result<Self, AugmentationError> {
        let unknown = || AugmentationError::Unknown(text.to_owned());
        if text == "none" {
            return Ok(Self::NONE);
        }
        let mut augmentation = Self::NONE;
        for part in text.split(',') {
            match part.strip_prefix("crop:") {
                None if part == "flip" && !augmentation.flip => augmentation.flip = true,
                Some(pixels) if augmentation.crop == 0 => {
                    augmentation.crop = pixels.parse().ok().filter(|&pixels| pixels > 0).ok_or_else(unknown)?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(augmentation)
    }
}

text_form!(Augmentation, AugmentationError);

impl fmt::Display for Augmentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.flip, self.crop) {
            (false, 0) => f.write_str("none"),
            (true, 0) => f.write_str("flip"),
            (false, crop) => write!(f, "crop:{crop}"),
            (true, crop) => write!(f, "flip,crop:{crop}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SHAPE: SampleShape = SampleShape::Image { channels: 2, height: 3, width: 4 };

    fn rows(count: usize) -> Vec<f32> {
        (0..count * SHAPE.features()).map(|place| 1.0 + place as f32).collect()
    }

    #[test]
    fn every_augmentation_reads_back_as_it_prints() {
        for text in ["none", "flip", "crop:4", "flip,crop:4"] {
            assert_eq!(text.parse::<Augmentation>().unwrap().to_string(), text);
        }
        assert_eq!("crop:2,flip".parse::<Augmentation>().unwrap().to_string(), "flip,crop:2");
        for text in ["", "flip,", "flip,flip", "crop", "crop:0", "crop:-1", "crop:1,crop:2", "none,flip", "Flip"] {
            assert_eq!(text.parse::<Augmentation>(), Err(AugmentationError::Unknown(text.into())), "{text}");
        }
    }

    #[test]
    fn a_flip_turns_all_channels_of_half_of_the_images() {
        let before = rows(200);
        let mut after = before.clone();
        Augmentation { flip: true, crop: 0 }.apply(&mut after, SHAPE, (1, 1));
        let mut turned = 0;
        for (before, after) in before.chunks(24).zip(after.chunks(24)) {
            let mirrored: Vec<f32> = before.chunks(4).flat_map(|row| row.iter().rev().copied()).collect();
            assert!(after == before || after == mirrored);
            turned += usize::from(after == mirrored);
        }
        assert!((70..130).contains(&turned), "{turned} of 200");
    }

    #[test]
    fn a_crop_moves_all_channels_alike_and_lets_zeros_in() {
        let before = rows(200);
        let mut after = before.clone();
        Augmentation { flip: false, crop: 1 }.apply(&mut after, SHAPE, (1, 1));
        let mut seen = [false; 9];
        for (before, after) in before.chunks(24).zip(after.chunks(24)) {
            let moves = (-1i32..=1).flat_map(|down| (-1i32..=1).map(move |right| (down, right)));
            let found = moves.clone().position(|by| moved(before, by) == after);
            seen[found.unwrap_or_else(|| panic!("{after:?} is not {before:?} moved"))] = true;
        }
        assert_eq!(seen, [true; 9]);
    }

    fn moved(image: &[f32], (down, right): (i32, i32)) -> Vec<f32> {
        let at = |channel: i32, y: i32, x: i32| {
            let inside = (0..3).contains(&y) && (0..4).contains(&x);
            if inside { image[(channel * 12 + y * 4 + x) as usize] } else { 0.0 }
        };
        let places = (0..2).flat_map(|channel| (0..3).flat_map(move |y| (0..4).map(move |x| (channel, y, x))));
        places.map(|(channel, y, x)| at(channel, y - down, x - right)).collect()
    }

    #[test]
    fn a_step_follows_from_the_seed_and_its_number() {
        let changed = |seed, step| {
            let mut rows = rows(8);
            Augmentation { flip: true, crop: 2 }.apply(&mut rows, SHAPE, (seed, step));
            rows
        };
        assert_eq!(changed(1, 5), changed(1, 5));
        assert_ne!(changed(1, 5), changed(1, 6));
        assert_ne!(changed(1, 5), changed(2, 5));
    }

    #[test]
    fn only_images_larger_than_the_crop_can_be_changed() {
        let flat = SampleShape::Flat { features: 12 };
        assert!(Augmentation::NONE.check(flat).is_ok());
        assert!(Augmentation { flip: true, crop: 0 }.check(flat).is_err());
        assert!(Augmentation { flip: true, crop: 2 }.check(SHAPE).is_ok());
        let error = Augmentation { flip: false, crop: 3 }.check(SHAPE).unwrap_err();
        assert_eq!(
            error.to_string(),
            "samples of shape 2x3x4 cannot be changed by crop:3: it takes images, larger than the crop"
        );
    }
}
