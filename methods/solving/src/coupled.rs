//! Variables of nodes that cliques couple: one node's work.

use std::sync::Arc;

use mingle_solver::CliqueTerm;

use crate::cliques::OwnCliques;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{CoupledTask, OwnTerms, StoppingCriteria};
use crate::solution::{Answer, CliqueState};
use crate::stopping_rule::NodeOutcome;

/// The advice to give when the iteration diverges.
const REMEDY: &str = "numbers of very different size do that: variables and weights want other units";

/// One node's work, from its own terms to its variables. It begins at `start`, else at zero.
pub(crate) async fn solve(
    task: Arc<CoupledTask>,
    own: Arc<dyn OwnTerms>,
    limits: StoppingCriteria,
    collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> Result<NodeOutcome, SolveError> {
    let mine = OwnCliques::new(&task.terms(), collectives.me, task.components().len(), task.metric);
    let found = mine.split(own.terms(), limits, (&collectives, &journal), start, REMEDY).await?;
    let state = |((&place, term), prices): ((&usize, &CliqueTerm), &Vec<f64>)| {
        let members = term.members.iter().filter_map(|member| found.messages.get(member));
        let x: Vec<&[f64]> = members.map(|said| said.x.as_slice()).collect();
        let clique = &task.cliques()[place];
        CliqueState {
            clique: clique.name.clone(),
            coupling: clique.word.clone(),
            violation: term.violation(&x),
            prices: prices.clone(),
        }
    };
    let cliques = mine.places.iter().zip(&mine.terms).zip(&found.optimality.prices);
    let answer = Answer::CliqueCoupling { variables: found.x.clone(), cliques: cliques.map(state).collect() };
    Ok(found.outcome(answer))
}
