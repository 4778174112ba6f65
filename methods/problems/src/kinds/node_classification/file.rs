//! The problem file of node classification.

use mingle_graphs::{CollaborationMode, CollaborationOptions, NodeMetric, NodeOptions, Overlap, Sharing};
use serde::{Deserialize, Serialize};

use super::EMBEDDED;
use crate::file::NODE;

/// A problem file with `kind = "node-classification"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodesFile {
    /// `node-classification`.
    pub(super) kind: String,
    /// The graph: `two-characters`, which is embedded in the program, or files beside this one. With `{node}` in it
    /// each peer has its own; else one graph is dealt out by the seed.
    pub(super) data: String,
    /// `true` if the parts that are dealt out overlap: five clients each hold a half of one part.
    #[serde(default)]
    pub(super) overlapping: bool,
    /// The way in which clients share their models after a round.
    #[serde(default)]
    pub(super) sharing: SharingName,
    /// The metric of the models.
    #[serde(default)]
    pub(super) metric: MetricName,
    /// Rounds of training and sharing.
    #[serde(default = "rounds")]
    pub(super) rounds: u64,
    /// Epochs of local training in a round.
    #[serde(default = "epochs")]
    pub(super) epochs: u32,
    /// The seed of the partition, the split into training and other nodes, the initial model and dropout.
    #[serde(default = "seed")]
    pub(super) seed: u64,
    /// The device of this peer: `cpu`, or `wgpu`.
    #[serde(default = "device")]
    pub(super) device: String,
    /// The network and its training.
    #[serde(default)]
    pub(super) model: ModelTable,
    /// The options of the collaboration weights.
    #[serde(default)]
    pub(super) collaboration: CollaborationTable,
}

const fn rounds() -> u64 {
    100
}

const fn epochs() -> u32 {
    1
}

const fn seed() -> u64 {
    1
}

fn device() -> String {
    "cpu".to_owned()
}

/// The table `[model]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelTable {
    orders: usize,
    directions: usize,
    tau: f32,
    hidden: usize,
    layers: usize,
    learning_rate: f64,
    weight_decay: f64,
    filter_rate: f64,
    filter_decay: f64,
    basis_dropout: f32,
    dropout: f32,
}

/// The table `[collaboration]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CollaborationTable {
    alpha: f64,
    beta: f64,
    gamma: f64,
    self_floor: f64,
    most_weights: usize,
}

/// The way in which clients share their models after a round, as the user writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SharingName {
    /// No sharing: each learns alone.
    Local,
    /// One mean of all: FedAvg.
    Average,
    /// Personal sums, with weights as FedGSP is printed.
    Paper,
    /// Personal sums, with weights by the angles of signatures.
    #[default]
    Angle,
    /// Personal sums, with weights by robust distances of signatures.
    Robust,
}

/// The metric of the models, as the user writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MetricName {
    /// The share of nodes that are assigned to their class.
    #[default]
    Accuracy,
    /// The area under the curve of true against false positives; for two classes.
    Auc,
}

impl Default for ModelTable {
    fn default() -> Self {
        let of = NodeOptions::default();
        Self {
            orders: of.orders,
            directions: of.directions,
            tau: of.tau,
            hidden: of.hidden,
            layers: of.layers,
            learning_rate: of.learning_rate,
            weight_decay: of.weight_decay,
            filter_rate: of.filter_rate,
            filter_decay: of.filter_decay,
            basis_dropout: of.basis_dropout,
            dropout: of.dropout,
        }
    }
}

impl Default for CollaborationTable {
    fn default() -> Self {
        let CollaborationOptions { alpha, beta, gamma, self_floor, most_weights, .. } = CollaborationOptions::default();
        Self { alpha, beta, gamma, self_floor, most_weights }
    }
}

impl NodesFile {
    /// The entries that have to be the same at all peers: everything but the device and the names of files.
    pub(super) fn shared(&self) -> Self {
        let is_own = self.data.contains(NODE);
        let data = if is_own {
            NODE
        } else if self.data == EMBEDDED {
            EMBEDDED
        } else {
            "one graph"
        };
        Self { device: String::new(), data: data.to_owned(), ..self.clone() }
    }

    pub(super) fn overlap(&self) -> Overlap {
        if self.overlapping { Overlap::Overlapping } else { Overlap::Disjoint }
    }

    /// The way in which clients share their models after a round.
    pub(super) fn sharing(&self) -> Sharing {
        match self.sharing {
            SharingName::Local => Sharing::Local,
            SharingName::Average => Sharing::Average,
            SharingName::Paper => Sharing::Collaboration(CollaborationMode::Paper),
            SharingName::Angle => Sharing::Collaboration(CollaborationMode::Angle),
            SharingName::Robust => Sharing::Collaboration(CollaborationMode::Robust),
        }
    }

    /// The metric of the models.
    pub(super) fn metric(&self) -> NodeMetric {
        match self.metric {
            MetricName::Accuracy => NodeMetric::Accuracy,
            MetricName::Auc => NodeMetric::Auc,
        }
    }

    /// The options by which clients learn.
    pub(super) fn options(&self) -> NodeOptions {
        let CollaborationTable { alpha, beta, gamma, self_floor, most_weights } = self.collaboration;
        let model = self.model;
        NodeOptions {
            orders: model.orders,
            directions: model.directions,
            tau: model.tau,
            hidden: model.hidden,
            layers: model.layers,
            learning_rate: model.learning_rate,
            weight_decay: model.weight_decay,
            filter_rate: model.filter_rate,
            filter_decay: model.filter_decay,
            basis_dropout: model.basis_dropout,
            dropout: model.dropout,
            seed: self.seed,
            data_seed: self.seed,
            collaboration: CollaborationOptions {
                mode: CollaborationMode::default(),
                alpha,
                beta,
                gamma,
                self_floor,
                most_weights,
            },
        }
    }

    pub(super) fn describe(&self) -> String {
        let how = match self.sharing {
            SharingName::Local => "each alone",
            SharingName::Average => "federated averaging",
            SharingName::Paper => "personal weights by the printed FedGSP",
            SharingName::Angle => "personal weights by angles (a reconstruction of FedGSP)",
            SharingName::Robust => "personal weights by robust distances (a reconstruction of FedGSP)",
        };
        format!("classes of the nodes of {}, {how}, {} rounds of {} epochs", self.data, self.rounds, self.epochs)
    }
}
