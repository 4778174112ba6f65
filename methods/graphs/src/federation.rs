//! All clients in one process, as with a server: the reference for rounds without a server.

use std::collections::BTreeMap;

use mingle_models::Device;

use crate::aggregation::aggregate;
use crate::client::NodeClient;
use crate::collaboration::{CollaborationGraph, CollaborationMode, CollaborationOptions};
use crate::error::ClientError;
use crate::node_data::NodeData;
use crate::options::NodeOptions;
use crate::scores::{NodeScores, Score};
use crate::signature::Signatures;
use crate::split::NodeSplit;

/// The rule by which clients' parameters are combined after each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No sharing: each client learns alone.
    Local,
    /// The mean of all, weighed by training nodes (FedAvg).
    Average,
    /// Personal weights by signatures.
    Collaboration(CollaborationMode),
}

/// All clients of a federation in one place.
pub struct Federation {
    clients: Vec<NodeClient>,
    graph: CollaborationGraph,
    parameters: BTreeMap<usize, Vec<f32>>,
    /// The best scores of each client so far, and their parameters.
    best: Vec<(NodeScores, Vec<f32>)>,
    epochs: u32,
}

impl Federation {
    /// A federation of clients with these data, each split by `split_seed` and its number, that train `epochs` a round.
    ///
    /// # Errors
    ///
    /// The first client that fails, and its error.
    pub fn new(
        options: &NodeOptions,
        data: &[NodeData],
        sharing: Sharing,
        (split_seed, epochs): (u64, u32),
        device: &Device,
    ) -> Result<Self, (usize, ClientError)> {
        let mut clients = Vec::with_capacity(data.len());
        for (at, data) in data.iter().enumerate() {
            let split = NodeSplit::random(data.labels(), client_seed(split_seed, at));
            let options = NodeOptions { data_seed: client_seed(options.data_seed, at), ..*options };
            clients.push(NodeClient::new(options, data, &split, device.clone()).map_err(|error| (at, error))?);
        }
        let signatures: Vec<Signatures> = clients.iter().map(|client| client.signatures().clone()).collect();
        let counts: Vec<f64> = clients.iter().map(|client| client.training_nodes() as f64).collect();
        let graph = weights(sharing, &options.collaboration, &signatures, &counts).map_err(|error| (0, error))?;
        let initial = clients.iter().map(|client| client.shape().initial_parameters(options.seed));
        let parameters: BTreeMap<usize, Vec<f32>> = initial.enumerate().collect();
        let best = parameters.values().map(|parameters| (NodeScores::default(), parameters.clone())).collect();
        Ok(Self { best, clients, graph, parameters, epochs })
    }

    /// The collaboration graph.
    pub fn graph(&self) -> &CollaborationGraph {
        &self.graph
    }

    /// The parameters with which each client continues.
    pub fn parameters(&self) -> &BTreeMap<usize, Vec<f32>> {
        &self.parameters
    }

    /// The clients.
    pub fn clients(&self) -> &[NodeClient] {
        &self.clients
    }

    /// One round: all clients train and are evaluated, then parameters are aggregated.
    ///
    /// # Errors
    ///
    /// The first client that fails, and its error.
    pub fn round(&mut self, metric: NodeMetric) -> Result<(), (usize, ClientError)> {
        let mut trained = BTreeMap::new();
        for (at, client) in self.clients.iter_mut().enumerate() {
            let parameters = client.train(&self.parameters[&at], self.epochs).map_err(|error| (at, error))?;
            let scores = client.evaluate(&parameters).map_err(|error| (at, error))?;
            if metric.is_better(&scores, &self.best[at].0) {
                self.best[at] = (scores, parameters.clone());
            }
            trained.insert(at, parameters);
        }
        for (at, client) in self.clients.iter().enumerate() {
            let next = aggregate(client.shape(), self.graph.of_client(at), &trained);
            self.parameters.insert(at, next.map_err(|error| (at, error.into()))?);
        }
        Ok(())
    }

    /// The mean over clients of the test score of their best models, each chosen by the client's own validation nodes.
    pub fn test(&self, metric: NodeMetric) -> Option<f64> {
        let of: Vec<f64> = self.best.iter().filter_map(|(scores, _)| metric.of(&scores.test)).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    }

    /// The scores of each client's best model by its own validation nodes, and its parameters.
    pub fn best(&self) -> &[(NodeScores, Vec<f32>)] {
        &self.best
    }
}

/// The seed of a client, derived from one for all.
pub fn client_seed(seed: u64, client: usize) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(client as u64)
}

/// The weights of clients with these signatures and numbers of training nodes.
///
/// # Errors
///
/// Options out of bounds, or signatures of different shapes.
pub fn weights(
    sharing: Sharing,
    options: &CollaborationOptions,
    signatures: &[Signatures],
    counts: &[f64],
) -> Result<CollaborationGraph, ClientError> {
    let orders = signatures.first().map_or(0, |signatures| signatures.shape().orders);
    match sharing {
        Sharing::Local => Ok(CollaborationGraph::local(counts.len(), orders)),
        Sharing::Average => Ok(CollaborationGraph::average(counts, orders)),
        Sharing::Collaboration(mode) => {
            Ok(CollaborationGraph::of(signatures, &CollaborationOptions { mode, ..*options })?)
        }
    }
}

/// The measure by which models are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeMetric {
    /// The share of nodes that are classified correctly.
    #[default]
    Accuracy,
    /// The area under the curve, for two classes of very different frequency.
    Auc,
}

impl NodeMetric {
    /// The value of a score by this measure.
    pub fn of(self, score: &Score) -> Option<f64> {
        match self {
            Self::Accuracy => score.accuracy,
            Self::Auc => score.auc,
        }
    }

    /// Returns `true` if scores are better than the best so far by the validation nodes. Without validation nodes only
    /// the first scores are.
    pub fn is_better(self, scores: &NodeScores, best: &NodeScores) -> bool {
        match (self.of(&scores.validation), self.of(&best.validation)) {
            (Some(now), Some(before)) => now > before,
            (Some(_), None) => true,
            (None, _) => *best == NodeScores::default(),
        }
    }
}
