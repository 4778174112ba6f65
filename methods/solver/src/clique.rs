//! CD-DYS: any coupling over cliques with a proximal operator, by Davis and Yin's splitting (\[WS\], Algorithm 1, and its variable metric,
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

pub(crate) mod coupling;
mod optimality;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use coupling::{CliqueCost, CliqueCoupling};
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

    /// A Lipschitz constant of the cost of a clique, as it bounds the step in this metric.
    #[must_use]
    pub fn cost_smoothness(self, clique: &CliqueTerm) -> f64 {
        match self {
            Self::Identity => clique.smoothness(),
            Self::Memberships => clique.smoothness() * clique.memberships.iter().copied().max().unwrap_or(1) as f64,
        }
    }
}

/// A clique, with its cost and coupling.
#[derive(Clone, Debug)]
pub struct CliqueTerm {
    /// Its nodes, ascending.
    pub members: Vec<usize>,
    /// The number of cliques of the problem that each member is in.
    pub memberships: Vec<usize>,
    /// `f_l`.
    pub cost: Option<Arc<dyn CliqueCost>>,
    /// `g_l`.
    pub coupling: Option<Arc<dyn CliqueCoupling>>,
}

impl CliqueTerm {
    /// A Lipschitz constant of the cost's gradient.
    #[must_use]
    pub fn smoothness(&self) -> f64 {
        self.cost.as_ref().map_or(0.0, |cost| cost.smoothness(self.members.len()))
    }

    /// The gradient of the cost at the variables of all members, `[member][component]`.
    #[must_use]
    pub fn gradient(&self, x: &[&[f64]]) -> Vec<Vec<f64>> {
        match &self.cost {
            Some(cost) => cost.gradient(x),
            None => x.iter().map(|x| vec![0.0; x.len()]).collect(),
        }
    }

    /// Returns `true` if cost and coupling are for its members and for so many components.
    #[must_use]
    pub fn is_for(&self, components: usize) -> bool {
        let members = self.members.len();
        self.cost.as_ref().is_none_or(|cost| cost.is_for(members, components))
            && self.coupling.as_ref().is_none_or(|coupling| coupling.is_for(members, components))
    }

    /// The cost, and the value of the coupling where it is a penalty.
    fn value(&self, x: &[&[f64]]) -> f64 {
        let cost = self.cost.as_ref().map_or(0.0, |cost| cost.value(x));
        cost + self.coupling.as_ref().map_or(0.0, |coupling| coupling.value(x))
    }

    /// The violation of the coupling where it is a constraint.
    #[must_use]
    pub fn violation(&self, x: &[&[f64]]) -> f64 {
        self.coupling.as_ref().map_or(0.0, |coupling| coupling.violation(x))
    }

    /// Replaces `v` by the proximal point of `step` times the coupling; squared distances are divided by `weights`.
    pub fn prox(&self, step: f64, weights: &[f64], v: &mut [Vec<f64>]) {
        if let Some(coupling) = &self.coupling {
            coupling.prox(step, weights, v);
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
    /// When it is in no clique, or a cost or coupling is for other members or components than its clique has.
    #[must_use]
    pub fn new(id: usize, terms: ConsensusTerms, cliques: Vec<CliqueTerm>, step: f64, metric: DistanceMetric) -> Self {
        assert!(!cliques.is_empty(), "node {id} is in no clique");
        let local = Local::new(terms);
        let dimension = local.x().len();
        for term in &cliques {
            assert!(term.is_for(dimension), "{term:?} is not for {dimension} components");
        }
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
        let coupled =
            self.cliques.iter().map(|copy| copy.term.value(&copy.variables(messages)) / copy.term.members.len() as f64);
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

    /// The variables of its members, `[member][component]`.
    fn variables<'a>(&self, messages: &'a BTreeMap<usize, CliqueMessage>) -> Vec<&'a [f64]> {
        self.said(messages).into_iter().map(|said| said.x.as_slice()).collect()
    }

    fn said<'a>(&self, messages: &'a BTreeMap<usize, CliqueMessage>) -> Vec<&'a CliqueMessage> {
        self.term.members.iter().filter_map(|member| messages.get(member)).collect()
    }

    /// Updates the copy; returns the length of its move.
    fn advance(&mut self, step: f64, metric: DistanceMetric, messages: &BTreeMap<usize, CliqueMessage>) -> f64 {
        let (weights, divisors) = self.scales(metric);
        let said = self.said(messages);
        let slopes = self.term.gradient(&self.variables(messages));
        let Self { term, z } = self;
        let mut y = z.clone();
        for (member, y) in y.iter_mut().enumerate() {
            let CliqueMessage { x, gradient } = said[member];
            for (at, y) in y.iter_mut().enumerate() {
                let slope = weights[member] * slopes[member][at];
                *y = 2.0 * x[at] - *y - step * slope - step * (gradient[at] / divisors[member]);
            }
        }
        term.prox(step, &weights, &mut y);
        let mut shift: f64 = 0.0;
        for ((z, y), said) in z.iter_mut().zip(y).zip(said) {
            for ((z, y), x) in z.iter_mut().zip(y).zip(&said.x) {
                shift = shift.max((y - x).abs());
                *z += y - x;
            }
        }
        shift
    }
}
