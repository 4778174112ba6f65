//! One client: its subgraph, its bases, local training and evaluation.

use burn::Tensor;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn::tensor::{Bytes, Int, TensorData};
use mingle_models::{Device, flatten, number_parameters, unflatten};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bases::Bases;
use crate::error::ClientError;
use crate::homophily::estimated_homophily;
use crate::network::{BasisNetwork, Masks, NetworkShape};
use crate::node_data::NodeData;
use crate::options::NodeOptions;
use crate::scores::{NodeScores, Score};
use crate::signature::Signatures;
use crate::split::NodeSplit;

/// One client's part: its private subgraph and bases, and its two optimizers.
///
/// The parameters belong to the caller, who mixes them with those of others between calls; moments stay here. The same
/// options, data and calls give the same bits on the processor.
pub struct NodeClient {
    options: NodeOptions,
    shape: NetworkShape,
    device: Device,
    /// Bases of the training nodes, `[orders + 1, nodes, features]` order by order, and their classes.
    training: BasisRows,
    validation: BasisRows,
    test: BasisRows,
    signatures: Signatures,
    /// Remarks on these data for the user.
    notes: Vec<String>,
    estimated_homophily: f64,
    blank: BasisNetwork,
    filter: ModuleOptimizer,
    perceptron: ModuleOptimizer,
    /// The number of epochs done.
    epochs: u64,
}

/// Bases of some nodes, and their classes.
struct BasisRows {
    bases: Vec<f32>,
    labels: Vec<u16>,
}

impl NodeClient {
    /// A client with the nodes of `data`; `split` names those it trains on. Bases and signatures are computed here,
    /// once.
    ///
    /// # Errors
    ///
    /// Options out of bounds, no node to train on, fewer than two classes in all, or signatures that cannot be
    /// computed.
    pub fn new(options: NodeOptions, data: &NodeData, split: &NodeSplit, device: Device) -> Result<Self, ClientError> {
        options.check()?;
        if data.classes() < 2 {
            return Err(ClientError::Classes { classes: data.classes() });
        }
        if split.training.is_empty() {
            return Err(ClientError::NoTraining);
        }
        let mut is_training = vec![false; data.node_count()];
        split.training.iter().for_each(|&node| is_training[node as usize] = true);
        let homophily = estimated_homophily(data.graph(), data.labels(), &is_training);
        let bases = Bases::new(data.graph(), data.features(), data.feature_count(), options.orders, homophily);
        let signatures = Signatures::of(&bases, options.directions, options.seed)?;
        let shape = options.shape(data.feature_count(), data.classes());
        let mixed: Vec<Vec<f32>> = (0..=options.orders).map(|order| bases.mixed(order, options.tau)).collect();
        let rows = |nodes: &[u32]| BasisRows::of(&mixed, data, nodes);
        Ok(Self {
            training: rows(&split.training),
            validation: rows(&split.validation),
            test: rows(&split.test),
            notes: notes(data, &bases, &signatures),
            signatures,
            estimated_homophily: homophily,
            blank: number_parameters(BasisNetwork::blank(&shape, &device.training())),
            filter: adam(options.filter_decay),
            perceptron: adam(options.weight_decay),
            options,
            shape,
            device,
            epochs: 0,
        })
    }

    /// The sizes of the network.
    pub fn shape(&self) -> &NetworkShape {
        &self.shape
    }

    /// The signatures of the client's bases, which all clients receive.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Remarks on the data for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The number of training nodes.
    pub fn training_nodes(&self) -> usize {
        self.training.labels.len()
    }

    /// The homophily from which the bases were made.
    pub fn estimated_homophily(&self) -> f64 {
        self.estimated_homophily
    }

    /// Trains on all training nodes for some epochs, one step each, and returns the parameters after them.
    ///
    /// # Errors
    ///
    /// Parameters of another length, or the device fails. Divergence is no error: look at the parameters.
    pub fn train(&mut self, parameters: &[f32], epochs: u32) -> Result<Vec<f32>, ClientError> {
        self.check(parameters)?;
        let device = self.device.training();
        let mut network = unflatten(self.blank.clone(), parameters, &device);
        let bases = self.training.tensor(&self.shape, &device);
        let labels: Tensor<1, Int> = self.training.classes(&device);
        for _ in 0..epochs {
            let logits = network.forward(bases.clone(), &self.masks(&device));
            let loss = CrossEntropyLossConfig::new().init(&device).forward(logits, labels.clone());
            let mut gradients = loss.backward();
            let of_filter = GradientsParams::from_params(&mut gradients, &network, &network.of_filter());
            let of_perceptron = GradientsParams::from_params(&mut gradients, &network, &network.of_perceptron());
            network = self.filter.step(self.options.filter_rate, network, of_filter);
            network = self.perceptron.step(self.options.learning_rate, network, of_perceptron);
            self.epochs += 1;
        }
        let mut trained = Vec::with_capacity(parameters.len());
        flatten(network, &mut trained).map_err(ClientError::Device)?;
        Ok(trained)
    }

    /// The scores of parameters on the nodes that are not trained on.
    ///
    /// # Errors
    ///
    /// Those of [`train`](Self::train).
    pub fn evaluate(&self, parameters: &[f32]) -> Result<NodeScores, ClientError> {
        self.check(parameters)?;
        let device = self.device.inference();
        let network = unflatten(self.blank.clone(), parameters, &device);
        let score = |rows: &BasisRows| -> Result<Score, ClientError> {
            if rows.labels.is_empty() {
                return Ok(Score::default());
            }
            let logits = network.forward(rows.tensor(&self.shape, &device), &Masks::default());
            let logits = logits.try_into_data().map_err(|error| ClientError::Device(error.to_string()))?;
            let logits = logits.as_slice::<f32>().map_err(|error| ClientError::Device(error.to_string()))?;
            Ok(Score::of(logits, &rows.labels, self.shape.classes))
        };
        Ok(NodeScores { validation: score(&self.validation)?, test: score(&self.test)? })
    }

    /// The state from which [`restore`](Self::restore) continues: epochs done, and the moments of both optimizers.
    ///
    /// # Errors
    ///
    /// They cannot be read from the device.
    pub fn state(&self) -> Result<Vec<u8>, ClientError> {
        let mut state = self.epochs.to_le_bytes().to_vec();
        if self.epochs == 0 {
            return Ok(state);
        }
        let record = |optimizer: &ModuleOptimizer| {
            optimizer.to_record().into_bytes().map_err(|error| ClientError::Device(error.to_string()))
        };
        let filter = record(&self.filter)?;
        let perceptron = record(&self.perceptron)?;
        state.extend((filter.len() as u64).to_le_bytes());
        state.extend_from_slice(&filter);
        state.extend_from_slice(&perceptron);
        Ok(state)
    }

    /// Continues from the `state` of a client of the same options and data.
    ///
    /// # Errors
    ///
    /// The bytes are no state of such a client; this one is then unchanged.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), ClientError> {
        let (epochs, rest) = state.split_first_chunk().ok_or(ClientError::State)?;
        let fresh = || (adam(self.options.filter_decay), adam(self.options.weight_decay));
        let (filter, perceptron) = if rest.is_empty() {
            fresh()
        } else {
            let (length, rest) = rest.split_first_chunk().ok_or(ClientError::State)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| ClientError::State)?;
            let (filter, perceptron) = rest.split_at_checked(length).ok_or(ClientError::State)?;
            let read = |bytes: &[u8]| {
                OptimizerRecord::from_bytes(Bytes::from_bytes_vec(bytes.to_vec())).map_err(|_| ClientError::State)
            };
            let (blank_filter, blank_perceptron) = fresh();
            (blank_filter.load_record(read(filter)?), blank_perceptron.load_record(read(perceptron)?))
        };
        self.filter = filter;
        self.perceptron = perceptron;
        self.epochs = u64::from_le_bytes(*epochs);
        Ok(())
    }

    fn check(&self, parameters: &[f32]) -> Result<(), ClientError> {
        let expected = self.shape.parameters();
        let found = parameters.len();
        if expected == found { Ok(()) } else { Err(ClientError::Parameters { expected, found }) }
    }

    /// The dropout masks of the next epoch: a function of the seed and of the epochs done.
    fn masks(&self, device: &burn::tensor::Device) -> Masks {
        let mut rng = ChaCha8Rng::seed_from_u64(self.options.data_seed);
        rng.set_stream(self.epochs);
        let nodes = self.training_nodes();
        let NetworkShape { orders, features, .. } = self.shape;
        let bases = mask(&mut rng, self.options.basis_dropout, (orders + 1) * nodes * features)
            .map(|mask| Tensor::from_data(TensorData::new(mask, [orders + 1, nodes, features]), device));
        let layer = |(inputs, _)| {
            let mask = mask(&mut rng, self.options.dropout, nodes * inputs)?;
            Some(Tensor::from_data(TensorData::new(mask, [nodes, inputs]), device))
        };
        Masks { bases, layers: self.shape.widths().map(layer).collect() }
    }

    /// The flat gradient of the loss on the training nodes without dropout.
    #[cfg(test)]
    pub(crate) fn gradient(&self, parameters: &[f32]) -> Vec<f32> {
        use burn::module::{Module, ModuleVisitor, Param};

        struct Collect<'a>(&'a mut GradientsParams, Vec<f32>);
        impl ModuleVisitor for Collect<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let gradient = self.0.remove::<D>(param.id).map(|gradient| gradient.into_data());
                let values = gradient.and_then(|data| data.as_slice::<f32>().ok().map(<[f32]>::to_vec));
                self.1.extend(values.unwrap_or_default());
            }
        }

        let device = self.device.training();
        let network = unflatten(self.blank.clone(), parameters, &device);
        let logits = network.forward(self.training.tensor(&self.shape, &device), &Masks::default());
        let loss = CrossEntropyLossConfig::new().init(&device).forward(logits, self.training.classes(&device));
        let mut gradients = GradientsParams::from_grads(loss.backward(), &network);
        let mut collect = Collect(&mut gradients, Vec::new());
        network.visit(&mut collect);
        collect.1
    }

    /// Bases of the training nodes, order by order, and their classes.
    #[cfg(test)]
    pub(crate) fn training_rows(&self) -> (&[f32], &[u16]) {
        (&self.training.bases, &self.training.labels)
    }
}

impl BasisRows {
    fn of(mixed: &[Vec<f32>], data: &NodeData, nodes: &[u32]) -> Self {
        let columns = data.feature_count();
        let row = |basis: &Vec<f32>, node: u32| basis[node as usize * columns..][..columns].to_vec();
        let bases = mixed.iter().flat_map(|basis| nodes.iter().flat_map(move |&node| row(basis, node))).collect();
        // A split has labelled nodes alone.
        Self { bases, labels: nodes.iter().filter_map(|&node| data.labels()[node as usize]).collect() }
    }

    fn tensor(&self, shape: &NetworkShape, device: &burn::tensor::Device) -> Tensor<3> {
        let sizes = [shape.orders + 1, self.labels.len(), shape.features];
        Tensor::from_data(TensorData::new(self.bases.clone(), sizes), device)
    }

    fn classes(&self, device: &burn::tensor::Device) -> Tensor<1, Int> {
        let numbers: Vec<i32> = self.labels.iter().copied().map(i32::from).collect();
        Tensor::from_data(TensorData::new(numbers, [self.labels.len()]), device)
    }
}

/// Adam with the moments and the epsilon of PyTorch; decay is part of the gradient.
fn adam(decay: f64) -> ModuleOptimizer {
    let decay = (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32));
    AdamConfig::new().with_epsilon(1e-8).with_weight_decay(decay).init()
}

/// A dropout mask: zero with probability `dropout`, else one over the share that is kept. `None` without dropout.
fn mask(rng: &mut ChaCha8Rng, dropout: f32, count: usize) -> Option<Vec<f32>> {
    if dropout == 0.0 {
        return None;
    }
    let below = (dropout * 65_536.0) as u64;
    let kept = 1.0 / (1.0 - dropout);
    let mut mask = Vec::with_capacity(count.next_multiple_of(4));
    while mask.len() < count {
        let word: u64 = rng.random();
        mask.extend((0..4).map(|part| if (word >> (16 * part)) & 0xffff < below { 0.0 } else { kept }));
    }
    mask.truncate(count);
    Some(mask)
}

fn notes(data: &NodeData, bases: &Bases, signatures: &Signatures) -> Vec<String> {
    let mut notes = data.notes();
    if let Some(order) = bases.breakdowns().iter().position(|&broken| broken > 0) {
        let broken = bases.breakdowns()[order];
        notes.push(format!(
            "{broken} columns of features find no new direction from order {order} on: their bases lose the angle there"
        ));
    }
    if signatures.missing() > 0 {
        notes.push(format!(
            "{} directions of signatures are not there: fewer nodes, or features of lower rank, than directions",
            signatures.missing()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::example::two_characters;

    /// The loss, in f64 and without tensors.
    fn loss(shape: &NetworkShape, parameters: &[f64], bases: &[f32], labels: &[u16]) -> f64 {
        let nodes = labels.len();
        let mut sum = 0.0;
        for (node, label) in labels.iter().enumerate() {
            let mut values: Vec<f64> = (0..shape.features)
                .map(|channel| {
                    let of = |order: usize| {
                        parameters[order * shape.features + channel]
                            * f64::from(bases[(order * nodes + node) * shape.features + channel])
                    };
                    (0..=shape.orders).map(of).sum()
                })
                .collect();
            let mut at = shape.coefficients();
            for (layer, (inputs, outputs)) in shape.widths().enumerate() {
                let weights = &parameters[at..at + inputs * outputs];
                at += inputs * outputs;
                let mut next: Vec<f64> = (0..outputs)
                    .map(|output| (0..inputs).map(|input| values[input] * weights[input * outputs + output]).sum())
                    .collect();
                if layer + 1 < shape.layers {
                    next.iter_mut().for_each(|value: &mut f64| *value = value.max(0.0));
                    if inputs == outputs {
                        next.iter_mut().zip(&values).for_each(|(value, before)| *value += before);
                    }
                }
                values = next;
            }
            let largest = values.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = values.iter().map(|value| (value - largest).exp()).sum();
            sum += total.ln() + largest - values[usize::from(*label)];
        }
        sum / nodes as f64
    }

    #[test]
    fn the_gradient_of_filter_and_perceptron_is_that_of_differences() {
        let data = two_characters(1).induced(&(0..60).collect::<Vec<u32>>());
        let options = NodeOptions { orders: 2, directions: 2, hidden: 6, layers: 3, ..NodeOptions::default() };
        let split = NodeSplit::random(data.labels(), 1);
        let device = mingle_models::DeviceName::Cpu.open().unwrap();
        let client = NodeClient::new(options, &data, &split, device).unwrap();
        let parameters = client.shape().initial_parameters(5);
        let gradient = client.gradient(&parameters);
        assert_eq!(gradient.len(), parameters.len());
        let (bases, labels) = client.training_rows();
        let wide: Vec<f64> = parameters.iter().map(|value| f64::from(*value)).collect();
        for at in (0..parameters.len()).step_by(3) {
            let moved = |by: f64| {
                let mut moved = wide.clone();
                moved[at] += by;
                loss(client.shape(), &moved, bases, labels)
            };
            let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((difference - f64::from(gradient[at])).abs() < 2e-5, "{at}: {difference} {}", gradient[at]);
        }
    }
}
