//! Demonstrations: swarms of real peers on one machine.
//!
//! Each peer is one process of the program `mingle`, on loopback, with its own key, home and port, whose events are
//! followed. A [`TrainingDemo`] trains a model, kills peers on request, and compares the swarm with training without
//! one. A [`ConvexDemo`] solves a problem, and compares it with the same problem in one place. A [`RecommendationDemo`],
//! a [`NodesDemo`] and a [`SharedNoiseDemo`] learn in rounds, and compare that with other methods in one process. Each is first
//! prepared, which reports errors before anything is started, then run. Files of an earlier demo in its folder stay until
//! peers have made progress.
//!
//! Nothing is printed: progress goes to the caller's observer, results are returned and written to the folder of the
//! demo.

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
    ClientScores, ConvexDemo, ConvexKind, ConvexReport, JUDGED, NodesDemo, NodesReport, OnePlace, ProblemDemo,
    ProblemEvent, RecommendationDemo, RoundsReport, SharedNoiseDemo, Tell, WEIGHTS, Way,
};
pub use report::{BitsPerToken, DemoReport, SwarmResult};
pub use tally::SwarmRow;
pub use training::{CheckedTraining, TrainingDemo};
pub use watcher::{DemoEvent, Unaided, Watcher};
