//! Coupled convex problems on a swarm, and learning in rounds: solvers and learners written over the protocol's
//! collectives.
//!
//! A [`SolverPeer`] is one node's part in solving a [`Problem`] along a plan. It does no input or output: it takes
//! received envelopes and returns those to send. `mingle-lab` runs all nodes of a plan in one process on virtual time
//! over lossy links, `mingle-peer` runs one of them on real streams and a real clock, and both find the same bits. A
//! node's work is one `async` function per kind of problem, in the order in which it happens; it waits for nothing but
//! collectives.
//!
//! Only [`Problem`] reads files: the problem file and the tables that it names.

mod agreed_masks;
mod allocation;
mod clique_sizes;
mod cliques;
mod collectives;
mod communication_plan;
mod coupled;
mod curves;
mod error;
mod journal;
mod learning;
mod marked_frame;
mod masked_sums;
mod network_lasso;
mod peer;
mod problem;
mod proximal_newton;
mod regression;
mod report;
mod robust;
mod round_checks;
mod rounds;
mod schedule;
mod solution;
mod stopping_rule;
mod sum_scale;

pub use communication_plan::{Averaging, AveragingScheme, CommunicationPlan, symmetric_rows};
pub use curves::files as solution_files;
pub use error::{CommunicationPlanError, SolveError};
pub use journal::{Entries, ProgressJournal, WentBack};
pub use learning::{
    Aggregation, Learned, LearningError, LocalWork, MOST_STATE_BYTES, MemoryStore, Release, RoundLearning, RoundPart,
    RoundRecord, RoundRules, RoundStore, RoundTask, RulesError, StatisticsTable,
};
pub use marked_frame::MarkedFrame;
pub use masked_sums::Sums;
pub use mingle_masking::{
    LEAST_MEMBERS, MaskingError, SignerError, SumMember, SumPolicy, SumProtection, SumSigner, TooFewMembers,
};
pub use peer::{EnvelopeFault, Reception, SolverPeer};
pub use problem::{
    AllocationTask, CONVEX_KINDS, ColumnScaling, CoupledClique, CoupledTask, CouplingError, FileError,
    NetworkLassoTask, NominalWeights, OwnTerms, Part, Problem, ProblemError, ProblemTask, RegressionTask, RobustTask,
    SampleError, StoppingCriteria, TableFileError,
};
pub use robust::in_one_place;
pub use schedule::schedule;
pub use solution::{
    Answer, Certificate, CliqueState, Coefficient, Finding, ModelDistance, NotSolved, Paid, RobustSite, Solution,
};
