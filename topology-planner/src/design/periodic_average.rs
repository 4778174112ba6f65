//! Some rounds of gossip, then a round in which all nodes get the exact average.
//!
//! Gossip with periodic global averaging (Chen, Yuan, Zhang, Pan, Xu and Yin, "Accelerating Gossip SGD with Periodic
//! Global Averaging", ICML 2021, arXiv:2105.09080). Differences between nodes end with each exact average, and cost the
//! slots or payloads of one only once in a period.
//!
//! Rounds of a plan have the same number of steps. Those of gossip have fewer than an exact average, and end with steps
//! in which no node sends.

use super::{
    Design, DesignError, DesignOptions, DesignRequest, MAX_ALGORITHM_1_NODES, Method, PeriodicAverage, design_steps,
    exact_average::MAX_PERIOD_SHARES,
};
use crate::plan::{MixingStep, Parameter, StepDraft};

/// Numbers of rounds of gossip that are compared where none is asked for.
const GOSSIP_ROUNDS: [u32; 3] = [1, 3, 7];

/// Above this many nodes only one-peer exponential graphs are tried for gossip.
const MAX_SEARCHED_NODES: usize = 400;

/// The requested gossip, or else the best that is found for training.
pub(super) fn design(request: &DesignRequest<'_>, wanted: PeriodicAverage) -> Result<Design, DesignError> {
    let PeriodicAverage { inner, gossip_rounds } = wanted;
    let exact = of_method(request, Method::ExactAverage)?;
    let choices: Vec<u32> = gossip_rounds.map_or_else(|| GOSSIP_ROUNDS.to_vec(), |rounds| vec![rounds.get()]);
    let mut best: Option<(f64, Design)> = None;
    let mut refusal = None;
    for inner in inner.map_or_else(|| inner_methods(request), |inner| vec![*inner]) {
        let gossip = match of_method(request, inner) {
            Ok(gossip) => gossip,
            Err(error) => {
                refusal.get_or_insert(error);
                continue;
            }
        };
        for &rounds in &choices {
            let design = joined(request, inner, &gossip, rounds, &exact);
            let price = request.training_cost(&design.steps, design.round_length.unwrap_or(design.steps.len()));
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, design));
            }
        }
    }
    match (best, refusal) {
        (Some((_, design)), _) => within_budget(request, design),
        (None, Some(refusal)) => Err(refusal),
        (None, None) => Err(DesignError::NoDesign { refusals: "there is no design for gossip".to_owned() }),
    }
}

/// The designs for gossip that are tried where none is asked for.
fn inner_methods(request: &DesignRequest<'_>) -> Vec<Method> {
    let any = if request.topology.node_count() <= MAX_SEARCHED_NODES { Method::NguyenHe } else { Method::DPsgd };
    vec![Method::OnePeerExponential, any]
}

/// The design of another method for the same request.
fn of_method(request: &DesignRequest<'_>, method: Method) -> Result<Design, DesignError> {
    let nodes = request.topology.node_count();
    if nodes > MAX_ALGORITHM_1_NODES && matches!(method, Method::NguyenHe | Method::Tuned) {
        return Err(DesignError::TooManyNodes { nodes, method, limit: MAX_ALGORITHM_1_NODES });
    }
    // The budget holds for the whole.
    let options = DesignOptions { budget_slots: None, ..request.options.clone() };
    design_steps(&DesignRequest { topology: request.topology, order: request.order, method, options: &options })
}

/// A period of so many rounds of gossip and an exact average, or several such where exact averages take turns at their
/// roots.
fn joined(request: &DesignRequest<'_>, inner: Method, gossip: &Design, rounds: u32, exact: &Design) -> Design {
    let gossip_length = gossip.round_length.unwrap_or(gossip.steps.len());
    let exact_length = exact.round_length.unwrap_or(exact.steps.len());
    let round_length = gossip_length.max(exact_length);
    let nodes = request.topology.node_count();
    let idle = MixingStep::sorted(StepDraft { keep: vec![1.0; nodes], ..StepDraft::default() });
    let padded = |steps: &[MixingStep]| {
        let rest = round_length - steps.len();
        steps.iter().cloned().chain(std::iter::repeat_n(idle.clone(), rest)).collect::<Vec<MixingStep>>()
    };
    let turns = (MAX_PERIOD_SHARES / ((rounds as usize + 1) * round_length * nodes)).max(1);
    let mut gossip_rounds = gossip.steps.chunks(gossip_length).cycle();
    let mut steps = Vec::new();
    for average in exact.steps.chunks(exact_length).take(turns) {
        gossip_rounds.by_ref().take(rounds as usize).for_each(|round| steps.extend(padded(round)));
        steps.extend(padded(average));
    }
    let mut parameters =
        vec![("gossip_rounds", Parameter::Whole(rounds.into())), ("inner", Parameter::Text(inner.name().to_owned()))];
    for (name, value) in exact.parameters.iter().chain(&gossip.parameters) {
        if parameters.iter().all(|(known, _)| known != name) {
            parameters.push((name, value.clone()));
        }
    }
    Design { steps, round_length: Some(round_length), parameters }
}

/// Refuses a design in which a round takes more slots than the budget has.
fn within_budget(request: &DesignRequest<'_>, design: Design) -> Result<Design, DesignError> {
    let round_length = design.round_length.unwrap_or(design.steps.len());
    let slots = |round: &[MixingStep]| round.iter().map(|step| step.slots().len()).sum::<usize>();
    let needed = design.steps.chunks(round_length).map(slots).max().unwrap_or(0);
    match request.options.budget_slots {
        Some(budget) if budget < needed => Err(DesignError::BudgetSlots { method: request.method, budget, needed }),
        _ => Ok(design),
    }
}
