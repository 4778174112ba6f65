//! Distributionally robust linear models over sites that keep their samples (DRFL): the model with the least loss for
//! the worst weights of the sites and the worst distributions near the samples of each.
//!
//! ```text
//!   min over w   max over q in Q   sum over sites s  q_s  sup over P within radius_s of the samples of s  E_P[ L(<w, x>, y) ]
//! ```
//!
//! `Q` are weights of the sites within `theta` of the nominal ones in a p-norm ([`SiteWeights`]). The distance between
//! distributions is Wasserstein's, with the cost `||x - x'||_1 + kappa |y - y'|`, or `kappa` for a changed label. The
//! problem, its convex form and the method are those of Bai, Wong, Qiao and Ho, "Distributionally Robust Federated
//! Learning: An ADMM Algorithm", cited as \[BWQH\]. Differences from the paper, stated again at their places:
//!
//! - hinge, epsilon-insensitive and pinball losses on a box need two slacks for each column instead of the paper's multipliers
//!   for each sample and column (the supremum separates by column; `epigraph`);
//! - the cost `kappa` of moving a target bounds the dual norm by `1 / kappa`, which the paper drops for the Huber loss;
//! - samples outside the support are refused: the value would not be that of any distribution ([`LinearSamples::check`]);
//! - by default the step over the losses is exact, both groups of variables are over-relaxed, and the penalties balance the
//!   residuals ([`Penalty`]); the method ends by its duality gap ([`DualityGap`]);
//! - columns at the end may be exempt from the adversary, such as the constant one of an intercept ([`LinearSamples::movable`]).
//!
//! | | contents |
//! | --- | --- |
//! | [`Site`] | one site's part: its samples, its own model, its subproblem (a cone program, by `clarabel`) |
//! | [`SharedState`] | the state that all sites compute alike from a few numbers of each: `+ - * / sqrt max` alone, so the bits are the same everywhere |
//! | [`solve_by_lpmm`] | both of them in one place: Algorithm 1 of \[BWQH\], AD-LPMM |
//! | [`solve_directly`] | the whole problem as one cone program: the reference for the others |
//! | [`aggregate_then_robustify`] | the baseline WAFL: one ball around the mixture of all sites |
//!
//! This crate uses no network, file or clock. All numbers are f64.
//!
//! ```
//! use mingle_robust::{
//!     LpmmLimits, Loss, Penalty, RobustLoss, RobustProblem, LinearSamples, SiteSamples, SiteWeights, Support, WeightNorm, solve_by_lpmm,
//! };
//!
//! // Two sites whose first column tells the label.
//! let site = |values: &[f64]| -> Result<_, mingle_robust::RobustError> {
//!     let samples = LinearSamples::new(2, 2, values.to_vec(), vec![1.0, -1.0])?;
//!     Ok(SiteSamples { samples, radius: 0.05 })
//! };
//! let problem = RobustProblem {
//!     robust: RobustLoss { loss: Loss::Hinge, support: Support::Box { lower: -1.0, upper: 1.0 }, kappa: 1.0 },
//!     sites: vec![site(&[0.9, 0.1, -0.8, 0.2])?, site(&[0.7, -0.3, -0.9, -0.1])?],
//!     weights: SiteWeights::new(vec![0.5, 0.5], 0.1, WeightNorm::Two)?,
//! };
//! let found = solve_by_lpmm(&problem, Penalty::default(), LpmmLimits { tolerance: 1e-6, iterations: 2000 })?;
//! assert!(found.converged && found.model[0] > 0.5);
//! # Ok::<(), mingle_robust::RobustError>(())
//! ```

mod cone_program;
mod direct;
mod duality_gap;
mod epigraph;
mod error;
mod exchange;
mod loss;
mod lpmm;
mod minorant;
mod penalty;
mod problem;
mod projection;
mod samples;
mod shared_state;
mod site;
mod units;
mod weights;
mod worst_case;
mod worst_weights;

pub use direct::{DirectSolution, aggregate_then_robustify, solve_directly};
pub use duality_gap::{DualityGap, GapSearch, check_models, check_terms};
pub use error::{MOST_FAILURES, Outside, RobustError};
pub use exchange::{SiteIteration, SiteTarget};
pub use loss::{Loss, RobustLoss};
pub use lpmm::{GAP_INTERVAL, LpmmLimits, LpmmSolution, solve_by_lpmm};
pub use minorant::Minorant;
pub use penalty::{DataScale, Linearisation, PENALTY_FACTOR, Penalty, Steering};
pub use problem::{RobustProblem, SiteSamples};
pub use projection::project_on_ball;
pub use samples::{HalfSpace, LinearSamples, Support};
pub use shared_state::{Residuals, SharedState};
pub use site::{CHECK_ROW, Site};
pub use weights::{SiteWeights, WeightNorm};
