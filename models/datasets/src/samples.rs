//! Labelled samples in memory.

use crate::objective::Objective;
use crate::{DataError, SampleShape, Tokens};

/// Labelled samples of one shape.
///
/// Pixels stay bytes until they are batched, so that 60,000 images take 47 MB and not 188 MB.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    shape: SampleShape,
    classes: usize,
    features: Features,
    labels: Vec<u16>,
    targets: Option<Targets>,
}

/// The quantities that a regression predicts.
#[derive(Clone, Debug, PartialEq)]
struct Targets {
    /// The standardised targets, by sample.
    values: Vec<f32>,
    /// The deviation by which they were divided.
    deviation: f64,
}

/// The number of classes of a regression, tenths of the samples by their targets. They only serve to partition samples.
const TENTHS: usize = 10;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Features {
    /// Numbers as they are.
    Numbers(Vec<f32>),
    /// Pixels; the number is `pixel * scale + offset`.
    Pixels { pixels: Vec<u8>, scale: f32, offset: f32 },
    /// Tokens of a text: the labels, each to be predicted from those before it.
    Labels,
}

impl Features {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Pixels { pixels, .. } => pixels.len(),
            Self::Labels => 0,
        }
    }
}

impl Samples {
    /// Samples from rows of numbers, one after the other, and one label below `classes` for each.
    ///
    /// # Errors
    ///
    /// [`DataError::Lengths`] when there are not `shape.features()` numbers per label,
    /// [`DataError::Label`] when a label is too large and [`DataError::NotFinite`] when a number is
    /// not finite; both name the sample.
    pub fn new(shape: SampleShape, classes: usize, features: Vec<f32>, labels: Vec<u16>) -> Result<Self, DataError> {
        if let Some(position) = features.iter().position(|number| !number.is_finite()) {
            return Err(DataError::NotFinite {
                sample: position / shape.features().max(1),
                feature: position % shape.features().max(1),
            });
        }
        Self::checked(shape, classes, Features::Numbers(features), labels)
    }

    /// Samples of a regression: rows of numbers, and a standardised target for each, which was divided by `deviation`.
    /// Their labels are the tenths that their targets fall in, so that they can be partitioned as classes are.
    ///
    /// # Errors
    ///
    /// As [`Samples::new`]. [`DataError::NotFinite`] for a target that is not finite names the feature after the last.
    pub fn of_regression(
        shape: SampleShape,
        features: Vec<f32>,
        targets: Vec<f32>,
        deviation: f64,
    ) -> Result<Self, DataError> {
        if let Some(sample) = targets.iter().position(|target| !target.is_finite()) {
            return Err(DataError::NotFinite { sample, feature: shape.features() });
        }
        let mut order: Vec<usize> = (0..targets.len()).collect();
        order.sort_by(|&a, &b| targets[a].total_cmp(&targets[b]));
        let mut labels = vec![0; targets.len()];
        for (rank, &sample) in order.iter().enumerate() {
            labels[sample] = (rank * TENTHS / targets.len()) as u16;
        }
        let samples = Self::new(shape, TENTHS, features, labels)?;
        Ok(Self { targets: Some(Targets { values: targets, deviation }), ..samples })
    }

    /// Samples from rows of bytes; the number behind each is `byte * scale + offset`.
    pub(crate) fn from_pixels(
        shape: SampleShape,
        classes: usize,
        pixels: Vec<u8>,
        (scale, offset): (f32, f32),
        labels: Vec<u16>,
    ) -> Result<Self, DataError> {
        Self::checked(shape, classes, Features::Pixels { pixels, scale, offset }, labels)
    }

    /// A text: its tokens, each below `vocabulary`, in their order.
    ///
    /// # Errors
    ///
    /// [`DataError::Label`] when a token is too large.
    pub fn of_text(tokens: Tokens, vocabulary: usize, text: Vec<u16>) -> Result<Self, DataError> {
        if let Some(sample) = text.iter().position(|&token| usize::from(token) >= vocabulary) {
            return Err(DataError::Label { sample, label: text[sample], classes: vocabulary });
        }
        let shape = SampleShape::Text { tokens };
        Ok(Self { shape, classes: vocabulary, features: Features::Labels, labels: text, targets: None })
    }

    fn checked(shape: SampleShape, classes: usize, features: Features, labels: Vec<u16>) -> Result<Self, DataError> {
        let expected = labels.len().saturating_mul(shape.features());
        if features.len() != expected {
            return Err(DataError::Lengths { shape, labels: labels.len(), features: features.len() });
        }
        if let Some(sample) = labels.iter().position(|&label| usize::from(label) >= classes) {
            return Err(DataError::Label { sample, label: labels[sample], classes });
        }
        Ok(Self { shape, classes, features, labels, targets: None })
    }

    /// The same samples, with at least `classes` classes.
    pub(crate) fn with_classes(mut self, classes: usize) -> Self {
        self.classes = self.classes.max(classes);
        self
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns `true` if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns `true` if the samples are a text, in which their order matters.
    pub fn is_text(&self) -> bool {
        matches!(self.shape, SampleShape::Text { .. })
    }

    /// The number of samples that can be predicted: all but the first token of a text.
    pub fn predictable(&self) -> usize {
        self.len() - usize::from(self.is_text() && !self.is_empty())
    }

    /// The shape of each sample.
    pub fn shape(&self) -> SampleShape {
        self.shape
    }

    /// The number of classes; labels are below it. A part of a data set keeps the classes of the
    /// whole.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The objective of training on these samples.
    pub fn objective(&self) -> Objective {
        match self.targets {
            None => Objective::Classification { classes: self.classes },
            Some(_) => Objective::Regression,
        }
    }

    /// The standardised target of each sample, and the deviation by which it was divided; `None` for a classification.
    pub fn targets(&self) -> Option<(&[f32], f64)> {
        self.targets.as_ref().map(|targets| (targets.values.as_slice(), targets.deviation))
    }

    /// The class of each sample.
    pub fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// The number of samples of each class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        for &label in &self.labels {
            counts[usize::from(label)] += 1;
        }
        counts
    }

    /// The features of one sample, as passed to a model.
    ///
    /// # Panics
    ///
    /// When `index` is not below [`Samples::len`].
    pub fn row(&self, index: usize) -> Vec<f32> {
        self.gather(std::iter::once(index))
    }

    /// A copy of the samples at `indices`, in that order.
    ///
    /// # Panics
    ///
    /// When an index is not below [`Samples::len`].
    pub fn select(&self, indices: &[usize]) -> Self {
        let width = self.shape.features();
        let features = match &self.features {
            Features::Numbers(numbers) => Features::Numbers(rows(numbers, width, indices)),
            Features::Pixels { pixels, scale, offset } => {
                Features::Pixels { pixels: rows(pixels, width, indices), scale: *scale, offset: *offset }
            }
            Features::Labels => Features::Labels,
        };
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        let targets = self.targets.as_ref().map(|targets| Targets {
            values: indices.iter().map(|&index| targets.values[index]).collect(),
            deviation: targets.deviation,
        });
        Self { shape: self.shape, classes: self.classes, features, labels, targets }
    }

    /// The numbers of the samples at `indices`, row after row.
    pub fn gather(&self, indices: impl ExactSizeIterator<Item = usize>) -> Vec<f32> {
        let width = self.shape.features();
        let mut batch = Vec::with_capacity(indices.len() * width);
        for index in indices {
            let row = index * width..(index + 1) * width;
            match &self.features {
                Features::Numbers(numbers) => batch.extend_from_slice(&numbers[row]),
                Features::Pixels { pixels, scale, offset } => {
                    batch.extend(pixels[row].iter().map(|&pixel| f32::from(pixel) * scale + offset));
                }
                Features::Labels => batch.push(f32::from(self.labels[index])),
            }
        }
        batch
    }

    /// Windows of `length` tokens of a text, row after row, and for each of their tokens the one that follows it.
    ///
    /// # Panics
    ///
    /// When a window or the token that follows it ends after [`Samples::len`].
    pub fn windows(&self, starts: impl Iterator<Item = usize>, length: usize) -> (Vec<f32>, Vec<u16>) {
        let mut seen = Vec::new();
        let mut following = Vec::new();
        for start in starts {
            seen.extend(self.labels[start..start + length].iter().copied().map(f32::from));
            following.extend_from_slice(&self.labels[start + 1..][..length]);
        }
        (seen, following)
    }
}

fn rows<T: Copy>(table: &[T], width: usize, indices: &[usize]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(indices.len() * width);
    for &index in indices {
        chosen.extend_from_slice(&table[index * width..(index + 1) * width]);
    }
    chosen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const PAIR: SampleShape = SampleShape::Flat { features: 2 };

    #[test]
    fn samples_are_selected_in_the_order_asked_for_with_their_labels() {
        let samples = Samples::new(PAIR, 3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], vec![2, 0, 1]).unwrap();
        let chosen = samples.select(&[2, 0, 2]);
        let expected = Samples::new(PAIR, 3, vec![4.0, 5.0, 0.0, 1.0, 4.0, 5.0], vec![1, 2, 1]);
        assert_eq!(chosen, expected.unwrap());
        assert_eq!(chosen.class_counts(), [0, 2, 1]);
        assert_eq!(samples.gather([1, 0].into_iter()), [2.0, 3.0, 0.0, 1.0]);
    }

    #[test]
    fn targets_follow_their_samples_whose_labels_are_tenths_by_target() {
        let values: Vec<f32> = (0..20).map(|sample| ((sample * 7) % 20) as f32 - 9.5).collect();
        let samples = Samples::of_regression(PAIR, vec![0.0; 40], values.clone(), 3.0).unwrap();
        assert_eq!((samples.objective(), samples.class_counts()), (Objective::Regression, vec![2; 10]));
        let chosen = samples.select(&[3, 0]);
        assert_eq!(chosen.targets(), Some((&[values[3], values[0]][..], 3.0)));
        assert_eq!(chosen.labels(), [samples.labels()[3], 0]);
        let broken = Samples::of_regression(PAIR, vec![0.0; 2], vec![f32::NAN], 1.0);
        assert!(matches!(broken, Err(DataError::NotFinite { sample: 0, feature: 2 })));
    }

    #[test]
    fn pixels_become_numbers_only_when_gathered() {
        let samples = Samples::from_pixels(PAIR, 2, vec![0, 255, 51, 102], (1.0 / 255.0, -0.5), vec![0, 1]);
        let numbers = samples.unwrap().gather(0..2);
        for (number, expected) in numbers.iter().zip([-0.5f32, 0.5, -0.3, -0.1]) {
            assert!((number - expected).abs() < 1e-6, "{number} is not {expected}");
        }
    }

    #[test]
    fn samples_that_do_not_fit_together_are_refused_with_the_offending_one() {
        let error = Samples::new(PAIR, 2, vec![0.0; 3], vec![0, 1]).unwrap_err();
        assert!(error.to_string().contains("2 labels") && error.to_string().contains("3 numbers"), "{error}");
        let error = Samples::new(PAIR, 2, vec![0.0; 4], vec![0, 2]).unwrap_err();
        assert!(error.to_string().contains("sample 1") && error.to_string().contains("label 2"), "{error}");
        let error = Samples::new(PAIR, 2, vec![0.0, 0.0, 0.0, f32::NAN], vec![0, 1]).unwrap_err();
        assert!(error.to_string().contains("sample 1") && error.to_string().contains("feature 1"), "{error}");
    }
}
