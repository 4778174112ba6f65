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
//!
//! ```
//! use mingle_graphs::{NodeClient, NodeOptions, NodeSplit, Overlap, deal_out, two_characters};
//!
//! let data = two_characters(1);
//! let parts = deal_out(data.graph(), 2, Overlap::Disjoint, 1)?;
//! let own = data.induced(&parts[0]);
//! let options = NodeOptions { orders: 2, hidden: 8, ..NodeOptions::default() };
//! let device = "cpu".parse::<mingle_models::DeviceName>()?.open()?;
//! let mut client = NodeClient::new(options, &own, &NodeSplit::random(own.labels(), 1), device)?;
//! let trained = client.train(&client.shape().initial_parameters(1), 1)?;
//! assert!(client.evaluate(&trained)?.test.accuracy.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aggregation;
mod bases;
mod client;
mod collaboration;
mod error;
mod example;
mod graph;
mod homophily;
mod network;
mod node_data;
mod options;
mod partition;
mod reading;
mod scores;
mod sharing;
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
pub use graph::{Dropped, Graph, GraphError};
pub use homophily::{Homophily, estimated_homophily, homophily};
pub use network::NetworkShape;
pub use node_data::{NodeData, NodeDataError};
pub use options::NodeOptions;
pub use partition::{GraphPartitionError, Overlap, deal_out, partition};
pub use reading::{ReadError, read_graph};
pub use scores::{NodeScores, Score};
pub use sharing::{NodeMetric, Sharing, client_seed, weights};
pub use signature::{PROJECTED_DIMENSION, SignatureError, SignatureShape, Signatures};
pub use split::NodeSplit;
