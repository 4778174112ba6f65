//! CD-DYS: any coupling over cliques, by Davis and Yin's splitting (\[WS\], Algorithm 1, and its variable metric,
//! section 4.2).
//!
//! Every member of a clique keeps the clique's copy `z_l` of all members' variables and updates it by itself, from the
//! messages of all members:
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

mod optimality;

use std::collections::BTreeMap;

pub use optimality::CliqueOptimality;

use crate::{ConsensusTerms, Local, SolverNode};

/// The metric of distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceMetric {
    /// The Euclidean metric.
    Identity,
    /// The metric weighted by one over the number of cliques that a node is in: the step on a node's own terms does not
    /// depend on that number.
    Memberships,
}

impl DistanceMetric {
    /// A Lipschitz constant of the own terms of a node in so many cliques, as it bounds the step in this metric.
    #[must_use]
    pub fn own_smoothness(self, smoothness: f64, memberships: usize) -> f64 {
        match self {
            Self::Identity => smoothness / memberships.max(1) as f64,
            Self::Memberships => smoothness,
        }
    }

    /// A Lipschitz constant of the coupling of a clique, as it bounds the step in this metric.
    #[must_use]
    pub fn coupled_smoothness(self, clique: &CliqueTerm) -> f64 {
        match self {
            Self::Identity => clique.smoothness(),
            Self::Memberships => clique.smoothness() * clique.memberships.iter().copied().max().unwrap_or(1) as f64,
        }
    }
}

/// The cost of a clique, `f_l`, for each component of its members' variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CliqueCost {
    /// No cost.
    None,
    /// `weight / 2 (mean - target)^2`.
    Mean {
        /// Not negative.
        weight: f64,
        /// The preferred mean.
        target: f64,
    },
}

/// The constraint of a clique, `g_l`, for each component of its members' variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constraint {
    /// No constraint.
    None,
    /// All variables are equal.
    Equal,
    /// The sum of the variables is this.
    Sum(f64),
}

/// A clique, with its cost and constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct CliqueTerm {
    /// Its nodes, ascending.
    pub members: Vec<usize>,
    /// The number of cliques of the problem that each member is in.
    pub memberships: Vec<usize>,
    /// `f_l`.
    pub cost: CliqueCost,
    /// `g_l`.
    pub constraint: Constraint,
}

impl CliqueTerm {
    /// A Lipschitz constant of the cost's gradient.
    #[must_use]
    pub fn smoothness(&self) -> f64 {
        match self.cost {
            CliqueCost::None => 0.0,
            CliqueCost::Mean { weight, .. } => weight / self.members.len() as f64,
        }
    }

    /// The derivative of the cost by any member's variable, for one component; `x` are the variables of all members.
    pub fn slope(&self, x: impl Iterator<Item = f64>) -> f64 {
        match self.cost {
            CliqueCost::None => 0.0,
            CliqueCost::Mean { weight, target } => {
                let members = self.members.len() as f64;
                weight * (x.sum::<f64>() / members - target) / members
            }
        }
    }

    /// The cost, for one component.
    fn cost(&self, x: impl Iterator<Item = f64>) -> f64 {
        match self.cost {
            CliqueCost::None => 0.0,
            CliqueCost::Mean { weight, target } => {
                weight / 2.0 * (x.sum::<f64>() / self.members.len() as f64 - target).powi(2)
            }
        }
    }

    /// The violation of the constraint, for one component.
    fn violation(&self, x: impl Iterator<Item = f64>) -> f64 {
        match self.constraint {
            Constraint::None => 0.0,
            Constraint::Equal => {
                let (least, most) = x.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
                (most - least).max(0.0)
            }
            Constraint::Sum(total) => (x.sum::<f64>() - total).abs(),
        }
    }

    /// Projects onto the constraint, for one component; distances are weighted by `1 / weights`.
    pub fn project(&self, weights: &[f64], v: &mut [f64]) {
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

/// A node's message in an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct CliqueMessage {
    /// The node's variables.
    pub x: Vec<f64>,
    /// The gradient of the node's smooth term there.
    pub gradient: Vec<f64>,
}

/// A node of CD-DYS.
pub struct CliqueNode {
    id: usize,
    local: Local,
    step: f64,
    metric: DistanceMetric,
    cliques: Vec<CliqueCopy>,
}

/// A clique's variables in a member's copy: `z[member][component]`.
struct CliqueCopy {
    term: CliqueTerm,
    z: Vec<Vec<f64>>,
}

impl CliqueNode {
    /// A node that begins at zero, with the step size `alpha` that all nodes share and all cliques that it is in, in
    /// the order that is the same at all nodes.
    ///
    /// # Panics
    ///
    /// When it is in no clique.
    #[must_use]
    pub fn new(id: usize, terms: ConsensusTerms, cliques: Vec<CliqueTerm>, step: f64, metric: DistanceMetric) -> Self {
        assert!(!cliques.is_empty(), "node {id} is in no clique");
        let local = Local::new(terms);
        let copy = |term: CliqueTerm| CliqueCopy { z: vec![local.x().to_vec(); term.members.len()], term };
        let cliques = cliques.into_iter().map(copy).collect();
        Self { id, local, step, metric, cliques }
    }

    /// Begins with copies other than zero: `start` returns the variables of a member in all of its cliques.
    #[must_use]
    pub fn starting_at(mut self, start: impl Fn(usize) -> Vec<f64>) -> Self {
        for copy in &mut self.cliques {
            copy.z = copy.term.members.iter().map(|&member| start(member)).collect();
        }
        self
    }

    /// Takes a step, and returns the message to the members of its cliques.
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
            DistanceMetric::Identity => self.step / memberships,
            DistanceMetric::Memberships => self.step,
        };
        self.local.go_to_prox(step, x);
        let x = self.local.x();
        CliqueMessage { x: x.to_vec(), gradient: self.local.gradient(x) }
    }

    /// Takes the messages of the members of its cliques in this iteration, its own included.
    ///
    /// # Errors
    ///
    /// A member whose message is missing or has another length; the node is then unchanged.
    pub fn absorb(&mut self, messages: &BTreeMap<usize, CliqueMessage>) -> Result<(), usize> {
        self.check(messages)?;
        let mut shift: f64 = 0.0;
        for copy in &mut self.cliques {
            shift = shift.max(copy.advance(self.step, self.metric, messages));
        }
        self.local.note_shift(shift);
        Ok(())
    }

    /// The node's part of the objective: its own term, and an equal share of the costs of its cliques.
    ///
    /// # Errors
    ///
    /// As [`absorb`](Self::absorb).
    pub fn cost(&self, messages: &BTreeMap<usize, CliqueMessage>) -> Result<f64, usize> {
        self.check(messages)?;
        let coupled = self.cliques.iter().map(|copy| {
            let said = copy.said(messages);
            let at = |at: usize| copy.term.cost(said.iter().map(|said| said.x[at])) / said.len() as f64;
            (0..self.local.x().len()).map(at).sum::<f64>()
        });
        Ok(self.local.smooth_value() + coupled.sum::<f64>())
    }

    fn check(&self, messages: &BTreeMap<usize, CliqueMessage>) -> Result<(), usize> {
        let dimension = self.local.x().len();
        let fits = |member: &usize| {
            messages.get(member).is_some_and(|said| said.x.len() == dimension && said.gradient.len() == dimension)
        };
        let mut members = self.cliques.iter().flat_map(|copy| &copy.term.members);
        members.find(|member| !fits(member)).map_or(Ok(()), |silent| Err(*silent))
    }
}

impl SolverNode for CliqueNode {
    fn local(&self) -> &Local {
        &self.local
    }
}

impl CliqueCopy {
    /// The divisors of squared distances, and the divisors of the members' gradients.
    fn scales(&self, metric: DistanceMetric) -> (Vec<f64>, Vec<f64>) {
        let q: Vec<f64> = self.term.memberships.iter().map(|&count| count as f64).collect();
        match metric {
            DistanceMetric::Identity => (vec![1.0; q.len()], q),
            DistanceMetric::Memberships => (q.clone(), vec![1.0; q.len()]),
        }
    }

    fn said<'a>(&self, messages: &'a BTreeMap<usize, CliqueMessage>) -> Vec<&'a CliqueMessage> {
        self.term.members.iter().filter_map(|member| messages.get(member)).collect()
    }

    /// Updates the copy; returns the length of its move.
    fn advance(&mut self, step: f64, metric: DistanceMetric, messages: &BTreeMap<usize, CliqueMessage>) -> f64 {
        let (weights, divisors) = self.scales(metric);
        let said = self.said(messages);
        let Self { term, z } = self;
        let components = z.first().map_or(0, Vec::len);
        let mut shift: f64 = 0.0;
        for at in 0..components {
            let slope = term.slope(said.iter().map(|said| said.x[at]));
            let mut y: Vec<f64> = Vec::with_capacity(said.len());
            for ((said, z), (weight, divisor)) in said.iter().zip(&*z).zip(weights.iter().zip(&divisors)) {
                y.push(2.0 * said.x[at] - z[at] - step * (weight * slope) - step * (said.gradient[at] / divisor));
            }
            term.project(&weights, &mut y);
            for ((z, y), said) in z.iter_mut().zip(y).zip(&said) {
                shift = shift.max((y - said.x[at]).abs());
                z[at] += y - said.x[at];
            }
        }
        shift
    }
}
