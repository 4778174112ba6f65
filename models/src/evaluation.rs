//! How good parameters are on samples.

use burn::Tensor;
use burn::tensor::TensorData;
use serde::Serialize;

use crate::dataset::Samples;
use crate::device::Device;
use crate::flatten::unflatten;
use crate::model::Network;
use crate::task::Task;
use crate::trainer::{TrainError, check_samples};

/// Rows evaluated at once, which bounds the memory for activations.
const ROWS: usize = 128;

/// Judges flat parameters; holds no samples and no parameters.
#[derive(Clone, Debug)]
pub struct Evaluator {
    task: Task,
    device: Device,
    blank: Network,
}

/// How good parameters are on some samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// The share of samples whose class has the largest logit (the lowest such class, on ties); 0
    /// to 1.
    pub accuracy: f64,
    /// The mean cross-entropy in nats; not finite if the parameters are not.
    pub loss: f64,
    /// How many samples were judged.
    pub samples: usize,
}

impl Evaluator {
    /// An evaluator on `device`.
    pub fn new(task: Task, device: &Device) -> Self {
        Self { task, device: device.clone(), blank: task.blank() }
    }

    /// Judges the flat `parameters` on `samples`, a few rows at a time. Without samples, accuracy
    /// and loss are 0.
    ///
    /// # Errors
    ///
    /// [`TrainError::Task`] when the parameters have the wrong length, [`TrainError::Mismatch`]
    /// when the samples are not the task's, [`TrainError::Device`] when the device fails.
    pub fn evaluate(&self, parameters: &[f32], samples: &Samples) -> Result<Evaluation, TrainError> {
        self.evaluate_while(parameters, samples, || true)
    }

    /// The same, but stops before some rows if `goes_on` says no; the first rows are always judged. The evaluation says how
    /// many samples it is of.
    ///
    /// # Errors
    ///
    /// Those of [`Evaluator::evaluate`].
    pub fn evaluate_while(
        &self,
        parameters: &[f32],
        samples: &Samples,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Evaluation, TrainError> {
        self.task.check(parameters)?;
        check_samples(&self.task, samples)?;
        let network = unflatten(self.blank.clone(), parameters, &self.device.inference());
        let mut tally = Tally::default();
        let mut judged = 0;
        for start in (0..samples.len()).step_by(ROWS) {
            if start > 0 && !goes_on() {
                break;
            }
            let end = (start + ROWS).min(samples.len());
            judged = end;
            let logits = self.logits(&network, samples, start..end)?;
            for (row, &label) in logits.chunks_exact(self.task.classes()).zip(&samples.labels()[start..end]) {
                tally.add(row, usize::from(label));
            }
        }
        Ok(tally.evaluation(judged))
    }

    fn logits(
        &self,
        network: &Network,
        samples: &Samples,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<f32>, TrainError> {
        let shape = [rows.len(), self.task.shape().features()];
        let features = TensorData::new(samples.gather(rows), shape);
        let features = Tensor::from_data(features, &self.device.inference());
        let failed = |error: String| TrainError::Device(error);
        let logits = network.forward(features).try_into_data().map_err(|error| failed(error.to_string()))?;
        logits.try_into_vec().map_err(|error| failed(error.to_string()))
    }
}

#[derive(Default)]
struct Tally {
    correct: usize,
    loss: f64,
}

impl Tally {
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

    fn evaluation(&self, samples: usize) -> Evaluation {
        let count = samples.max(1) as f64;
        Evaluation { accuracy: self.correct as f64 / count, loss: self.loss / count, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_counts_the_lowest_largest_logit_and_loss_survives_large_logits() {
        let mut tally = Tally::default();
        tally.add(&[1.0, 3.0, 3.0], 1);
        tally.add(&[1000.0, 0.0, 0.0], 2);
        let evaluation = tally.evaluation(2);
        assert_eq!(evaluation.accuracy, 0.5);
        let first = (1.0 + 1.0 + (-2.0f64).exp()).ln();
        assert!((evaluation.loss - (first + 1000.0) / 2.0).abs() < 1e-9);
        assert_eq!(Tally::default().evaluation(0), Evaluation { accuracy: 0.0, loss: 0.0, samples: 0 });
    }
}
