//! One peer's part in node classification.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_graphs::{
    CollaborationGraph, NodeClient, NodeData, NodeOptions, NodeScores, NodeSplit, SignatureShape, Signatures,
    aggregate, client_seed, weights,
};
use mingle_models::Device;
use mingle_solving::{Aggregation, LearningError, RoundLearning, StatisticsTable};
use serde::{Deserialize, Serialize};

use super::NodesFile;
use super::picture::collaboration_svg;

/// The metrics after each round: on the validation nodes, which choose the best model, on the test nodes, and on the
/// test nodes by the best model so far.
pub(super) const METRICS: [&str; 3] = ["validation", "test", "test_at_best"];

pub(super) struct NodeLearner {
    file: NodesFile,
    data: NodeData,
    node: usize,
    names: Vec<String>,
    device: Device,
    client: Option<NodeClient>,
    graph: Option<CollaborationGraph>,
    /// The parameters from which training goes on.
    parameters: Vec<f32>,
    scores: Option<NodeScores>,
    best: Option<ValidationBest>,
}

/// The best model by this peer's own validation nodes.
#[derive(Clone, Serialize, Deserialize)]
struct ValidationBest {
    parameters: Vec<f32>,
    validation: Option<f64>,
    test: Option<f64>,
}

/// The state that later rounds depend on.
#[derive(Serialize, Deserialize)]
struct LearnerState {
    client: Vec<u8>,
    parameters: Vec<f32>,
    best: Option<ValidationBest>,
}

impl NodeLearner {
    pub(super) fn new(file: NodesFile, data: NodeData, node: usize, names: Vec<String>, device: Device) -> Self {
        Self {
            file,
            data,
            node,
            names,
            device,
            client: None,
            graph: None,
            parameters: Vec::new(),
            scores: None,
            best: None,
        }
    }

    fn options(&self) -> NodeOptions {
        NodeOptions { data_seed: client_seed(self.file.seed, self.node), ..self.file.options() }
    }

    /// Opens the client, once the number of classes at all clients is known. Returns its row of signatures.
    fn open(&mut self, sizes: &StatisticsTable) -> Result<Vec<f64>, LearningError> {
        if let Some(other) = sizes.iter().position(|row| row[0] != sizes[self.node][0]) {
            return Err(LearningError(format!(
                "nodes here have {} features, those of {} have {}: all clients need the same features in the same order",
                sizes[self.node][0], self.names[other], sizes[other][0]
            )));
        }
        let classes = sizes.iter().map(|row| row[1]).fold(0.0, f64::max) as usize;
        let data = self.data.clone().with_classes(classes).map_err(LearningError::of)?;
        let split = NodeSplit::random(data.labels(), client_seed(self.file.seed, self.node));
        let client = NodeClient::new(self.options(), &data, &split, self.device.clone()).map_err(LearningError::of)?;
        let row = client.signatures().values().to_vec();
        self.parameters = client.shape().initial_parameters(self.file.seed);
        self.client = Some(client);
        Ok(row)
    }

    /// Computes the weights of all clients from their statistics, and returns a hash of them; the same at every peer.
    fn weigh(&mut self, sizes: &StatisticsTable, rows: &StatisticsTable) -> Result<f64, LearningError> {
        let options = self.options();
        let shape = SignatureShape::new(options.orders, options.directions, self.data.feature_count());
        let signatures: Result<Vec<Signatures>, LearningError> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| {
                Signatures::from_values(shape, row.clone())
                    .map_err(|error| LearningError(format!("the signatures of {}: {error}", self.names[at])))
            })
            .collect();
        let counts: Vec<f64> = sizes.iter().map(|row| row[2]).collect();
        let graph =
            weights(self.file.sharing(), &options.collaboration, &signatures?, &counts).map_err(LearningError::of)?;
        let [a, b, c, d, e, f, ..] = graph.hash();
        self.graph = Some(graph);
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) as f64)
    }

    fn client(&mut self) -> Result<&mut NodeClient, LearningError> {
        self.client.as_mut().ok_or_else(|| LearningError("statistics come before training".to_owned()))
    }
}

impl RoundLearning for NodeLearner {
    fn identity(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for value in self.data.features() {
            hasher.update(&value.to_le_bytes());
        }
        for (one, other) in self.data.graph().edges() {
            hasher.update(&(one as u64).to_le_bytes());
            hasher.update(&(other as u64).to_le_bytes());
        }
        for label in self.data.labels() {
            hasher.update(&label.map_or(u32::MAX, u32::from).to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        match tables {
            [] => {
                let split = NodeSplit::random(self.data.labels(), client_seed(self.file.seed, self.node));
                let sizes = [self.data.feature_count(), self.data.classes(), split.training.len()];
                Ok(Some(sizes.map(|size| size as f64).to_vec()))
            }
            [sizes] => self.open(sizes).map(Some),
            [sizes, rows] => Ok(Some(vec![self.weigh(sizes, rows)?])),
            [_, _, hashes, ..] => {
                // Weights follow from the shared statistics: a peer with other weights computes differently.
                match hashes.iter().position(|hash| hash[0] != hashes[self.node][0]) {
                    Some(other) => Err(LearningError(format!(
                        "the weights here are not those of {}: builds or processors differ in their last bits",
                        self.names[other]
                    ))),
                    None => Ok(None),
                }
            }
        }
    }

    fn train(&mut self, _: u64) -> Result<Vec<f32>, LearningError> {
        let epochs = self.file.epochs;
        let metric = self.file.metric();
        let from = std::mem::take(&mut self.parameters);
        let client = self.client()?;
        let trained = client.train(&from, epochs).map_err(LearningError::of)?;
        let scores = client.evaluate(&trained).map_err(LearningError::of)?;
        let validation = metric.of(&scores.validation);
        let test = metric.of(&scores.test);
        let is_better = self.best.as_ref().is_none_or(|best| validation > best.validation);
        if is_better {
            self.best = Some(ValidationBest { parameters: trained.clone(), validation, test });
        }
        self.scores = Some(scores);
        self.parameters.clone_from(&trained);
        Ok(trained)
    }

    fn aggregation(&self, _: u64) -> Aggregation {
        let Some(graph) = &self.graph else { return Aggregation::None };
        let sources: Vec<Vec<usize>> = (0..graph.clients()).map(|client| graph.of_client(client).sources()).collect();
        let is_alone = sources.iter().enumerate().all(|(client, of)| *of == [client]);
        if is_alone { Aggregation::None } else { Aggregation::Pull(Arc::new(sources)) }
    }

    fn take(&mut self, _: u64, _: &[f32]) -> Result<(), LearningError> {
        Err(LearningError("clients take personal sums, and no mean of all".to_owned()))
    }

    fn take_pulled(&mut self, _: u64, contributions: &BTreeMap<usize, Vec<f32>>) -> Result<(), LearningError> {
        let (Some(client), Some(graph)) = (&self.client, &self.graph) else {
            return Err(LearningError("statistics come before models".to_owned()));
        };
        let next = aggregate(client.shape(), graph.of_client(self.node), contributions);
        self.parameters = next.map_err(LearningError::of)?;
        Ok(())
    }

    fn evaluate(&mut self, _: u64) -> Result<Vec<Option<f64>>, LearningError> {
        let metric = self.file.metric();
        let scores = self.scores.unwrap_or_default();
        let best = self.best.as_ref().and_then(|best| best.test);
        Ok(vec![metric.of(&scores.validation), metric.of(&scores.test), best])
    }

    fn state(&self) -> Vec<u8> {
        let client = self.client.as_ref().map(NodeClient::state).and_then(Result::ok).unwrap_or_default();
        let kept = LearnerState { client, parameters: self.parameters.clone(), best: self.best.clone() };
        postcard::to_stdvec(&kept).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        let kept: LearnerState = postcard::from_bytes(state)
            .map_err(|_| LearningError("what was kept of a round is no state of node classification".to_owned()))?;
        let seed = self.file.seed;
        let client = self.client()?;
        if kept.client.is_empty() {
            // The state before the first round.
            client.restore(&0_u64.to_le_bytes()).map_err(LearningError::of)?;
            self.parameters = client.shape().initial_parameters(seed);
        } else {
            if kept.parameters.len() != client.shape().parameters() {
                return Err(LearningError("what was kept of a round is of another network".to_owned()));
            }
            client.restore(&kept.client).map_err(LearningError::of)?;
            self.parameters = kept.parameters;
        }
        self.best = kept.best;
        self.scores = None;
        Ok(())
    }

    fn found(&self) -> String {
        let data = &self.data;
        let labelled = data.labels().iter().flatten().count();
        format!(
            "{} nodes, {labelled} of them with a class, {} edges, {} features, {} classes",
            data.node_count(),
            data.graph().edge_count(),
            data.feature_count(),
            data.classes()
        )
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        let (Some(client), Some(graph)) = (&self.client, &self.graph) else { return Ok(Vec::new()) };
        let best = self.best.as_ref();
        let text = serde_json::json!({
            "schema": "mingle.nodes/1",
            "client": self.names[self.node],
            "clients": self.names,
            "weights": graph.all(),
            "weights_by_order": graph.orders(),
            "weights_hash": graph.hash().iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "estimated_homophily": client.estimated_homophily(),
            "network": client.shape(),
            "notes": client.notes(),
            "validation": best.and_then(|best| best.validation),
            "test": best.and_then(|best| best.test),
        });
        let parameters = best.map_or(&self.parameters, |best| &best.parameters);
        let bytes = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(vec![
            ("nodes.json".to_owned(), format!("{text:#}\n").into_bytes()),
            ("collaboration.svg".to_owned(), collaboration_svg(&self.names, graph.all()).into_bytes()),
            ("parameters.f32".to_owned(), bytes),
        ])
    }
}
