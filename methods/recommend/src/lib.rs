//! Personal recommenders from interactions that stay with their clients: LPSFed.
//!
//! Clients such as shops, libraries or apps each hold a part of the user-item interactions. Each client trains its own
//! recommender and shares two small networks and one number. Its share in the mean of all depends on the similarity of
//! its graph to a random one, by their low frequencies. The method is that of Sim and Park (arXiv:2603.20338), cited
//! where it is used. Where the paper is silent or its public code differs, `docs/recommendations.md` states the choice
//! made here.
//!
//! | | contents |
//! | --- | --- |
//! | [`Interactions`], [`read_interactions`], [`Planted`] | users, items and their pairs: from files, or drawn with a known structure |
//! | [`UserSplit`], [`co_cluster`] | training, validation and test of each user; one graph dealt to clients |
//! | [`LowPass`], [`SpectrumCache`] | the low frequencies of a graph, kept on disk |
//! | [`reference_shares`], [`divergence`], [`similarity`] | similarity of a client to the reference |
//! | [`RecommenderClient`], [`ClientOptions`] | one client: training, its shared vector, mixing with the mean, evaluation |
//! | [`Recommender`] | recommendation after training |
//! | [`federate`] | all clients in one place, with exact means: the reference for the serverless form |
//!
//! This crate uses no network, protocol or clock.
//!
//! ```
//! use mingle_models::DeviceName;
//! use mingle_recommend::{RecommenderClient, ClientOptions, Planted};
//!
//! let interactions = Planted { communities: 1, users: 30, items: 25, ..Planted::default() }.draw();
//! let options = ClientOptions { frequencies: 16, batch_size: 256, ..ClientOptions::default() };
//! let device = DeviceName::Cpu.open()?;
//! let mut client = RecommenderClient::new(interactions, options, 1, &device, None)?;
//! let first = client.train(1)?;
//! assert!(client.train(5)? < first);
//! let user = client.recommender()?.users()[0].clone();
//! assert_eq!(client.recommender()?.recommend(&user, 5)?.len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch_nodes;
mod client;
mod error;
mod federation;
mod filter;
mod generator;
mod interactions;
mod loss;
mod metrics;
mod model;
mod optimizer;
mod partition;
mod popularity;
mod recommender;
mod similarity;
mod source;
mod split;

pub use client::{ClientOptions, Filtering, LossKind, RecommenderClient};
pub use error::RecommendError;
pub use federation::{Personalization, aggregates, federate, similarities};
pub use filter::{LowPass, SpectrumCache};
pub use generator::Planted;
pub use interactions::{Form, Interactions, UnknownForm, bipartite_graph, read_interactions};
pub use loss::{MarginRule, RankingLoss, angle, shifted_cosine};
pub use metrics::{K, METRICS, RankingQuality, UserGroup, ndcg, recall, top};
pub use partition::{DealOptions, GraphParts, MOST_PARTS, SLACK, co_cluster};
pub use popularity::{BUCKETS, Example, Popularity, bucket};
pub use recommender::{Recommendation, Recommender};
pub use similarity::{
    EPSILON, Kernel, Size, compared_eigenvalues, divergence, reference_graph, reference_shares, shares, similarity,
};
pub use source::interactions_of;
pub use split::UserSplit;
