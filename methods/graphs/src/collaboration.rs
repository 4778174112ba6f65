//! The collaboration graph: the weights by which each client takes the models of others (FedGSP's appendix, section
//! III).
//!
//! Clients whose homophily bases point the same way should share; those whose heterophily bases differ complement each
//! other. The printed objective has weights `W` (rows on the simplex), diagonal `R` and `S` (on the simplex too), and
//! signatures `p` and `q` ([`Signatures`]):
//!
//! ```text
//! min  sum_ij ( |R p_i - R p_j|^2 - |S q_i - S q_j|^2 ) w_ij + gamma |W|^2
//! ```
//!
//! Taken literally (`paper`) it degenerates: `R` finds the coordinates that are the same everywhere, all distances
//! vanish, and `W` is uniform. The printed `S` maximises what it should minimise ([`steps`] proves both). `angle`, the
//! default, compares directions instead, as the published code does in effect. `robust` leaves constant coordinates out
//! and scales distances. All three give the same bits everywhere for the same signatures.

mod angle;
mod distances;
mod simplex;
pub mod steps;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use simplex::project_onto_simplex;

use crate::signature::{SignatureShape, Signatures};

/// The rule for weights from signatures, as the user writes it: `paper`, `angle` or `robust`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CollaborationMode {
    /// The printed algorithm, literally.
    Paper,
    /// Angles between matched directions.
    #[default]
    Angle,
    /// Distances over informative coordinates, scaled.
    Robust,
}

/// The text names no mode.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown collaboration {0:?}: write angle, robust or paper")]
pub struct UnknownMode(String);

/// The parameters of the weights beside signatures; equal at all clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollaborationOptions {
    /// The rule for weights.
    pub mode: CollaborationMode,
    /// The weight of differing heterophily bases in `angle`; at least 0.
    pub alpha: f64,
    /// The weight of similar homophily bases in `angle`; at least 0.
    pub beta: f64,
    /// The strength of the pull towards equal weights; above 0.
    pub gamma: f64,
    /// The share of its own model that a client keeps whatever the signatures say, in `[0, 1]`.
    pub self_floor: f64,
    /// The most clients from which one takes models, itself included; at least 1.
    pub most_weights: usize,
}

impl Default for CollaborationOptions {
    fn default() -> Self {
        Self { mode: CollaborationMode::Angle, alpha: 0.25, beta: 2.2, gamma: 1.6, self_floor: 0.0, most_weights: 4 }
    }
}

/// Errors of making a collaboration graph.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CollaborationError {
    /// There are no clients.
    #[error("there are no clients")]
    NoClients,
    /// Signatures have different sizes.
    #[error(
        "the signatures of client {client} have another shape than those of client 0: all clients need the same features, orders and directions"
    )]
    Shape { client: usize },
    /// A setting is out of bounds.
    #[error("{option} is {value}, and has to be {bounds}")]
    Option { option: &'static str, value: f64, bounds: &'static str },
}

/// Weights of clients, row by row: the weight in client `i` of the model of client `j`. Rows are on the simplex.
pub type WeightMatrix = Vec<Vec<f64>>;

/// Weights for the coefficients of each order, and for everything else.
#[derive(Clone, Debug, PartialEq)]
pub struct CollaborationGraph {
    all: WeightMatrix,
    orders: Vec<WeightMatrix>,
}

/// The weights in one client: its row of each matrix.
#[derive(Clone, Copy, Debug)]
pub struct PersonalWeights<'a> {
    graph: &'a CollaborationGraph,
    client: usize,
}

impl CollaborationGraph {
    /// The weights for clients with these signatures: a function of its arguments alone, to the bit.
    /// `O(passes * clients^2 * numbers of a signature)`.
    ///
    /// # Errors
    ///
    /// No clients, signatures of different shapes, options out of bounds.
    pub fn of(signatures: &[Signatures], options: &CollaborationOptions) -> Result<Self, CollaborationError> {
        options.check()?;
        let shape = signatures.first().ok_or(CollaborationError::NoClients)?.shape();
        if let Some(client) = signatures.iter().position(|other| other.shape() != shape) {
            return Err(CollaborationError::Shape { client });
        }
        let orders: Vec<WeightMatrix> =
            (1..=shape.orders).map(|order| weights(signatures, order..=order, options)).collect();
        let all = weights(signatures, 1..=shape.orders, options);
        let mut graph = Self { all, orders };
        graph.keep_own(options.self_floor);
        graph.limit(options.most_weights);
        Ok(graph)
    }

    /// The graph in which each client keeps its own model.
    pub fn local(clients: usize, orders: usize) -> Self {
        let row = |client| (0..clients).map(|other| f64::from(u8::from(other == client))).collect();
        Self::same((0..clients).map(row).collect(), orders)
    }

    /// The graph in which each client takes the mean of all, weighed by these counts (FedAvg; McMahan et al. 2017).
    pub fn average(counts: &[f64], orders: usize) -> Self {
        let total: f64 = counts.iter().sum();
        let row: Vec<f64> = counts.iter().map(|count| count / total).collect();
        Self::same(vec![row; counts.len()], orders)
    }

    fn same(all: WeightMatrix, orders: usize) -> Self {
        Self { orders: vec![all.clone(); orders], all }
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.all.len()
    }

    /// The weights of the parameters that belong to no order.
    pub fn all(&self) -> &WeightMatrix {
        &self.all
    }

    /// The weights of the coefficients of each order, from 1.
    pub fn orders(&self) -> &[WeightMatrix] {
        &self.orders
    }

    /// The weights in one client.
    pub fn of_client(&self, client: usize) -> PersonalWeights<'_> {
        PersonalWeights { graph: self, client }
    }

    /// A hash of all weights, bit by bit, by which clients compare their results.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for weight in self.matrices().flatten().flatten() {
            hasher.update(&weight.to_bits().to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn matrices(&self) -> impl Iterator<Item = &WeightMatrix> {
        std::iter::once(&self.all).chain(&self.orders)
    }

    fn matrices_mut(&mut self) -> impl Iterator<Item = &mut WeightMatrix> {
        std::iter::once(&mut self.all).chain(&mut self.orders)
    }

    /// `W <- (1 - floor) W + floor I`.
    fn keep_own(&mut self, floor: f64) {
        for matrix in self.matrices_mut() {
            for (client, row) in matrix.iter_mut().enumerate() {
                row.iter_mut().for_each(|weight| *weight *= 1.0 - floor);
                row[client] += floor;
            }
        }
    }

    /// Keeps for each client the `most` others with the largest weight over all its rows, and projects their weights
    /// onto the simplex again.
    fn limit(&mut self, most: usize) {
        for client in 0..self.clients() {
            let total = |other: usize| self.matrices().map(|matrix| matrix[client][other]).sum::<f64>();
            let mut others: Vec<(usize, f64)> = (0..self.clients()).map(|other| (other, total(other))).collect();
            if others.iter().filter(|(_, weight)| *weight > 0.0).count() <= most {
                continue;
            }
            // A stable sort: of equals the lowest index is kept.
            others.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            let kept: Vec<usize> = others.into_iter().take(most).map(|(other, _)| other).collect();
            for matrix in self.matrices_mut() {
                let row = &mut matrix[client];
                let projected = project_onto_simplex(&kept.iter().map(|&other| row[other]).collect::<Vec<_>>());
                row.fill(0.0);
                kept.iter().zip(projected).for_each(|(&other, weight)| row[other] = weight);
            }
        }
    }
}

impl PersonalWeights<'_> {
    /// The client.
    pub fn client(&self) -> usize {
        self.client
    }

    /// The weight of each client for the parameters that belong to no order.
    pub fn of_all(&self) -> &[f64] {
        &self.graph.all[self.client]
    }

    /// The weight of each client for the coefficients of an order from 1.
    pub fn of_order(&self, order: usize) -> &[f64] {
        &self.graph.orders[order - 1][self.client]
    }

    /// The clients with any weight above 0, ascending.
    pub fn sources(&self) -> Vec<usize> {
        let is_source = |other: &usize| self.graph.matrices().any(|matrix| matrix[self.client][*other] > 0.0);
        (0..self.graph.clients()).filter(is_source).collect()
    }
}

impl CollaborationOptions {
    /// Checks that all settings are within bounds.
    ///
    /// # Errors
    ///
    /// The first setting that is not.
    pub fn check(&self) -> Result<(), CollaborationError> {
        let bounded = |option, value: f64, holds: bool, bounds| match holds && value.is_finite() {
            true => Ok(()),
            false => Err(CollaborationError::Option { option, value, bounds }),
        };
        bounded("alpha", self.alpha, self.alpha >= 0.0, "at least 0")?;
        bounded("beta", self.beta, self.beta >= 0.0, "at least 0")?;
        bounded("gamma", self.gamma, self.gamma > 0.0, "above 0")?;
        bounded("self-floor", self.self_floor, (0.0..=1.0).contains(&self.self_floor), "from 0 to 1")?;
        bounded("most-weights", self.most_weights as f64, self.most_weights > 0, "at least 1")
    }
}

/// The weights from the signatures of some orders.
fn weights(
    signatures: &[Signatures],
    orders: std::ops::RangeInclusive<usize>,
    options: &CollaborationOptions,
) -> WeightMatrix {
    let joined = |part: fn(&Signatures, usize) -> &[f64]| -> Vec<Vec<f64>> {
        let of_client = |client: &Signatures| orders.clone().flat_map(|order| part(client, order)).copied().collect();
        signatures.iter().map(of_client).collect()
    };
    let p = joined(Signatures::homophily);
    let q = joined(Signatures::heterophily);
    let SignatureShape { directions, dimension, .. } = signatures[0].shape();
    match options.mode {
        CollaborationMode::Paper => distances::paper(&p, &q, options.gamma),
        CollaborationMode::Robust => distances::robust(&p, &q, options.gamma),
        CollaborationMode::Angle => angle::weights(&p, &q, (directions, dimension), options),
    }
}

impl CollaborationMode {
    const ALL: [Self; 3] = [Self::Paper, Self::Angle, Self::Robust];

    const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Angle => "angle",
            Self::Robust => "robust",
        }
    }
}

impl FromStr for CollaborationMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

impl fmt::Display for CollaborationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
