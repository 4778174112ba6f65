//! A task: a model together with the shape of the samples it is for.
//!
//! The shapes of a [`Task`] agree, so its model can be built. It fixes the length and order of the flat parameter
//! vector, so two peers with equal tasks can mix their parameters.

use serde::Serialize;

use crate::model::{Architecture, BuiltinNetwork, GptSize, ModelError, ModelKind};
use crate::{flatten, initialization};
use mingle_datasets::{AugmentationError, Objective, SampleShape};

/// A model for samples of one shape, for a number of classes or a quantity.
///
/// ```
/// use mingle_models::{ModelKind, SampleShape, Task};
///
/// let images = SampleShape::Image { channels: 1, height: 28, width: 28 };
/// let task = Task::new(ModelKind::Cnn, images, 10)?;
/// assert_eq!(task.parameter_count(), 1_663_370);
/// # Ok::<(), mingle_models::TaskError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    model: ModelKind,
    shape: SampleShape,
    objective: Objective,
    #[serde(skip)]
    architecture: Architecture,
    parameter_count: usize,
}

impl Task {
    /// The most features of one sample: a batch of 32 then takes 512 MiB.
    pub const FEATURES_MAX: usize = 1 << 22;
    /// The most classes: labels are 16 bits wide.
    pub const CLASSES_MAX: usize = 1 << 16;
    /// The most parameters of a model: 1 GiB of them.
    pub const PARAMETERS_MAX: usize = 1 << 28;
    /// The most numbers that a step of a language model keeps for the backward pass: 8 GiB of them.
    pub const ACTIVATIONS_MAX: usize = 1 << 31;

    /// Checks that `model` can be built for samples of `shape`, and for an objective or a number of classes.
    ///
    /// # Errors
    ///
    /// [`TaskError::Model`] when the model needs another shape, naming both; [`TaskError::Regression`] when it cannot
    /// predict a quantity; [`TaskError::Features`], [`TaskError::Classes`], [`TaskError::Parameters`] and
    /// [`TaskError::Activations`] outside the bounds of this type.
    pub fn new(model: ModelKind, shape: SampleShape, objective: impl Into<Objective>) -> Result<Self, TaskError> {
        let objective = objective.into();
        if !(1..=Self::FEATURES_MAX).contains(&shape.features()) {
            return Err(TaskError::Features { shape });
        }
        match objective {
            Objective::Classification { classes } if !(2..=Self::CLASSES_MAX).contains(&classes) => {
                return Err(TaskError::Classes { classes });
            }
            Objective::Regression if !matches!(model, ModelKind::Softmax | ModelKind::Mlp { .. }) => {
                return Err(TaskError::Regression { model });
            }
            _ => {}
        }
        let architecture = model.architecture(shape)?;
        let parameter_count = flatten::parameter_count(&blank(architecture, objective.outputs()));
        if parameter_count > Self::PARAMETERS_MAX {
            return Err(TaskError::Parameters { model, shape, parameters: parameter_count });
        }
        let task = Self { model, shape, objective, architecture, parameter_count };
        if task.activations(1) > Self::ACTIVATIONS_MAX {
            return Err(TaskError::Activations { model, activations: task.activations(1) });
        }
        Ok(task)
    }

    /// The model.
    pub fn model(&self) -> ModelKind {
        self.model
    }

    /// The shape of one sample.
    pub fn shape(&self) -> SampleShape {
        self.shape
    }

    /// The objective of the training.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// The length of the flat parameter vector.
    pub fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Flat initial parameters: equal bits on every peer and device for one `seed`. They are uniform within
    /// `1 / sqrt(inputs of the layer)` of zero (He et al. 2015); those of a language model are normal, as GPT-2's.
    pub fn initial_parameters(&self, seed: u64) -> Vec<f32> {
        match self.architecture {
            Architecture::Gpt(size) => initialization::gpt2_parameters(&self.blank(), size.layers(), seed),
            _ => initialization::initial_parameters(&self.blank(), seed),
        }
    }

    /// The size of a language model; `None` for other models.
    pub fn gpt(&self) -> Option<GptSize> {
        match self.architecture {
            Architecture::Gpt(size) => Some(size),
            _ => None,
        }
    }

    /// The numbers that a step of a language model on `windows` windows keeps for the backward pass. 0 for other
    /// models, whose samples are bounded.
    pub(crate) fn activations(&self, windows: usize) -> usize {
        self.gpt().map_or(0, |size| size.activations(windows, self.objective.outputs()))
    }

    /// The name and length of each tensor in the order of the flat parameters, such as `[("linear.weight", 640), ("linear.bias", 10)]`: the
    /// names are those of a [`Checkpoint`](crate::Checkpoint).
    pub fn flat_tensors(&self) -> Vec<(String, usize)> {
        flatten::tensor_names(&self.blank())
    }

    /// A network without values. Two blanks have different parameter identities: optimizer state
    /// follows the clones of one.
    pub(crate) fn blank(&self) -> BuiltinNetwork {
        blank(self.architecture, self.objective.outputs())
    }

    /// Checks the length of flat parameters.
    pub(crate) fn check(&self, parameters: &[f32]) -> Result<(), TaskError> {
        if parameters.len() == self.parameter_count {
            return Ok(());
        }
        Err(TaskError::Length { model: self.model, expected: self.parameter_count, found: parameters.len() })
    }
}

/// A network without values. It costs nothing and touches no device, so it can always be the processor's.
fn blank(architecture: Architecture, outputs: usize) -> BuiltinNetwork {
    architecture.blank(outputs, &burn::tensor::Device::flex())
}

/// Errors of combining a model with samples or parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TaskError {
    /// The model is not known, or not for samples of this shape.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The augmentation is not for samples of this shape.
    #[error(transparent)]
    Augmentation(#[from] AugmentationError),
    /// A step would not fit in memory.
    #[error(
        "model {model} keeps {activations} numbers of one window in a step, more than {}: make it smaller",
        Task::ACTIVATIONS_MAX
    )]
    Activations { model: ModelKind, activations: usize },
    /// Samples have no features or too many.
    #[error("samples of shape {shape} have no features or more than {}", Task::FEATURES_MAX)]
    Features { shape: SampleShape },
    /// There are fewer than two classes, or too many.
    #[error("{classes} classes cannot be learnt: 2 to {} are needed", Task::CLASSES_MAX)]
    Classes { classes: usize },
    /// The model predicts no quantities.
    #[error(
        "model {model} tells classes apart: softmax, which is then linear regression, and mlp can predict a quantity"
    )]
    Regression { model: ModelKind },
    /// The model would not fit in memory.
    #[error(
        "model {model} for samples of shape {shape} has {parameters} parameters, more than {}",
        Task::PARAMETERS_MAX
    )]
    Parameters { model: ModelKind, shape: SampleShape, parameters: usize },
    /// The flat parameters belong to another model.
    #[error("model {model} has {expected} parameters, but {found} were given")]
    Length { model: ModelKind, expected: usize, found: usize },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn task(model: &str, shape: SampleShape) -> Result<Task, TaskError> {
        Task::new(model.parse().unwrap(), shape, 10)
    }

    const DIGIT: SampleShape = SampleShape::Image { channels: 1, height: 8, width: 8 };
    const PHOTO: SampleShape = SampleShape::Image { channels: 1, height: 28, width: 28 };

    #[test]
    fn parameter_counts_are_those_of_the_layers() {
        assert_eq!(task("softmax", DIGIT).unwrap().parameter_count(), 64 * 10 + 10);
        assert_eq!(task("mlp:hidden=32", DIGIT).unwrap().parameter_count(), 64 * 32 + 32 + 32 * 10 + 10);
        // The figure given by McMahan et al. 2017, section 3.
        assert_eq!(task("cnn", PHOTO).unwrap().parameter_count(), 1_663_370);
        let colours = SampleShape::Image { channels: 3, height: 32, width: 32 };
        assert_eq!(task("resnet-lite", colours).unwrap().parameter_count(), 1_516_586);
    }

    #[test]
    fn a_model_refuses_samples_of_the_wrong_shape_and_names_both() {
        let error = task("cnn", SampleShape::Flat { features: 30 }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "model cnn needs an image whose height and width are multiples of 4, such as 1x28x28, \
             but the samples have shape 30"
        );
        let odd = SampleShape::Image { channels: 3, height: 30, width: 32 };
        assert!(task("cnn", odd).unwrap_err().to_string().ends_with("shape 3x30x32"));
    }

    #[test]
    fn a_quantity_is_one_output_of_models_for_tables() {
        let table = SampleShape::Flat { features: 5 };
        let of = |model: &str, shape| Task::new(model.parse().unwrap(), shape, Objective::Regression);
        assert_eq!(of("softmax", table).unwrap().parameter_count(), 5 + 1);
        assert_eq!(of("mlp:hidden=3", table).unwrap().parameter_count(), 5 * 3 + 3 + 3 + 1);
        for model in ["cnn", "resnet-lite"] {
            assert!(of(model, PHOTO).unwrap_err().to_string().starts_with(&format!("model {model} tells classes")));
        }
    }

    #[test]
    fn sizes_that_would_not_fit_in_memory_are_refused() {
        let huge = SampleShape::Image { channels: usize::MAX, height: 2, width: 2 };
        assert_eq!(task("softmax", huge), Err(TaskError::Features { shape: huge }));
        let empty = SampleShape::Flat { features: 0 };
        assert_eq!(task("mlp", empty), Err(TaskError::Features { shape: empty }));
        let wide = SampleShape::Flat { features: 1 << 20 };
        assert!(matches!(
            task("mlp:hidden=65536", wide),
            Err(TaskError::Parameters { parameters: 68_720_197_642, .. })
        ));
        let one = Task::new(ModelKind::Softmax, DIGIT, 1);
        assert_eq!(one, Err(TaskError::Classes { classes: 1 }));
    }

    #[test]
    fn initial_parameters_depend_on_the_seed_alone_and_keep_the_bound_of_each_layer() {
        let task = task("mlp:hidden=32", DIGIT).unwrap();
        let parameters = task.initial_parameters(7);
        assert_eq!(parameters, task.initial_parameters(7));
        assert_ne!(parameters, task.initial_parameters(8));
        assert_eq!(parameters.len(), task.parameter_count());

        let (first, second) = parameters.split_at(64 * 32 + 32);
        for (layer, inputs) in [(first, 64.0f32), (second, 32.0)] {
            let bound = 1.0 / inputs.sqrt();
            assert!(layer.iter().all(|value| value.abs() <= bound));
            let mean_square = layer.iter().map(|value| value * value).sum::<f32>() / layer.len() as f32;
            // A uniform variable within b of zero has variance b^2 / 3.
            assert!((mean_square * 3.0 * inputs - 1.0).abs() < 0.15, "{mean_square}");
        }
    }
}
