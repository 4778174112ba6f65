//! The options that all clients share before they train.

use serde::{Deserialize, Serialize};

use crate::collaboration::CollaborationOptions;
use crate::error::ClientError;
use crate::network::NetworkShape;

/// The options of a client's filter and training. All but `data_seed` are equal at all clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeOptions {
    /// The highest order of bases, 1 to 32.
    pub orders: usize,
    /// The number of directions of each basis in a signature, 1 to 64.
    pub directions: usize,
    /// The share of homophily bases in the filter's input, in `[0, 1]`.
    pub tau: f32,
    /// Width of the hidden layers.
    pub hidden: usize,
    /// Layers of the perceptron.
    pub layers: usize,
    /// Step size of the perceptron.
    pub learning_rate: f64,
    /// Weight decay of the perceptron.
    pub weight_decay: f64,
    /// Step size of the coefficients.
    pub filter_rate: f64,
    /// Weight decay of the coefficients.
    pub filter_decay: f64,
    /// The share of the bases that is dropped in training, below 1.
    pub basis_dropout: f32,
    /// The share of each layer's input that is dropped, below 1.
    pub dropout: f32,
    /// The seed of initial parameters and of projections.
    pub seed: u64,
    /// The seed of dropout; give each client its own.
    pub data_seed: u64,
    /// The options of the weights from signatures.
    pub collaboration: CollaborationOptions,
}

impl Default for NodeOptions {
    /// The options of the published code for Cora in ten parts, with a narrower perceptron and smaller steps.
    fn default() -> Self {
        Self {
            orders: 7,
            directions: 3,
            tau: 0.7,
            hidden: 64,
            layers: 3,
            learning_rate: 0.01,
            weight_decay: 5e-4,
            filter_rate: 0.01,
            filter_decay: 5e-4,
            basis_dropout: 0.3,
            dropout: 0.3,
            seed: 1,
            data_seed: 1,
            collaboration: CollaborationOptions::default(),
        }
    }
}

impl NodeOptions {
    /// The network of clients with these features and classes.
    pub fn shape(&self, features: usize, classes: usize) -> NetworkShape {
        NetworkShape { orders: self.orders, features, hidden: self.hidden, layers: self.layers, classes }
    }

    /// Checks that all options are within bounds.
    ///
    /// # Errors
    ///
    /// The first option that is not.
    pub fn check(&self) -> Result<(), ClientError> {
        let bounded = |option, value: f64, holds: bool, bounds| match holds && value.is_finite() {
            true => Ok(()),
            false => Err(ClientError::Option { option, value, bounds }),
        };
        bounded("orders", self.orders as f64, (1..=32).contains(&self.orders), "from 1 to 32")?;
        bounded("directions", self.directions as f64, (1..=64).contains(&self.directions), "from 1 to 64")?;
        bounded("tau", f64::from(self.tau), (0.0..=1.0).contains(&self.tau), "from 0 to 1")?;
        bounded("hidden", self.hidden as f64, (1..=8192).contains(&self.hidden), "from 1 to 8192")?;
        bounded("layers", self.layers as f64, (1..=16).contains(&self.layers), "from 1 to 16")?;
        bounded("learning-rate", self.learning_rate, self.learning_rate > 0.0, "above 0")?;
        bounded("filter-rate", self.filter_rate, self.filter_rate > 0.0, "above 0")?;
        bounded("weight-decay", self.weight_decay, self.weight_decay >= 0.0, "at least 0")?;
        bounded("filter-decay", self.filter_decay, self.filter_decay >= 0.0, "at least 0")?;
        let share = |share: f32| (0.0..1.0).contains(&share);
        bounded("basis-dropout", f64::from(self.basis_dropout), share(self.basis_dropout), "at least 0 and below 1")?;
        bounded("dropout", f64::from(self.dropout), share(self.dropout), "at least 0 and below 1")?;
        Ok(self.collaboration.check()?)
    }
}
