//! Personal node classification on subgraphs of mixed homophily: the data, computation and training of clients
//! (FedGSP).
//!
//! A reconstruction of FedGSP (Yu, "Homophily Heterogeneity Matters in Graph Federated Learning: A Spectrum Sharing and
//! Complementing Perspective") from its appendix, which is all that is public: objective and signatures are inferred
//! from it. Where a printed formula contradicts its stated purpose, it is kept as a mode, and a test shows the
//! contradiction.
//!
//! Every client has a subgraph whose nodes have features and some of them a class. It filters features with [`Bases`]
//! of two kinds, and learns coefficients and a perceptron ([`NodeClient`]). It takes the parameters of others by
//! weights ([`CollaborationGraph`]) that follow from [`Signatures`] of all bases, which clients exchange once. This
//! crate uses no network: messages are arguments and results.
//!
//! | | contents |
//! | --- | --- |
//! | [`Graph`], [`NodeData`], [`read_graph`], [`two_characters`] | a graph, its nodes' features and classes; from files; a planted one |
//! | [`homophily`] | the frequency of equal classes at linked nodes |
//! | [`deal_out`], [`partition`] | one graph dealt out to clients |
//! | [`Bases`], [`Signatures`] | filtered features; their leading directions |
//! | [`CollaborationGraph`] | the weights of clients' models in each client |
//! | [`NodeClient`], [`aggregate`] | local training; weighted sums of parameters |
//! | [`Federation`] | all clients in one process |
//!
//! ```
//! use mingle_graphs::{Federation, NodeData, NodeMetric, NodeOptions, Overlap, Sharing, deal_out, two_characters};
//!
//! let data = two_characters(1);
//! let parts = deal_out(data.graph(), 2, Overlap::Disjoint, 1)?;
//! let clients: Vec<NodeData> = parts.iter().map(|nodes| data.induced(nodes)).collect();
//! let options = NodeOptions { orders: 2, hidden: 8, ..NodeOptions::default() };
//! let device = "cpu".parse::<mingle_models::DeviceName>()?.open()?;
//! let mut federation = Federation::new(&options, &clients, Sharing::Local, (1, 1), &device).map_err(|(_, error)| error)?;
//! federation.round(NodeMetric::Accuracy).map_err(|(_, error)| error)?;
//! assert!(federation.test(NodeMetric::Accuracy).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregation;
mod bases;
mod client;
mod collaboration;
mod error;
mod example;
mod federation;
mod graph;
mod homophily;
mod network;
mod node_data;
mod options;
mod partition;
mod reading;
mod scores;
mod signature;
mod split;

pub use aggregation::{AggregationError, aggregate};
pub use bases::Bases;
pub use client::NodeClient;
pub use collaboration::{
    CollaborationError, CollaborationGraph, CollaborationMode, CollaborationOptions, PersonalWeights, UnknownMode,
    WeightMatrix, project_onto_simplex, steps,
};
pub use error::ClientError;
pub use example::two_characters;
pub use federation::{Federation, NodeMetric, Sharing, client_seed, weights};
pub use graph::{Dropped, Graph, GraphError};
pub use homophily::{Homophily, estimated_homophily, homophily};
pub use network::NetworkShape;
pub use node_data::{NodeData, NodeDataError};
pub use options::NodeOptions;
pub use partition::{GraphPartitionError, Overlap, deal_out, partition};
pub use reading::{ReadError, read_graph};
pub use scores::{NodeScores, Score};
pub use signature::{PROJECTED_DIMENSION, SignatureError, SignatureShape, Signatures};
pub use split::NodeSplit;
