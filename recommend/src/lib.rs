//! Personal recommenders from interactions that stay where they are: LPSFed.
//!
//! Clients such as shops, libraries or apps hold one part each of who has had to do with what. Each learns a recommender of its own
//! and shares two small networks and one number; how far it goes along with the mean of all depends on how alike its graph is to
//! a random one, by its low frequencies. The method is that of Sim and Park (arXiv:2603.20338), cited where it is used; where
//! the paper is silent or its public code differs, `docs/recommendations.md` says what was chosen.
//!
//! | | what it is |
//! | --- | --- |
//! | [`Interactions`], [`read_interactions`], [`Planted`] | users, items and their pairs: from files, or drawn with a known structure |
//! | [`UserSplit`], [`co_cluster`] | training, validation and test of each user; one graph dealt to clients |
//! | [`LowPass`], [`SpectrumCache`] | the low frequencies of a graph, kept on disk |
//! | [`reference_shares`], [`divergence`], [`similarity`] | how alike a client is to the reference |
//! | [`Client`], [`ClientOptions`] | one client: training, what it shares, what it takes, how good it is |
//! | [`Recommender`] | what recommends once everything is learned |
//! | [`federate`] | all clients in one place, with means made by hand: the judge of the serverless form |
//!
//! Nothing here knows networks, protocols or clocks.
//!
//! ```
//! use mingle_models::DeviceName;
//! use mingle_recommend::{Client, ClientOptions, Planted};
//!
//! let interactions = Planted { communities: 1, users: 30, items: 25, ..Planted::default() }.draw();
//! let options = ClientOptions { frequencies: 16, batch_size: 256, ..ClientOptions::default() };
//! let device = DeviceName::Cpu.open()?;
//! let mut client = Client::new(interactions, options, 1, &device, None)?;
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
mod split;

pub use client::{Client, ClientOptions, Filtering, LossKind};
pub use error::RecommendError;
pub use federation::{Personalization, aggregates, federate, similarities};
pub use filter::{LowPass, SpectrumCache};
pub use generator::Planted;
pub use interactions::{Form, Interactions, UnknownForm, bipartite_graph, interactions_of, read_interactions};
pub use loss::{Loss, MarginRule, angle, shifted_cosine};
pub use metrics::{K, METRICS, Quality, ndcg, recall, top};
pub use partition::{DealOptions, MOST_PARTS, Parts, SLACK, co_cluster};
pub use popularity::{BUCKETS, Example, Popularity, bucket};
pub use recommender::{Recommendation, Recommender};
pub use similarity::{
    EPSILON, Kernel, Size, compared_eigenvalues, divergence, reference_graph, reference_shares, shares, similarity,
};
pub use split::UserSplit;
