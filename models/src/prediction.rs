//! Predictions of the class or quantity of unlabelled samples.

use burn::Tensor;
use burn::tensor::TensorData;

use crate::device::Device;
use crate::flatten::unflatten;
use crate::model::BuiltinNetwork;
use crate::task::Task;
use crate::train_error::TrainError;
use mingle_datasets::DataCard;

/// A model with its parameters, ready to predict.
///
/// ```
/// use mingle_models::{DataSource, DeviceName, Prediction, Predictor, Task};
///
/// let data = "digits".parse::<DataSource>()?.load(0)?;
/// let task = Task::new("softmax".parse()?, data.train.shape(), data.train.classes())?;
/// let device = "cpu".parse::<DeviceName>()?.open()?;
/// let predictor = Predictor::new(task, &device, &task.initial_parameters(0))?;
/// let predictions = predictor.predict(data.test.gather(0..2), &data.card)?;
/// let Prediction::Class { probabilities, .. } = &predictions[0] else { panic!("digits are classes") };
/// assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Predictor {
    task: Task,
    device: Device,
    network: BuiltinNetwork,
}

/// The prediction for one sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// A class, from a classifier.
    Class {
        /// The class with the largest probability, the lowest such class on ties.
        class: usize,
        /// The probability of each class, by the softmax of the outputs; their sum is 1.
        probabilities: Vec<f64>,
    },
    /// A quantity, from a regression, in the units of the data.
    Quantity(f64),
}

impl Predictor {
    /// A predictor from the model of `task` with these flat parameters, `[dimension]`.
    ///
    /// # Errors
    ///
    /// [`TrainError::Task`] when the number of parameters is not that of the model.
    pub fn new(task: Task, device: &Device, parameters: &[f32]) -> Result<Self, TrainError> {
        task.check(parameters)?;
        let network = unflatten(task.blank(), parameters, &device.inference());
        Ok(Self { task, device: device.clone(), network })
    }

    /// Predicts the rows of `features`, `[rows, features]`, which are scaled by `card`. Time and memory are those
    /// of one batch of so many rows.
    ///
    /// # Errors
    ///
    /// [`TrainError::Device`] when the device fails.
    ///
    /// # Panics
    ///
    /// When the features are not whole rows.
    pub fn predict(&self, features: Vec<f32>, card: &DataCard) -> Result<Vec<Prediction>, TrainError> {
        let rows = features.len() / self.task.shape().features();
        if rows == 0 {
            return Ok(Vec::new());
        }
        let features = TensorData::new(features, [rows, self.task.shape().features()]);
        let features = Tensor::from_data(features, &self.device.inference());
        let failed = |error: String| TrainError::Device(error);
        let outputs = self.network.forward(features).try_into_data().map_err(|error| failed(error.to_string()))?;
        let outputs: Vec<f32> = outputs.try_into_vec().map_err(|error| failed(error.to_string()))?;
        Ok(outputs.chunks_exact(self.task.objective().outputs()).map(|row| of_row(row, card)).collect())
    }
}

/// The prediction that stands for the outputs of one sample.
fn of_row(outputs: &[f32], card: &DataCard) -> Prediction {
    if let Some(target) = card.target() {
        return Prediction::Quantity(f64::from(outputs[0]) * target.deviation() + target.mean());
    }
    let mut class = 0;
    for (index, output) in outputs.iter().enumerate() {
        if *output > outputs[class] {
            class = index;
        }
    }
    // With the largest taken out, no exponential overflows.
    let largest = f64::from(outputs[class]);
    let weights: Vec<f64> = outputs.iter().map(|&output| (f64::from(output) - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    Prediction::Class { class, probabilities: weights.iter().map(|weight| weight / sum).collect() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use mingle_datasets::Target;

    #[test]
    fn outputs_mean_classes_with_probabilities_or_a_quantity_in_its_units() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let classes = DataCard::of_table(names(["a", "b"]), names(["x", "y"]), &[0.0; 2], &[1.0; 2]).unwrap();
        let Prediction::Class { class, probabilities } = of_row(&[1000.0, 1000.0 + 3f32.ln()], &classes) else {
            panic!("these are classes")
        };
        assert_eq!(class, 1);
        assert!((probabilities[0] - 0.25).abs() < 1e-4 && (probabilities[1] - 0.75).abs() < 1e-4, "{probabilities:?}");
        let target = Target::new("price".to_owned(), 10.0, 2.0).unwrap();
        let quantity = DataCard::of_regression(names(["a", "b"]), target, &[0.0; 2], &[1.0; 2]).unwrap();
        assert_eq!(of_row(&[1.5], &quantity), Prediction::Quantity(13.0));
    }
}
