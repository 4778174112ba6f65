//! CD-DYS: any coupling over cliques, by the splitting of Davis and Yin (\[WS\], Algorithm 1, and its variable metric).
//!
//! Every member of a clique keeps the clique's copy `z_l` of all members' variables and brings it forward by itself, from what
//! all members say of theirs:
//!
//! ```text
//!               metric I                                     metric Q
//!   x_i   =  prox_(alpha/q_i gh_i)( mean of z_l,i )          prox_(alpha gh_i)( mean of z_l,i )
//!   y_l   =  prox_(alpha g_l)( 2 x_C - z_l                   the same, with q_j grad_j f_l, grad fh_j undivided,
//!               - alpha grad f_l(x_C)                        and distances weighted by 1/q_j
//!               - alpha [grad fh_j(x_j) / q_j] )
//!   z_l  +=  y_l - x_C
//! ```
//!
//! The copies stay equal to the bit, because all members compute the same from the same numbers in the same order.

use std::collections::BTreeMap;

use crate::{ConsensusTerms, Local, SolverNode};

/// In what distances are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// As usual.
    Identity,
    /// Weighted by one over the number of cliques that a node is in: the step on a node's own terms does not depend on it.
    Memberships,
}

/// What the members of a clique would like together: `f_l`, for each component of their variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CliqueCost {
    /// Nothing.
    None,
    /// `weight / 2 (mean - target)^2`.
    Mean {
        /// Not negative.
        weight: f64,
        /// Where the mean should be.
        target: f64,
    },
}

/// What the members of a clique have to keep: `g_l`, for each component of their variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constraint {
    /// Nothing.
    None,
    /// All are equal.
    Equal,
    /// They sum to this.
    Sum(f64),
}

/// A clique and what couples it.
#[derive(Clone, Debug, PartialEq)]
pub struct CliqueTerm {
    /// Its nodes, ascending.
    pub members: Vec<usize>,
    /// For each of them, in how many cliques of the problem it is.
    pub memberships: Vec<usize>,
    /// `f_l`.
    pub cost: CliqueCost,
    /// `g_l`.
    pub constraint: Constraint,
}

impl CliqueTerm {
    /// A Lipschitz constant of the gradient of its cost.
    #[must_use]
    pub fn smoothness(&self) -> f64 {
        match self.cost {
            CliqueCost::None => 0.0,
            CliqueCost::Mean { weight, .. } => weight / self.members.len() as f64,
        }
    }

    /// The derivative of the cost by any member, for one component; `x` are all members'.
    fn slope(&self, x: impl Iterator<Item = f64>) -> f64 {
        match self.cost {
            CliqueCost::None => 0.0,
            CliqueCost::Mean { weight, target } => {
                let members = self.members.len() as f64;
                weight * (x.sum::<f64>() / members - target) / members
            }
        }
    }

    /// The nearest point that keeps the constraint, for one component; distances are weighted by `1 / weights`.
    pub(crate) fn project(&self, weights: &[f64], v: &mut [f64]) {
        match self.constraint {
            Constraint::None => {}
            Constraint::Equal => {
                let (sum, inverse) =
                    v.iter().zip(weights).fold((0.0, 0.0), |(sum, inverse), (v, q)| (sum + v / q, inverse + 1.0 / q));
                v.fill(sum / inverse);
            }
            Constraint::Sum(total) => {
                let share = (total - v.iter().sum::<f64>()) / weights.iter().sum::<f64>();
                v.iter_mut().zip(weights).for_each(|(v, q)| *v += q * share);
            }
        }
    }
}

/// What a node says in an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct CliqueMessage {
    /// Its variables.
    pub x: Vec<f64>,
    /// The gradient of its smooth term there.
    pub gradient: Vec<f64>,
}

/// One node.
pub struct CliqueNode {
    id: usize,
    local: Local,
    step: f64,
    metric: Metric,
    cliques: Vec<CliqueCopy>,
}

/// A clique's variables, as a member keeps them: `z[member][component]`.
struct CliqueCopy {
    term: CliqueTerm,
    z: Vec<Vec<f64>>,
}

impl CliqueNode {
    /// A node that begins at zero, with the step size `alpha` that all nodes have, in these cliques: all that it is in, in
    /// the order that all nodes have them in.
    ///
    /// # Panics
    ///
    /// When it is in none.
    #[must_use]
    pub fn new(id: usize, terms: ConsensusTerms, cliques: Vec<CliqueTerm>, step: f64, metric: Metric) -> Self {
        assert!(!cliques.is_empty(), "node {id} is in no clique");
        let local = Local::new(terms);
        let copy = |term: CliqueTerm| CliqueCopy { z: vec![local.x().to_vec(); term.members.len()], term };
        let cliques = cliques.into_iter().map(copy).collect();
        Self { id, local, step, metric, cliques }
    }

    /// Begins with other copies than zero: `start` is what each member's variables are in all of its cliques.
    #[must_use]
    pub fn starting_at(mut self, start: impl Fn(usize) -> Vec<f64>) -> Self {
        for copy in &mut self.cliques {
            copy.z = copy.term.members.iter().map(|&member| start(member)).collect();
        }
        self
    }

    /// Takes a step, and returns what the members of its cliques have to know.
    pub fn message(&mut self) -> CliqueMessage {
        let memberships = self.cliques.len() as f64;
        let mut x = vec![0.0; self.local.x().len()];
        for copy in &self.cliques {
            if let Ok(own) = copy.term.members.binary_search(&self.id) {
                crate::vector::add(&mut x, 1.0, &copy.z[own]);
            }
        }
        x.iter_mut().for_each(|x| *x /= memberships);
        let step = match self.metric {
            Metric::Identity => self.step / memberships,
            Metric::Memberships => self.step,
        };
        self.local.go_to_prox(step, x);
        let x = self.local.x();
        CliqueMessage { x: x.to_vec(), gradient: self.local.gradient(x) }
    }

    /// Takes what the members of its cliques said in this iteration, its own word included.
    ///
    /// # Errors
    ///
    /// The member that has said nothing, or something of another length; nothing has changed then.
    pub fn absorb(&mut self, messages: &BTreeMap<usize, CliqueMessage>) -> Result<(), usize> {
        let dimension = self.local.x().len();
        let fits = |member: &usize| {
            messages.get(member).is_some_and(|said| said.x.len() == dimension && said.gradient.len() == dimension)
        };
        let members = self.cliques.iter().flat_map(|copy| &copy.term.members);
        if let Some(&silent) = members.clone().find(|member| !fits(member)) {
            return Err(silent);
        }
        for copy in &mut self.cliques {
            copy.advance(self.step, self.metric, messages);
        }
        Ok(())
    }
}

impl SolverNode for CliqueNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl CliqueCopy {
    fn advance(&mut self, step: f64, metric: Metric, messages: &BTreeMap<usize, CliqueMessage>) {
        let Self { term, z } = self;
        let q: Vec<f64> = term.memberships.iter().map(|&count| count as f64).collect();
        let (weights, divisors) = match metric {
            Metric::Identity => (vec![1.0; q.len()], q),
            Metric::Memberships => (q.clone(), vec![1.0; q.len()]),
        };
        let said: Vec<&CliqueMessage> = term.members.iter().filter_map(|member| messages.get(member)).collect();
        let components = z.first().map_or(0, Vec::len);
        for at in 0..components {
            let slope = term.slope(said.iter().map(|said| said.x[at]));
            let mut y: Vec<f64> = Vec::with_capacity(said.len());
            for ((said, z), (weight, divisor)) in said.iter().zip(&*z).zip(weights.iter().zip(&divisors)) {
                y.push(2.0 * said.x[at] - z[at] - step * (weight * slope) - step * (said.gradient[at] / divisor));
            }
            term.project(&weights, &mut y);
            for ((z, y), said) in z.iter_mut().zip(y).zip(&said) {
                z[at] += y - said.x[at];
            }
        }
    }
}
