//! Problems over cliques: one node's work, whatever the cliques' costs and couplings are.

use std::collections::{BTreeMap, BTreeSet};

use mingle_protocol::NodeId;
use mingle_solver::{
    CliqueMessage, CliqueNode, CliqueOptimality, CliqueTerm, ConsensusTerms, DistanceMetric, SolverNode,
};

use crate::clique_sizes::most_memberships;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::StoppingCriteria;
use crate::schedule::node;
use crate::solution::{Answer, Certificate};
use crate::stopping_rule::{NodeOutcome, StoppingRule};

/// The end of a node's iterations.
pub(crate) struct SplitEnd {
    iterations: u64,
    converged: bool,
    step: f64,
    objective: f64,
    certificate: Certificate,
    /// The node's variables.
    pub(crate) x: Vec<f64>,
    /// The last messages of the members of its cliques, its own included.
    pub(crate) messages: BTreeMap<usize, CliqueMessage>,
    /// The node's distance from the optimum, and the prices of its cliques.
    pub(crate) optimality: CliqueOptimality,
}

impl SplitEnd {
    pub(crate) fn outcome(self, answer: Answer) -> NodeOutcome {
        let Self { iterations, converged, step, objective, certificate, .. } = self;
        NodeOutcome { iterations, converged, step, objective, certificate, answer }
    }
}

/// The cliques of a node, and the partners that it exchanges messages with for them.
pub(crate) struct OwnCliques {
    me: usize,
    metric: DistanceMetric,
    /// The number of variables of each node.
    dimension: usize,
    /// The places of its cliques among all.
    pub(crate) places: Vec<usize>,
    pub(crate) terms: Vec<CliqueTerm>,
    partners: Vec<NodeId>,
    /// For each of its cliques and each member: the place of the clique among the member's own.
    places_at_members: Vec<Vec<usize>>,
    /// The most cliques that any node is in.
    most_memberships: usize,
}

impl OwnCliques {
    /// The cliques of the node `me`.
    pub(crate) fn new(all: &[CliqueTerm], me: usize, dimension: usize, metric: DistanceMetric) -> Self {
        let places: Vec<usize> = (0..all.len()).filter(|&clique| all[clique].members.contains(&me)).collect();
        let terms: Vec<CliqueTerm> = places.iter().map(|&clique| all[clique].clone()).collect();
        let others: BTreeSet<usize> =
            terms.iter().flat_map(|term| &term.members).copied().filter(|&other| other != me).collect();
        let place = |clique: usize, member: usize| {
            all[..clique].iter().filter(|earlier| earlier.members.contains(&member)).count()
        };
        let of_clique = |&clique: &usize| all[clique].members.iter().map(|&member| place(clique, member)).collect();
        Self {
            me,
            metric,
            dimension,
            places_at_members: places.iter().map(of_clique).collect(),
            most_memberships: most_memberships(all),
            places,
            terms,
            partners: others.into_iter().map(node).collect(),
        }
    }

    /// The node's iterations with its own terms, until all nodes stop. It begins at `start`, else at zero; `remedy` is the
    /// advice to give when the iteration diverges.
    pub(crate) async fn split(
        &self,
        own: ConsensusTerms,
        limits: StoppingCriteria,
        (collectives, journal): (&Collectives, &ProgressJournal),
        start: Option<Vec<f64>>,
        remedy: &'static str,
    ) -> Result<SplitEnd, SolveError> {
        let step = self.agree_on_step(collectives, own.smooth.smoothness()).await?;
        let zeros = vec![0.0; self.dimension];
        let start = start.filter(|x| x.len() == self.dimension).unwrap_or_else(|| zeros.clone());
        let begins = self.exchange(collectives, &start).await?;
        let mut state = CliqueNode::new(self.me, own, self.terms.clone(), step, self.metric)
            .starting_at(|member| begins.get(&member).unwrap_or(&zeros).clone());
        let mut pace = StoppingRule::new(collectives, limits, remedy);
        while pace.goes_on() {
            let messages = self.messages(collectives, &state.message()).await?;
            state.absorb(&messages).map_err(unheard)?;
            pace.note(journal, collectives, state.residual(), state.solution()).await?;
        }
        let messages = self.messages(collectives, &state.message()).await?;
        let multipliers = self.multipliers(collectives, &state.multipliers(&messages).map_err(unheard)?).await?;
        let optimality = state.optimality(&messages, &multipliers).map_err(unheard)?;
        let cost = collectives.total(&[state.cost(&messages).map_err(unheard)?]).await?;
        let worst = collectives.most(&[optimality.stationarity, optimality.violation]).await?;
        Ok(SplitEnd {
            iterations: pace.iterations,
            converged: pace.converged,
            step,
            objective: cost[0],
            certificate: Certificate { gap: None, kkt: worst[0], violation: worst[1], residual: pace.worst },
            x: state.solution().to_vec(),
            messages,
            optimality,
        })
    }

    /// Agrees on half of the largest step at which the splitting converges.
    async fn agree_on_step(&self, collectives: &Collectives, smoothness: f64) -> Result<f64, SolveError> {
        let own = self.metric.own_smoothness(smoothness, self.terms.len());
        let coupled = self.terms.iter().map(|clique| self.metric.cost_smoothness(clique)).fold(0.0, f64::max);
        let largest = collectives.most(&[own, coupled]).await?;
        let sum = largest[0] + largest[1];
        Ok(if sum > 0.0 { 1.0 / sum } else { 1.0 })
    }

    /// Exchanges values with all members of its cliques; returns those of each member, itself included.
    pub(crate) async fn exchange(
        &self,
        collectives: &Collectives,
        values: &[f64],
    ) -> Result<BTreeMap<usize, Vec<f64>>, SolveError> {
        let said = collectives.exchange(&self.partners, values).await?;
        let mut all: BTreeMap<usize, Vec<f64>> =
            said.into_iter().map(|(from, values)| (from.index(), values.to_vec())).collect();
        all.insert(self.me, values.to_vec());
        Ok(all)
    }

    /// The multipliers of all members of its cliques, `[clique][member][component]`, from those that each member sends
    /// of its own.
    async fn multipliers(&self, collectives: &Collectives, own: &[Vec<f64>]) -> Result<Vec<Vec<Vec<f64>>>, SolveError> {
        // All send equally many numbers: members of fewer cliques pad with zeros.
        let mut values = own.concat();
        values.resize(self.most_memberships * self.dimension, 0.0);
        let said = self.exchange(collectives, &values).await?;
        let of_member = |(member, place): (&usize, &usize)| {
            let all = said.get(member).map_or(&[][..], Vec::as_slice);
            all.chunks_exact(self.dimension).nth(*place).unwrap_or_default().to_vec()
        };
        let cliques = self.terms.iter().zip(&self.places_at_members);
        Ok(cliques.map(|(term, places)| term.members.iter().zip(places).map(of_member).collect()).collect())
    }

    async fn messages(
        &self,
        collectives: &Collectives,
        own: &CliqueMessage,
    ) -> Result<BTreeMap<usize, CliqueMessage>, SolveError> {
        let said = self.exchange(collectives, &[own.x.as_slice(), &own.gradient].concat()).await?;
        let message = |values: Vec<f64>| {
            let (x, gradient) = values.split_at(values.len() / 2);
            CliqueMessage { x: x.to_vec(), gradient: gradient.to_vec() }
        };
        Ok(said.into_iter().map(|(from, values)| (from, message(values))).collect())
    }
}

fn unheard(member: usize) -> SolveError {
    SolveError::Unheard { member }
}
