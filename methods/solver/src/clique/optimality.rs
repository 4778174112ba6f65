//! A certificate that a point solves a problem over cliques: the conditions of Karush, Kuhn and Tucker, with one
//! multiplier for each coupling.
//!
//! A node's variable is a proximal point, so its own subgradients balance at every iteration, at any point. The point is
//! optimal when the members of a clique take for its coupling the subgradients of *one* element of the coupling's
//! subdifferential. For a budget these are all equal; where all variables are to be equal, their sum is zero. So each
//! member publishes its subgradient, all take an element of the subdifferential near these, and measure the residual
//! with it.

use std::collections::BTreeMap;

use super::{CliqueCopy, CliqueMessage, CliqueNode};

/// The distance of a node of a problem over cliques from the optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct CliqueOptimality {
    /// The distance from the stationary points of the Lagrangian, in the units of a gradient: the length of a projected
    /// gradient step of size 1, with the multipliers that the members of its cliques agree on. No less than the distance from
    /// the point at which these are subgradients of a coupling, where that is not this point.
    pub stationarity: f64,
    /// The largest violation of a constraint of its cliques.
    pub violation: f64,
    /// For each of its cliques and each component, the growth of the least total cost per unit of its budget; empty
    /// without a budget.
    pub prices: Vec<Vec<f64>>,
}

impl CliqueNode {
    /// The subgradients of the couplings of its cliques that this node takes, `[clique][component]`. Members of the
    /// cliques need them for [`optimality`](Self::optimality).
    ///
    /// # Errors
    ///
    /// As [`absorb`](Self::absorb).
    pub fn multipliers(&self, messages: &BTreeMap<usize, CliqueMessage>) -> Result<Vec<Vec<f64>>, usize> {
        self.check(messages)?;
        Ok(self.cliques.iter().map(|copy| self.multiplier(copy, messages)).collect())
    }

    /// `(v - x) / (alpha weight)`, where `v` is the argument of the coupling's proximal operator.
    fn multiplier(&self, copy: &CliqueCopy, messages: &BTreeMap<usize, CliqueMessage>) -> Vec<f64> {
        let (weights, divisors) = copy.scales(self.metric);
        let said = copy.said(messages);
        let Ok(own) = copy.term.members.binary_search(&self.id) else { return Vec::new() };
        let slopes = &copy.term.gradient(&copy.variables(messages))[own];
        let of = |at: usize| {
            let push = (said[own].x[at] - copy.z[own][at]) / self.step;
            (push - weights[own] * slopes[at] - said[own].gradient[at] / divisors[own]) / weights[own]
        };
        (0..said[own].x.len()).map(of).collect()
    }

    /// The distance of this node from the optimum, with all members of its cliques at their last messages.
    ///
    /// `multipliers` are those of the members of each of its cliques, `[clique][member][component]`, in the order of
    /// its cliques and of their members.
    ///
    /// # Errors
    ///
    /// As [`absorb`](Self::absorb), and a member whose multiplier is missing.
    pub fn optimality(
        &self,
        messages: &BTreeMap<usize, CliqueMessage>,
        multipliers: &[Vec<Vec<f64>>],
    ) -> Result<CliqueOptimality, usize> {
        self.check(messages)?;
        let x = messages.get(&self.id).map_or(self.local.x(), |said| &said.x);
        let mut gradient = self.local.gradient(x);
        let mut result = CliqueOptimality { stationarity: 0.0, violation: 0.0, prices: Vec::new() };
        for (at, copy) in self.cliques.iter().enumerate() {
            let taken = multipliers.get(at).map_or(&[][..], Vec::as_slice);
            let missing = copy.term.members.iter().enumerate();
            let is_missing = |(at, _): &(usize, &usize)| taken.get(*at).is_none_or(|taken| taken.len() != x.len());
            if let Some((_, member)) = missing.clone().find(is_missing) {
                return Err(*member);
            }
            self.add_clique(copy, messages, taken, &mut gradient, &mut result);
        }
        // A step size of 1 gives the units of a gradient, whatever the solver's step.
        result.stationarity = result.stationarity.max(self.local.optimality(x, &gradient, 1.0));
        Ok(result)
    }

    /// Adds a clique's part of the Lagrangian's gradient, its violation and its prices.
    fn add_clique(
        &self,
        copy: &CliqueCopy,
        messages: &BTreeMap<usize, CliqueMessage>,
        taken: &[Vec<f64>],
        gradient: &mut [f64],
        result: &mut CliqueOptimality,
    ) {
        let x = copy.variables(messages);
        let own = copy.term.members.binary_search(&self.id).unwrap_or(0);
        let mut normal = vec![vec![0.0; gradient.len()]; x.len()];
        let mut prices = Vec::new();
        if let Some(coupling) = &copy.term.coupling {
            normal = taken.to_vec();
            result.stationarity = result.stationarity.max(coupling.subgradients(&x, &mut normal));
            prices = coupling.prices(&normal);
        }
        let slopes = copy.term.gradient(&x);
        for ((gradient, slope), normal) in gradient.iter_mut().zip(&slopes[own]).zip(&normal[own]) {
            *gradient += slope + normal;
        }
        result.violation = result.violation.max(copy.term.violation(&x));
        result.prices.push(prices);
    }
}
