//! All clients in one process, as with a server: the reference for rounds without a server.
#![allow(dead_code, clippy::unwrap_used)] // not every suite reads everything

use std::collections::BTreeMap;

use mingle_graphs::{
    CollaborationGraph, NodeClient, NodeData, NodeOptions, NodeScores, NodeSplit, Sharing, Signatures, aggregate,
    client_seed, weights,
};
use mingle_models::Device;

/// All clients of a federation in one place.
pub(crate) struct Federation {
    clients: Vec<NodeClient>,
    graph: CollaborationGraph,
    parameters: BTreeMap<usize, Vec<f32>>,
    /// The best scores of each client so far, and their parameters.
    best: Vec<(NodeScores, Vec<f32>)>,
    epochs: u32,
}

impl Federation {
    /// A federation of clients with these data, each split by `split_seed` and its number, that train `epochs` a round.
    pub(crate) fn new(
        options: &NodeOptions,
        data: &[NodeData],
        sharing: Sharing,
        (split_seed, epochs): (u64, u32),
        device: &Device,
    ) -> Self {
        let client = |(at, data): (usize, &NodeData)| {
            let split = NodeSplit::random(data.labels(), client_seed(split_seed, at));
            let options = NodeOptions { data_seed: client_seed(options.data_seed, at), ..*options };
            NodeClient::new(options, data, &split, device.clone()).unwrap()
        };
        let clients: Vec<NodeClient> = data.iter().enumerate().map(client).collect();
        let signatures: Vec<Signatures> = clients.iter().map(|client| client.signatures().clone()).collect();
        let counts: Vec<f64> = clients.iter().map(|client| client.training_nodes() as f64).collect();
        let graph = weights(sharing, &options.collaboration, &signatures, &counts).unwrap();
        let initial = clients.iter().map(|client| client.shape().initial_parameters(options.seed));
        let parameters: BTreeMap<usize, Vec<f32>> = initial.enumerate().collect();
        let best = parameters.values().map(|parameters| (NodeScores::default(), parameters.clone())).collect();
        Self { best, clients, graph, parameters, epochs }
    }

    /// The collaboration graph.
    pub(crate) fn graph(&self) -> &CollaborationGraph {
        &self.graph
    }

    /// The parameters with which each client continues.
    pub(crate) fn parameters(&self) -> &BTreeMap<usize, Vec<f32>> {
        &self.parameters
    }

    /// One round: all clients train and are evaluated, then parameters are aggregated.
    pub(crate) fn round(&mut self) {
        let mut trained = BTreeMap::new();
        for (at, client) in self.clients.iter_mut().enumerate() {
            let parameters = client.train(&self.parameters[&at], self.epochs).unwrap();
            let scores = client.evaluate(&parameters).unwrap();
            if is_better(&scores, &self.best[at].0) {
                self.best[at] = (scores, parameters.clone());
            }
            trained.insert(at, parameters);
        }
        for (at, client) in self.clients.iter().enumerate() {
            let next = aggregate(client.shape(), self.graph.of_client(at), &trained).unwrap();
            self.parameters.insert(at, next);
        }
    }

    /// The mean over clients of the test accuracy of their best models, each chosen by the client's own validation nodes.
    pub(crate) fn test(&self) -> Option<f64> {
        let of: Vec<f64> = self.best.iter().filter_map(|(scores, _)| scores.test.accuracy).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    }

    /// The scores of each client's best model by its own validation nodes, and its parameters.
    pub(crate) fn best(&self) -> &[(NodeScores, Vec<f32>)] {
        &self.best
    }
}

/// Returns `true` if scores are better than the best so far by the accuracy on the validation nodes. Without validation
/// nodes only the first scores are.
fn is_better(scores: &NodeScores, best: &NodeScores) -> bool {
    match (scores.validation.accuracy, best.validation.accuracy) {
        (Some(now), Some(before)) => now > before,
        (Some(_), None) => true,
        (None, _) => *best == NodeScores::default(),
    }
}
