//! Local training for Mingle: data, models, splits and flat parameters.
//!
//! One peer's learning, and nothing else: this crate knows no network, no protocol and no plan. It
//! turns a name such as `digits` into samples, a name such as `mlp` into a model, and offers the
//! two operations a decentralised algorithm needs:
//!
//! * [`Trainer::train`]: from flat parameters, some local gradient steps, and the change they made;
//! * [`Evaluator::evaluate`]: the accuracy, or r2, and loss of flat parameters on held-out samples.
//!
//! Parameters cross this boundary only as one flat `Vec<f32>`, so the code that mixes them need not know
//! that they are a neural network. Training runs on [burn](https://burn.dev); the device it runs
//! on is always named, never guessed (see [`DeviceName`]).
//!
//! ```
//! use mingle_models::{
//!     Augmentation, DataSource, DeviceName, Evaluator, OptimizerOptions, SiteWeight, Task, Trainer, TrainerOptions,
//! };
//!
//! let data = "digits".parse::<DataSource>()?.load(1)?;
//! let device = "cpu".parse::<DeviceName>()?.open()?;
//! let task = Task::new("softmax".parse()?, data.train.shape(), data.train.classes())?;
//!
//! let mut parameters = task.initial_parameters(1);
//! let options = TrainerOptions {
//!     task,
//!     device: device.clone(),
//!     optimizer: OptimizerOptions::default(),
//!     batch_size: 32,
//!     augmentation: Augmentation::NONE,
//!     data_seed: 1,
//!     weight: SiteWeight::Equal,
//! };
//! let mut trainer = Trainer::new(options, data.train)?;
//! let outcome = trainer.train(&parameters, 100)?;
//! for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
//!     *parameter += change;
//! }
//!
//! let evaluation = Evaluator::new(task, &device).evaluate(&parameters, &data.test)?;
//! assert!(evaluation.score() > 0.8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asked_weight;
mod checkpoint;
mod checkpoint_error;
mod device;
mod evaluation;
mod flatten;
mod generation;
mod gradient_clipping;
mod half_precision;
mod initialization;
mod kernels;
pub mod meaning;
mod memory;
mod model;
mod model_file;
mod optimizer;
mod partition;
mod prediction;
mod prediction_table;
mod regular_file;
mod schedule;
mod site_weight;
mod task;
mod threads;
mod train_error;
mod trainer;

pub use asked_weight::{AskedWeight, AskedWeightError};
pub use checkpoint::Checkpoint;
pub use checkpoint_error::{CheckpointError, TensorDifference};
pub use device::{Adapter, Device, DeviceError, DeviceName};
pub use evaluation::{Evaluator, ModelEvaluation, Quality};
pub use flatten::{flatten, number_parameters, unflatten};
pub use generation::{GenerationError, GenerationOptions, TextGenerator, Utf8Stream};
pub use mingle_datasets::{
    Augmentation, AugmentationError, CardDifference, CardError, CsvFeatures, CsvSource, DataCard, DataError, DataSet,
    DataSource, Decimal, FeatureScaling, LabelColumn, NotExact, Objective, ObjectiveKind, RawData, SampleShape,
    Samples, Sites, SumsError, TableSums, Target, TextSource, Tokens, UnknownCharacter, UnknownObjective, Vocabulary,
};
pub use model::{GptSize, GptSizeError, ModelError, ModelKind};
pub use model_file::{ModelFile, TensorOutline};
pub use optimizer::{OptimizerKind, OptimizerOptions, UnknownOptimizer};
pub use partition::{PartitionError, Split};
pub use prediction::{Prediction, Predictor};
pub use prediction_table::PredictionTable;
pub use schedule::{Decay, LearningRateSchedule, RateScheduleError};
pub use site_weight::SiteWeight;
pub use task::{Task, TaskError};
pub use threads::{ThreadsError, start_threads};
pub use train_error::TrainError;
pub use trainer::{TrainOutcome, Trainer, TrainerOptions};

/// Operations on burn's tensors, with gradients, for networks outside of this crate. On the processor they are kernels
/// of this crate; on other devices they are burn's own.
pub mod operations {
    pub use crate::kernels::{Pairs, RmsProp, pair_scores, rms_prop, tall_product, tanh, transposed_product};
}
