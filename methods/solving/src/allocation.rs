//! Shared budgets: one node's work.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_solver::{CliqueMessage, Preference, SharingClique};

use crate::cliques::OwnCliques;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{AllocationTask, StoppingCriteria};
use crate::solution::{Answer, Paid};
use crate::stopping_rule::NodeOutcome;

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
    let mine = OwnCliques::new(&task.budgets.terms(), collectives.me, 1, task.metric);
    check_budgets(&task, &mine, &preference, &collectives).await?;
    let found = mine.split(preference.terms(), limits, (&collectives, &journal), start, REMEDY).await?;
    let cliques = mine.places.iter().zip(&found.optimality.prices);
    let of_clique = |(&clique, prices): (&usize, &Vec<f64>)| paid(&task.budgets.all()[clique], prices, &found.messages);
    let answer = Answer::ResourceAllocation { number: found.x[0], cliques: cliques.map(of_clique).collect() };
    Ok(found.outcome(answer))
}

/// The state of a clique's budget with this price, by the numbers of its members.
fn paid(clique: &SharingClique, prices: &[f64], messages: &BTreeMap<usize, CliqueMessage>) -> Paid {
    Paid {
        clique: clique.name.clone(),
        budget: clique.budget,
        sum: clique.members.iter().filter_map(|member| messages.get(member)).map(|said| said.x[0]).sum(),
        price: prices.first().copied(),
    }
}

/// Checks that the bounds of its members rule out no budget; all nodes learn of one that is ruled out.
async fn check_budgets(
    task: &AllocationTask,
    mine: &OwnCliques,
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
    let refused = mine.places.iter().find_map(refuse);
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
