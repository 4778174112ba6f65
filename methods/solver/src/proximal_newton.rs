//! Proximal Newton method for least squares that many nodes hold, of which each query sums one vector over all nodes:
//! the product of the second derivative with a direction, or the gradient at a point. The model of the second derivative
//! is learned from these products, and is exact after as many as the matrix has rank.
//!
//! ```text
//!   y   = argmin  g' (y - x) + 1/2 (y - x)' (H_k + delta I) (y - x) + gh(y)         on each node, without messages
//!   H v   for v = the part of y - x outside the directions learned                  one sum over all nodes
//!   x  += t (y - x),   t = min(1, (y - x)' (H_k + delta I) (y - x) / (y - x)' H (y - x)),   g += t H (y - x)
//! ```
//!
//! `delta` is the mean of the eigenvalues that are still unknown. The objective never grows: `t` is the longest step that
//! the model is sure of. All nodes hold the same state, and find the same bits.

use crate::curvature_model::CurvatureModel;
use crate::model_minimum::QuadraticModel;
use crate::vector::{add, dot};
use crate::{SparsityPenalty, optimality};

/// The accuracy of the minimum of a model, as a share of the violation where it begins.
const MODEL_ACCURACY: f64 = 1e-2;
/// The gradients in a row without a smaller violation after which rounding is taken to allow no more.
const MOST_STALLS: u32 = 30;
/// The least curvature assumed in unknown directions, as a share of their mean.
const LEAST_CAUTION: f64 = 1e-6;
/// The factor by which that falls after each step that was long enough.
const CAUTION_FALL: f64 = 3.0;

/// The mean over all nodes that the next step needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// The mean of the nodes' `A' A v`, without the ridge term.
    Product(Vec<f64>),
    /// The mean of the nodes' gradients at this point.
    Gradient(Vec<f64>),
}

/// The facts that all nodes agree on before the first step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedFacts {
    /// The mean of the nodes' sums of squares of `A`.
    pub trace: f64,
    /// The number of rows of all nodes.
    pub rows: usize,
    /// The weight of the ridge term.
    pub ridge: f64,
    /// An upper bound of the Lipschitz constant of the mean gradient.
    pub smoothness: f64,
    /// The violation of the optimality conditions at which the method ends.
    pub tolerance: f64,
}

/// The state of the method, the same at all nodes.
pub struct ProximalNewton {
    nonsmooth: Box<dyn SparsityPenalty>,
    facts: SharedFacts,
    model: CurvatureModel,
    x: Vec<f64>,
    gradient: Vec<f64>,
    /// The gradient was summed at `x`, not updated.
    is_exact: bool,
    /// The next point of the model, and the direction whose product is asked for.
    pending: Option<(Vec<f64>, Vec<f64>)>,
    /// The curvature assumed in unknown directions, as a share of their mean.
    caution: f64,
    best: f64,
    stalls: u32,
}

impl ProximalNewton {
    /// The method from `x`, with the mean of the nodes' gradients there.
    #[must_use]
    pub fn new(nonsmooth: Box<dyn SparsityPenalty>, facts: SharedFacts, x: Vec<f64>, gradient: Vec<f64>) -> Self {
        let model = CurvatureModel::new(facts.trace, facts.rows.min(x.len()));
        Self {
            nonsmooth,
            facts,
            model,
            x,
            gradient,
            is_exact: true,
            pending: None,
            caution: 1.0,
            best: f64::INFINITY,
            stalls: 0,
        }
    }

    /// The solution so far.
    #[must_use]
    pub fn solution(&self) -> &[f64] {
        &self.x
    }

    /// The violation of the optimality conditions.
    #[must_use]
    pub fn violation(&self) -> f64 {
        optimality(&*self.nonsmooth, &self.x, &self.gradient, 1.0 / self.facts.smoothness)
    }

    /// `true` once the optimality conditions hold to the tolerance, by a gradient that was summed at the solution.
    #[must_use]
    pub fn is_solved(&self) -> bool {
        self.is_exact && self.violation() <= self.facts.tolerance
    }

    /// The mean that the next step needs; `None` when it is solved, or rounding allows no smaller violation.
    pub fn query(&mut self) -> Option<Query> {
        let violation = self.violation();
        if violation <= self.facts.tolerance && !self.is_exact {
            return Some(Query::Gradient(self.x.clone()));
        }
        if violation <= self.facts.tolerance || self.stalls >= MOST_STALLS || violation.is_nan() {
            return None;
        }
        loop {
            let next = self.model(self.delta()).minimum(MODEL_ACCURACY * violation);
            if let Some(direction) = self.model.unknown_part(&self.towards(&next)) {
                self.pending = Some((next, direction.clone()));
                return Some(Query::Product(direction));
            }
            let is_sure = self.model.is_exact() || self.caution <= LEAST_CAUTION;
            if is_sure {
                self.go(next, 1.0);
                return Some(Query::Gradient(self.x.clone()));
            }
            // Nothing unknown is on the way: go further.
            self.caution /= 10.0;
        }
    }

    /// Takes the mean that the last query asked for.
    pub fn answer(&mut self, mean: Vec<f64>) {
        let Some((next, direction)) = self.pending.take() else {
            self.gradient = mean;
            self.is_exact = true;
            let violation = self.violation();
            self.stalls = if violation < 0.9 * self.best { 0 } else { self.stalls + 1 };
            self.best = self.best.min(violation);
            return;
        };
        let moved = self.towards(&next);
        let expected = dot(&moved, &self.model(self.delta()).product(&moved));
        self.model.learn(direction, &mean);
        let found = dot(&moved, &self.model(0.0).product(&moved));
        let is_short = found > expected;
        self.caution =
            if is_short { (self.caution * 10.0).min(1.0) } else { (self.caution / CAUTION_FALL).max(LEAST_CAUTION) };
        self.go(next, if is_short { expected / found } else { 1.0 });
    }

    /// The curvature assumed in directions that are not known.
    fn delta(&self) -> f64 {
        self.caution * self.model.unknown_curvature()
    }

    fn model(&self, unknown: f64) -> QuadraticModel<'_> {
        QuadraticModel {
            curvature: &self.model,
            shift: self.facts.ridge + unknown,
            smoothness: self.facts.smoothness + unknown,
            x: &self.x,
            gradient: &self.gradient,
            nonsmooth: &*self.nonsmooth,
        }
    }

    fn towards(&self, next: &[f64]) -> Vec<f64> {
        next.iter().zip(&self.x).map(|(next, x)| next - x).collect()
    }

    /// Goes this share of the way to `next`, along which all products are known.
    fn go(&mut self, next: Vec<f64>, share: f64) {
        let moved = self.towards(&next);
        let bent = self.model(0.0).product(&moved);
        add(&mut self.gradient, share, &bent);
        if share < 1.0 {
            add(&mut self.x, share, &moved);
        } else {
            self.x = next;
        }
        self.is_exact = false;
    }
}
