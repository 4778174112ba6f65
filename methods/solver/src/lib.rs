//! Exact solvers for convex problems that nodes share, as state machines of one node.
//!
//! Nodes `i` hold variables `x_i` and want to minimise
//!
//! ```text
//!   sum over cliques l  f_l(x_Cl) + g_l(x_Cl)   +   sum over nodes i  fh_i(x_i) + gh_i(x_i)
//! ```
//!
//! where `f` are smooth, `g` have a cheap proximal operator, and a clique `C_l` is a group of nodes that all
//! communicate with one another. Cliques share budgets, or couple neighbours that should agree. The algorithms are
//! those of Watanabe and Sakurama, "Distributed Optimization of Clique-Wise Coupled Problems via Three-Operator
//! Splitting", cited as \[WS\]:
//!
//! | | problem | message of a node in an iteration |
//! | --- | --- | --- |
//! | [`CliqueNode`] | cliques with any [`CliqueCost`] and any [`CliqueCoupling`] (CD-DYS) | its variables and its gradient, to the members of its cliques |
//! | [`NidsNode`] | all variables equal, over a symmetric mixing matrix (NIDS) | one vector, to its neighbours |
//! | [`AverageNode`] | all variables equal, over any way to average (one clique of all) | one vector, to the averaging |
//! | [`ProximalNewton`] | least squares, all variables equal | one vector, summed over all nodes |
//!
//! Two kinds of problems come with readers of their files and checks: [`Regression`] over [`RegressionTable`]s, and [`Budgets`]
//! that cliques of nodes share.
//!
//! Each is a state machine without network, threads or randomness: [`message`](MixedNode::message) returns the message
//! to the others, [`absorb`](MixedNode::absorb) takes theirs. [`Mixing`] sums in the order of a network, so nodes in one
//! process give the same bits. [`solve`] solves a problem in one place. All numbers are f64.
//!
//! ```
//! use mingle_solver::{ConsensusTerms, L1, LeastSquares, MixedNode, Mixing, NidsNode, SolverNode};
//!
//! // Two hospitals with a measurement each want one sparse model: x near (1, 0) and near (3, 0.1).
//! let hospital = |x: f64, y: f64| {
//!     let smooth = Box::new(LeastSquares::new(2, vec![1.0, 0.0, 0.0, 1.0], vec![x, y]));
//!     NidsNode::new(ConsensusTerms { smooth, nonsmooth: Box::new(L1 { weight: 0.25 }) }, 0.9)
//! };
//! let mut nodes = [hospital(1.0, 0.0), hospital(3.0, 0.1)];
//! let mixing = Mixing::new(vec![vec![(0, 0.5), (1, 0.5)], vec![(0, 0.5), (1, 0.5)]])?;
//! for _ in 0..200 {
//!     let messages: Vec<Vec<f64>> = nodes.iter_mut().map(MixedNode::message).collect();
//!     nodes.iter_mut().enumerate().for_each(|(at, node)| node.absorb(&mixing.mix(at, &messages)));
//! }
//! let mut models = nodes.iter().map(SolverNode::solution);
//! assert!(models.all(|model| (model[0] - 1.75).abs() < 1e-12 && model[1] == 0.0));
//! # Ok::<(), mingle_solver::MixingError>(())
//! ```

mod allocation;
mod average;
mod clique;
mod curvature_model;
pub mod example;
mod local;
mod mixing;
mod model_minimum;
mod nids;
mod nonsmooth;
mod proximal_newton;
mod regression;
mod scaling;
mod smooth;
pub mod solve;
mod sparsity_penalty;
mod spectral_bound;
mod table;
mod vector;

pub use allocation::{AllocationError, Budgets, Preference, SharingClique};
pub use average::AverageNode;
pub use clique::coupling::{Equal, Formation, FormationCost, MeanCost, NetworkLasso, SumTo, Within};
pub use clique::{CliqueCost, CliqueCoupling, CliqueMessage, CliqueNode, CliqueOptimality, CliqueTerm, DistanceMetric};
pub use local::{Local, MixedNode, SolverNode, optimality};
pub use mixing::{Mixing, MixingError};
pub use nids::NidsNode;
pub use nonsmooth::{Bounds, GroupLasso, L1, Nonnegative, NonnegativeL1, Nonsmooth, Nothing, SparseGroups};
pub use proximal_newton::{ProximalNewton, Query, SharedFacts};
pub use regression::{CentralSolution, Regression, RegressionError};
pub use scaling::Standardization;
pub use smooth::{LeastSquares, PricedQuadratic, Quadratic, Smooth};
pub use sparsity_penalty::SparsityPenalty;
pub use table::{MAX_COLUMNS, RegressionTable, Selection, TableError};

/// A node's terms in a problem whose variables all nodes share.
pub struct ConsensusTerms {
    /// `fh_i`.
    pub smooth: Box<dyn Smooth>,
    /// `gh_i`.
    pub nonsmooth: Box<dyn Nonsmooth>,
}
