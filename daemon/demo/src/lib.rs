//! Swarms of real peers on one machine, for people who want to see one.
//!
//! One process of the program `mingle` per peer, on loopback, each with its own key, home and port, whose events are followed. A
//! [`TrainingDemo`] trains a model, kills peers where that is asked for, and compares the swarm with training without one; a
//! [`ConvexDemo`] solves a problem, beside the same in one place; a [`RecommendationDemo`] and a [`NodesDemo`] learn in rounds, beside
//! the same and other methods in one process. Each is prepared first, which says what is wrong before anything is started, then run.
//!
//! Nothing is printed: progress goes to whoever is told of it, results are what a run returns and what is in the folder of the demo.

mod baselines;
mod joining;
mod kill;
pub mod metric;
mod options;
mod output;
mod peer_options;
mod plan;
mod problem;
mod processes;
mod report;
mod tally;
mod training;
mod watcher;

pub use baselines::Baselines;
pub use joining::Joined;
pub use options::{DemoOptions, MAX_PEERS, PeerProgram, ProblemOptions, check_peers};
pub use output::Output;
pub use problem::{
    Client, ConvexDemo, ConvexKind, ConvexReport, JUDGED, NodesDemo, NodesReport, OnePlace, ProblemEvent,
    RecommendationDemo, RoundsReport, WEIGHTS, Way,
};
pub use report::{BitsPerToken, Report, SwarmResult};
pub use tally::Row;
pub use training::TrainingDemo;
pub use watcher::{DemoEvent, Unaided, Watcher};
