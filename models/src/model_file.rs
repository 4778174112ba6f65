//! The outline of a model file: its tensors, the numbers in them that are not finite, and the model they belong to.
//!
//! Loading a [`Checkpoint`](crate::Checkpoint) requires its task. An outline requires none: the file may come from
//! another machine or another release, or be truncated.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use safetensors::SafeTensors;

use crate::checkpoint_error::{CheckpointError, HEADER_MAX};
use crate::half_precision::numbers;
use crate::model::ModelKind;
use crate::regular_file;
use crate::task::Task;

/// The outline of a safetensors file.
///
/// ```
/// use std::collections::BTreeMap;
/// use mingle_models::{Checkpoint, ModelFile, ModelKind, SampleShape, Task};
///
/// let task = Task::new("mlp:hidden=8".parse()?, SampleShape::Flat { features: 4 }, 3)?;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// Checkpoint { parameters: task.initial_parameters(1), metadata: BTreeMap::new() }.save(&path, &task)?;
///
/// let file = ModelFile::read(&path)?;
/// assert_eq!(file.model(), Some("mlp:hidden=8".parse()?));
/// assert!(file.difference(&task).is_none());
/// let other = Task::new(ModelKind::Softmax, SampleShape::Flat { features: 4 }, 3)?;
/// assert_eq!(file.difference(&other).unwrap().to_string(), "the model has a tensor linear.bias, which the file has not");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// The tensors, in the order of the file.
    pub tensors: Vec<TensorOutline>,
    /// Free text by key.
    pub metadata: BTreeMap<String, String>,
    /// The length of the file.
    pub bytes: u64,
}

/// A tensor of a file, without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorOutline {
    /// The name, such as `fc1.weight`.
    pub name: String,
    /// The type of the numbers, such as `F32`.
    pub dtype: String,
    /// The sides, outermost first.
    pub shape: Vec<usize>,
    /// The number of values that are infinite or not a number; counted for `F32`, `F16` and `BF16`.
    pub not_finite: usize,
}

impl ModelFile {
    /// The longest file that is read: the largest model, and its header.
    pub const BYTES_MAX: u64 = HEADER_MAX + 4 * Task::PARAMETERS_MAX as u64;

    /// Reads a file whole and checks each of its numbers.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Read`] when it cannot be read, [`CheckpointError::Size`] when it is longer than
    /// [`BYTES_MAX`](Self::BYTES_MAX), [`CheckpointError::Format`] when it is no safetensors file or a truncated one.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let mut bytes = Vec::new();
        regular_file::open(path)
            .and_then(|file| file.take(Self::BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| CheckpointError::Read { path: path.into(), error })?;
        if bytes.len() as u64 > Self::BYTES_MAX {
            return Err(CheckpointError::Size { path: path.into(), limit: Self::BYTES_MAX });
        }
        Self::of(&bytes).map_err(|reason| CheckpointError::Format { path: path.into(), reason })
    }

    /// The outline of the file with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let outline = |name: String| {
            let tensor = file.tensor(&name).map_err(|error| error.to_string())?;
            let numbers = numbers(tensor.dtype(), tensor.data()).into_iter().flatten();
            let not_finite = numbers.filter(|number| !number.is_finite()).count();
            Ok(TensorOutline { name, dtype: tensor.dtype().to_string(), shape: tensor.shape().to_vec(), not_finite })
        };
        Ok(Self {
            tensors: header.offset_keys().into_iter().map(outline).collect::<Result<_, String>>()?,
            metadata: header.metadata().iter().flatten().map(|(key, text)| (key.clone(), text.clone())).collect(),
            bytes: bytes.len() as u64,
        })
    }

    /// The number of values in all tensors.
    pub fn parameter_count(&self) -> usize {
        self.tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>()).sum()
    }

    /// The model that has tensors of these names; [`difference`](Self::difference) checks their shapes.
    pub fn model(&self) -> Option<ModelKind> {
        if self.tensor("wte.weight").is_some() {
            // The shapes of the tensors do not determine the number of heads; the metadata names the model.
            return self.metadata.get("model")?.parse().ok();
        }
        if self.tensor("conv1.weight").is_some() {
            let normalized = self.tensor("norm1.weight").is_some();
            return Some(if normalized { ModelKind::ResnetLite } else { ModelKind::Cnn });
        }
        if let Some(weight) = self.tensor("fc1.weight") {
            // PyTorch's order: outputs first.
            return format!("mlp:hidden={}", weight.shape.first()?).parse().ok();
        }
        self.tensor("linear.weight").map(|_| ModelKind::Softmax)
    }

    /// The first tensor with numbers that are infinite or not a number.
    pub fn first_not_finite(&self) -> Option<&TensorOutline> {
        self.tensors.iter().find(|tensor| tensor.not_finite > 0)
    }

    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorOutline> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::checkpoint::Checkpoint;
    use mingle_datasets::SampleShape;

    const IMAGE: SampleShape = SampleShape::Image { channels: 1, height: 8, width: 8 };

    fn task(model: &str, shape: SampleShape, classes: usize) -> Task {
        Task::new(model.parse().unwrap(), shape, classes).unwrap()
    }

    fn file(task: &Task) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let metadata = BTreeMap::from([("round".to_owned(), "3".to_owned())]);
        Checkpoint { parameters: task.initial_parameters(7), metadata }.save(&path, task).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn every_model_is_recognised_by_its_file_and_agrees_with_no_other_task() {
        let tasks = ["softmax", "mlp", "mlp:hidden=32", "cnn", "resnet-lite"].map(|model| task(model, IMAGE, 10));
        for (index, wanted) in tasks.iter().enumerate() {
            let outline = ModelFile::of(&file(wanted)).unwrap();
            assert_eq!(outline.model(), Some(wanted.model()));
            assert_eq!(outline.parameter_count(), wanted.parameter_count());
            assert_eq!(outline.metadata["round"], "3");
            for (other, task) in tasks.iter().enumerate() {
                assert_eq!(outline.difference(task).is_none(), index == other, "{} {}", wanted.model(), task.model());
            }
        }
    }

    #[test]
    fn a_difference_names_the_tensor_and_both_shapes() {
        let outline = ModelFile::of(&file(&task("mlp", SampleShape::Flat { features: 8 }, 3))).unwrap();
        let more_classes = task("mlp", SampleShape::Flat { features: 8 }, 4);
        let difference = outline.difference(&more_classes).unwrap().to_string();
        assert_eq!(difference, "tensor fc2.bias is [3] in the file and [4] in the model");
    }

    #[test]
    fn numbers_that_are_not_finite_are_counted() {
        let task = task("softmax", SampleShape::Flat { features: 4 }, 3);
        let mut bytes = file(&task);
        let length = bytes.len();
        assert_eq!(ModelFile::of(&bytes).unwrap().first_not_finite(), None);
        bytes[length - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(ModelFile::of(&bytes).unwrap().first_not_finite().unwrap().not_finite, 1);
    }

    #[test]
    fn damaged_files_are_refused_and_never_a_panic() {
        let bytes = file(&task("softmax", SampleShape::Flat { features: 4 }, 3));
        for length in 0..bytes.len() {
            assert!(ModelFile::of(&bytes[..length]).is_err(), "the first {length} bytes");
        }
        for position in 0..bytes.len().min(400) {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= flip;
                // A changed value cannot be detected; a changed header must not cause a panic.
                let _ = ModelFile::of(&damaged).map(|outline| (outline.model(), outline.parameter_count()));
            }
        }
    }
    #[test]
    fn mutated_model_files_are_refused_or_outlined() {
        let task = task("softmax", SampleShape::Flat { features: 3 }, 2);
        let header = br#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
        let half = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
        let seeds = [file(&task), half];
        assert!(ModelFile::of(&seeds[0]).unwrap().difference(&task).is_none());
        mingle_mutations::for_each_input("safetensors", &seeds, |input| {
            let Ok(outline) = ModelFile::of(input) else { return };
            // A file that matches the task has exactly its number of values.
            if outline.difference(&task).is_none() {
                assert_eq!(outline.parameter_count(), task.parameter_count());
            }
            let _ = (outline.model(), outline.first_not_finite().is_some());
        });
    }
}
