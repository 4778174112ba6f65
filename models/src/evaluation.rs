//! Evaluation of parameters on samples.

use std::f64::consts::LN_2;
use std::sync::Arc;

use burn::Tensor;
use burn::tensor::TensorData;
use serde::Serialize;

use crate::device::{Device, DeviceName};
use crate::flatten::{unflatten, unflatten_shared};
use crate::model::{BuiltinNetwork, GptSize, ModelKind};
use crate::task::Task;
use crate::threads::on_training_thread;
use crate::train_error::TrainError;
use crate::trainer::check_samples;
use mingle_datasets::{SampleShape, Samples, Tokens};

/// Rows evaluated at once, which bounds the memory for activations.
const ROWS: usize = 128;
/// Rows of a residual network on the processor: the values between its blocks then stay in a cache.
const ROWS_IN_CACHE: usize = 32;
/// The most numbers that windows of a text keep at once: 128 MiB of them.
const ACTIVATIONS: usize = 1 << 25;

/// An evaluator of flat parameters; it holds no samples and no parameters.
#[derive(Clone, Debug)]
pub struct Evaluator {
    task: Task,
    device: Device,
    blank: BuiltinNetwork,
}

/// The quality and loss of parameters on some samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelEvaluation {
    /// The quality of the predictions.
    #[serde(flatten)]
    pub quality: Quality,
    /// The mean cross-entropy in nats, or the mean squared error of the standardised quantity; not finite if the parameters are
    /// not.
    pub loss: f64,
    /// The number of samples evaluated.
    pub samples: usize,
}

/// The quality of predictions: accuracy or error, by the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Quality {
    /// The quality of predicted classes.
    Classification {
        /// The share of samples whose class has the largest logit (the lowest such class, on ties); 0 to 1.
        accuracy: f64,
    },
    /// The quality of predicted tokens of a text.
    NextToken {
        /// The share of tokens that have the largest logit, given those before them; 0 to 1.
        accuracy: f64,
        /// The mean cross-entropy in bits: the size of one token of the text if the model is used to compress it. The
        /// smaller the better.
        bits: f64,
        /// The kind of token.
        tokens: Tokens,
    },
    /// The quality of predicted quantities, in the units of the data.
    Regression {
        /// The mean squared error.
        mse: f64,
        /// The root of the mean squared error.
        rmse: f64,
        /// The coefficient of determination: 1 - mse / (variance of the quantity over these samples). 1 is the most, 0 is as
        /// good as their mean. Where they do not vary, 1 without errors and 0 with any, as in scikit-learn.
        r2: f64,
    },
}

impl ModelEvaluation {
    /// Accuracy or r2: the larger the better, 1 at most.
    pub fn score(&self) -> f64 {
        match self.quality {
            Quality::Classification { accuracy } | Quality::NextToken { accuracy, .. } => accuracy,
            Quality::Regression { r2, .. } => r2,
        }
    }

    /// All measures, by name.
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        let mut metrics = match self.quality {
            Quality::Classification { accuracy } => vec![("accuracy", accuracy)],
            Quality::NextToken { accuracy, bits, tokens } => vec![(tokens.metric(), bits), ("accuracy", accuracy)],
            Quality::Regression { mse, rmse, r2 } => vec![("r2", r2), ("rmse", rmse), ("mse", mse)],
        };
        metrics.push(("loss", self.loss));
        metrics
    }
}

impl Evaluator {
    /// An evaluator on `device`.
    pub fn new(task: Task, device: &Device) -> Self {
        Self { task, device: device.clone(), blank: task.blank() }
    }

    /// Evaluates the flat `parameters` on `samples`, a few rows at a time. Without samples, all measures are 0.
    ///
    /// # Errors
    ///
    /// [`TrainError::Task`] when the parameters have the wrong length, [`TrainError::Mismatch`]
    /// when the samples are not the task's, [`TrainError::Device`] when the device fails.
    pub fn evaluate(&self, parameters: &[f32], samples: &Samples) -> Result<ModelEvaluation, TrainError> {
        self.evaluate_while(parameters, samples, || true)
    }

    /// Evaluates as [`Evaluator::evaluate`] does, but stops before a batch of rows if `goes_on` returns `false`. The
    /// first batch is always evaluated. The evaluation states the number of samples it covers.
    ///
    /// # Errors
    ///
    /// Those of [`Evaluator::evaluate`].
    pub fn evaluate_while(
        &self,
        parameters: &[f32],
        samples: &Samples,
        goes_on: impl FnMut() -> bool,
    ) -> Result<ModelEvaluation, TrainError> {
        self.task.check(parameters)?;
        check_samples(&self.task, samples)?;
        let network = unflatten(self.blank.clone(), parameters, &self.device.inference());
        self.evaluate_network(&network, samples, goes_on)
    }

    /// Evaluates as [`Evaluator::evaluate_while`] does, to the same bits. On the processor the network lies in
    /// `parameters`, without a copy of them.
    ///
    /// # Errors
    ///
    /// Those of [`Evaluator::evaluate`].
    pub fn evaluate_shared_while(
        &self,
        parameters: &Arc<[f32]>,
        samples: &Samples,
        goes_on: impl FnMut() -> bool,
    ) -> Result<ModelEvaluation, TrainError> {
        self.task.check(parameters)?;
        check_samples(&self.task, samples)?;
        let network = unflatten_shared(self.blank.clone(), parameters, &self.device.inference());
        self.evaluate_network(&network, samples, goes_on)
    }

    fn evaluate_network(
        &self,
        network: &BuiltinNetwork,
        samples: &Samples,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<ModelEvaluation, TrainError> {
        if let Some(size) = self.task.gpt() {
            return self.evaluate_text(network, samples, size, goes_on);
        }
        let mut tally = PredictionTally::default();
        let mut errors = Errors::default();
        let mut judged = 0;
        let rows = match (self.task.model(), self.device.name()) {
            (ModelKind::ResnetLite, DeviceName::Cpu) => ROWS_IN_CACHE,
            _ => ROWS,
        };
        for start in (0..samples.len()).step_by(rows) {
            if start > 0 && !goes_on() {
                break;
            }
            let end = (start + rows).min(samples.len());
            judged = end;
            let features = samples.gather(start..end);
            let logits = self.logits(network, features, [end - start, self.task.shape().features()])?;
            if let Some((targets, _)) = samples.targets() {
                logits.iter().zip(&targets[start..end]).for_each(|(found, wanted)| errors.add(*found, *wanted));
                continue;
            }
            let classes = self.task.objective().outputs();
            for (row, &label) in logits.chunks_exact(classes).zip(&samples.labels()[start..end]) {
                tally.add(row, usize::from(label));
            }
        }
        Ok(match samples.targets() {
            None => tally.evaluation(judged),
            Some((_, deviation)) => errors.evaluation(judged, deviation),
        })
    }

    /// Evaluates a text in windows that touch, so that each token but the first is predicted once, from those before it
    /// in its window.
    fn evaluate_text(
        &self,
        network: &BuiltinNetwork,
        samples: &Samples,
        size: GptSize,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<ModelEvaluation, TrainError> {
        let context = size.context();
        let wanted = samples.predictable();
        let windows = (ACTIVATIONS / self.task.activations(1)).max(1);
        let mut tally = PredictionTally::default();
        let mut judged = 0;
        while judged < wanted && (judged == 0 || goes_on()) {
            // The last window is shorter, and evaluated alone.
            let whole = ((wanted - judged) / context).min(windows);
            let (rows, length) = if whole > 0 { (whole, context) } else { (1, wanted - judged) };
            let starts = (0..rows).map(|row| judged + row * length);
            let (seen, following) = samples.windows(starts, length);
            let logits = self.logits(network, seen, [rows, length])?;
            for (row, &label) in logits.chunks_exact(self.task.objective().outputs()).zip(&following) {
                tally.add(row, usize::from(label));
            }
            judged += rows * length;
        }
        let ModelEvaluation { quality, loss, samples } = tally.evaluation(judged);
        let quality = match (quality, self.task.shape()) {
            (Quality::Classification { accuracy }, SampleShape::Text { tokens }) => {
                Quality::NextToken { accuracy, bits: loss / LN_2, tokens }
            }
            (quality, _) => quality,
        };
        Ok(ModelEvaluation { quality, loss, samples })
    }

    fn logits(&self, network: &BuiltinNetwork, features: Vec<f32>, shape: [usize; 2]) -> Result<Vec<f32>, TrainError> {
        let features = TensorData::new(features, shape);
        let failed = |error: String| TrainError::Device(error);
        let rows = if self.task.gpt().is_some() { shape[0] * shape[1] } else { shape[0] };
        let multiplications = (rows * self.task.parameter_count()) as u64;
        let logits = on_training_thread(&self.device, multiplications, || {
            let features = Tensor::from_data(features, &self.device.inference());
            network.forward(features).try_into_data()
        });
        logits.map_err(|error| failed(error.to_string()))?.try_into_vec().map_err(|error| failed(error.to_string()))
    }
}

#[derive(Default)]
struct PredictionTally {
    correct: usize,
    loss: f64,
}

impl PredictionTally {
    fn add(&mut self, logits: &[f32], label: usize) {
        let mut best = 0;
        for (class, logit) in logits.iter().enumerate() {
            if *logit > logits[best] {
                best = class;
            }
        }
        self.correct += usize::from(best == label);
        // log(sum(exp)) with the largest term taken out, so that no exponential overflows.
        let largest = f64::from(logits[best]);
        let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
        self.loss += largest + sum.ln() - f64::from(logits[label]);
    }

    fn evaluation(&self, samples: usize) -> ModelEvaluation {
        let count = samples.max(1) as f64;
        let quality = Quality::Classification { accuracy: self.correct as f64 / count };
        ModelEvaluation { quality, loss: self.loss / count, samples }
    }
}

/// Sums over standardised quantities.
#[derive(Default)]
struct Errors {
    squared: f64,
    wanted: f64,
    wanted_squared: f64,
}

impl Errors {
    fn add(&mut self, found: f32, wanted: f32) {
        let wanted = f64::from(wanted);
        self.squared += (f64::from(found) - wanted).powi(2);
        self.wanted += wanted;
        self.wanted_squared += wanted * wanted;
    }

    fn evaluation(&self, samples: usize, deviation: f64) -> ModelEvaluation {
        let count = samples.max(1) as f64;
        let loss = self.squared / count;
        let variance = self.wanted_squared / count - (self.wanted / count).powi(2);
        // A smaller variance is the rounding error of a quantity that does not vary.
        let varies = variance > 1e-12 * self.wanted_squared / count;
        let r2 = match (varies, loss > 0.0) {
            (true, _) => 1.0 - loss / variance,
            (false, true) => 0.0,
            (false, false) => {
                if samples == 0 {
                    0.0
                } else {
                    1.0
                }
            }
        };
        let mse = loss * deviation * deviation;
        ModelEvaluation { quality: Quality::Regression { mse, rmse: mse.sqrt(), r2 }, loss, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_counts_the_lowest_largest_logit_and_loss_survives_large_logits() {
        let mut tally = PredictionTally::default();
        tally.add(&[1.0, 3.0, 3.0], 1);
        tally.add(&[1000.0, 0.0, 0.0], 2);
        let evaluation = tally.evaluation(2);
        assert_eq!(evaluation.score(), 0.5);
        let first = (1.0 + 1.0 + (-2.0f64).exp()).ln();
        assert!((evaluation.loss - (first + 1000.0) / 2.0).abs() < 1e-9);
        let nothing = PredictionTally::default().evaluation(0);
        assert_eq!((nothing.score(), nothing.loss, nothing.samples), (0.0, 0.0, 0));
    }

    #[test]
    fn errors_are_told_in_the_units_of_the_data_and_r2_without_units() {
        let of = |pairs: &[(f32, f32)]| {
            let mut errors = Errors::default();
            pairs.iter().for_each(|(found, wanted)| errors.add(*found, *wanted));
            errors.evaluation(pairs.len(), 10.0)
        };
        // Errors 1, 0, -1, 0 of 0, 1, 2, 3, whose variance is 5 / 4.
        let evaluation = of(&[(1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (3.0, 3.0)]);
        let Quality::Regression { mse, rmse, r2 } = evaluation.quality else { panic!("{evaluation:?}") };
        assert_eq!((evaluation.loss, mse), (0.5, 50.0));
        assert!((rmse - 50f64.sqrt()).abs() < 1e-12 && (r2 - (1.0 - 0.5 / 1.25)).abs() < 1e-12);
        assert_eq!(of(&[(0.1, 0.1), (0.1, 0.1)]).score(), 1.0, "without errors");
        assert_eq!(of(&[(0.2, 0.1), (0.1, 0.1)]).score(), 0.0, "where nothing varies");
        assert!(of(&[(f32::NAN, 0.1), (0.1, 0.5)]).loss.is_nan());
    }
}
