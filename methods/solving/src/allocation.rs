//! Shared budgets: one node's work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_protocol::NodeId;
use mingle_solver::{CliqueMessage, CliqueNode, CliqueTerm, DistanceMetric, Preference, SharingClique, SolverNode};

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{AllocationTask, StoppingCriteria};
use crate::schedule::node;
use crate::solution::{Answer, Certificate, Paid};
use crate::stopping_rule::{NodeOutcome, StoppingRule};

/// A finite stand-in for an infinite bound in messages, where every number is finite.
const FAR: f64 = 1e290;

/// The advice to give when the iteration diverges.
const REMEDY: &str = "numbers of very different size do that: budgets and weights want other units";

/// One node's work, from its preference to its share. It begins at `start`, else at zero.
pub(crate) async fn solve(
    task: Arc<AllocationTask>,
    preference: Preference,
    limits: StoppingCriteria,
    collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> Result<NodeOutcome, SolveError> {
    let mine = Mine::new(&task, collectives.me);
    check_budgets(&task, &mine, &preference, &collectives).await?;
    let step = agree_on_step(&collectives, task.metric, &mine.terms, preference.weight).await?;
    let own = start.and_then(|x| x.first().copied()).unwrap_or(0.0);
    let begins: BTreeMap<usize, Vec<f64>> = mine.exchange(&collectives, &[own]).await?;
    let mut state = CliqueNode::new(collectives.me, preference.terms(), mine.terms.clone(), step, task.metric)
        .starting_at(|member| begins.get(&member).cloned().unwrap_or_else(|| vec![0.0]));
    let mut pace = StoppingRule::new(&collectives, limits, REMEDY);
    while pace.goes_on() {
        let messages = mine.messages(&collectives, &state.message()).await?;
        state.absorb(&messages).map_err(unheard)?;
        pace.note(&journal, &collectives, state.residual(), state.solution()).await?;
    }
    let messages = mine.messages(&collectives, &state.message()).await?;
    let multipliers = mine.multipliers(&collectives, &state.multipliers(&messages).map_err(unheard)?).await?;
    let optimality = state.optimality(&messages, &multipliers).map_err(unheard)?;
    let cost = collectives.total(&[state.cost(&messages).map_err(unheard)?]).await?;
    let worst = collectives.most(&[optimality.stationarity, optimality.violation]).await?;
    let cliques = mine.cliques.iter().zip(&optimality.prices);
    let of_clique = |(&clique, &price): (&usize, &f64)| paid(&task.budgets.all()[clique], price, &messages);
    Ok(NodeOutcome {
        iterations: pace.iterations,
        converged: pace.converged,
        step,
        objective: cost[0],
        certificate: Certificate { gap: None, kkt: worst[0], violation: worst[1], residual: pace.worst },
        answer: Answer::ResourceAllocation { number: state.solution()[0], cliques: cliques.map(of_clique).collect() },
    })
}

/// The state of a clique's budget with this price, by the numbers of its members.
fn paid(clique: &SharingClique, price: f64, messages: &BTreeMap<usize, CliqueMessage>) -> Paid {
    Paid {
        clique: clique.name.clone(),
        budget: clique.budget,
        sum: clique.members.iter().filter_map(|member| messages.get(member)).map(|said| said.x[0]).sum(),
        price: clique.budget.map(|_| price),
    }
}

fn unheard(member: usize) -> SolveError {
    SolveError::Unheard { member }
}

/// The cliques of a node, and the partners that it exchanges messages with for them.
struct Mine {
    me: usize,
    /// Their places among all cliques.
    cliques: Vec<usize>,
    terms: Vec<CliqueTerm>,
    partners: Vec<NodeId>,
    /// For each of its cliques and each member: the place of the clique among the member's own.
    places: Vec<Vec<usize>>,
    /// The most cliques that any node is in.
    most_memberships: usize,
}

impl Mine {
    fn new(task: &AllocationTask, me: usize) -> Self {
        let all = task.budgets.terms();
        let cliques: Vec<usize> = (0..all.len()).filter(|&clique| all[clique].members.contains(&me)).collect();
        let terms: Vec<CliqueTerm> = cliques.iter().map(|&clique| all[clique].clone()).collect();
        let others: BTreeSet<usize> =
            terms.iter().flat_map(|term| &term.members).copied().filter(|&other| other != me).collect();
        let place = |clique: usize, member: usize| {
            all[..clique].iter().filter(|earlier| earlier.members.contains(&member)).count()
        };
        let of_clique = |&clique: &usize| all[clique].members.iter().map(|&member| place(clique, member)).collect();
        Self {
            me,
            places: cliques.iter().map(of_clique).collect(),
            most_memberships: task.most_memberships(),
            cliques,
            terms,
            partners: others.into_iter().map(node).collect(),
        }
    }

    /// Exchanges values with all members of its cliques; returns those of each member, itself included.
    async fn exchange(
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
        values.resize(self.most_memberships, 0.0);
        let said = self.exchange(collectives, &values).await?;
        let of_member = |(member, place): (&usize, &usize)| {
            said.get(member).and_then(|values| values.get(*place)).map(|value| vec![*value]).unwrap_or_default()
        };
        let cliques = self.terms.iter().zip(&self.places);
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

/// Checks that the bounds of its members rule out no budget; all nodes learn of one that is ruled out.
async fn check_budgets(
    task: &AllocationTask,
    mine: &Mine,
    preference: &Preference,
    collectives: &Collectives,
) -> Result<(), SolveError> {
    let bounds = mine.exchange(collectives, &[preference.lower.max(-FAR), preference.upper.min(FAR)]).await?;
    let bound = |member: &usize| {
        let far = |value: f64| if value.abs() >= FAR { value.signum() * f64::INFINITY } else { value };
        bounds.get(member).map_or((f64::NEG_INFINITY, f64::INFINITY), |bounds| (far(bounds[0]), far(bounds[1])))
    };
    let refuse = |&clique: &usize| {
        let members = task.budgets.all()[clique].members.iter();
        task.budgets.check_budget(clique, members.map(bound)).err().map(|error| (clique, error))
    };
    let refused = mine.cliques.iter().find_map(refuse);
    // Counts from 1: 0 means that nothing is wrong.
    let mark = refused.as_ref().map_or(0.0, |(clique, _)| *clique as f64 + 1.0);
    let worst = collectives.largest(&[mark]).await?;
    match (refused, worst[0]) {
        (Some((_, error)), _) => Err(SolveError::Budget(error)),
        (None, (mark, finder)) if mark > 0.0 => {
            let place = task.budgets.all().iter().enumerate().find(|(at, _)| *at as f64 + 1.0 == mark);
            let clique = place.map_or("of another file", |(_, clique)| clique.name.as_str()).to_owned();
            Err(SolveError::BudgetElsewhere { finder, clique })
        }
        _ => Ok(()),
    }
}

/// Agrees on half of the largest step at which the splitting converges.
async fn agree_on_step(
    collectives: &Collectives,
    metric: DistanceMetric,
    cliques: &[CliqueTerm],
    smoothness: f64,
) -> Result<f64, SolveError> {
    let own = metric.own_smoothness(smoothness, cliques.len());
    let coupled = cliques.iter().map(|clique| metric.coupled_smoothness(clique)).fold(0.0, f64::max);
    let largest = collectives.most(&[own, coupled]).await?;
    let sum = largest[0] + largest[1];
    Ok(if sum > 0.0 { 1.0 / sum } else { 1.0 })
}
