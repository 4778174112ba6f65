//! The best design for the case: all that can be made are made, their forecasts compared, and one is taken.

use super::{DesignError, DesignOptions, FaultTolerance, Method, Objective, design};
use crate::{
    digraph::Digraph,
    plan::{Medium, Parameter, Plan, Step},
    resilience::Resilience,
    topology::Topology,
};

/// Above this many nodes only the designs that need no search over whole spectra or distances are tried.
const MAX_SEARCHED_NODES: usize = 400;

/// A design that was tried.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which.
    pub method: Method,
    /// Its plan, or why there is none.
    pub outcome: Result<Plan, DesignError>,
}

/// Makes a plan by each method.
///
/// ```
/// use mingle_planner::{DesignOptions, Method, Topology, design::compare};
/// let ring = Topology::generate("ring:n=8")?;
/// let [mixed, exact] = [Method::DPsgd, Method::ExactAverage];
/// let candidates = compare(&ring, &[mixed, exact], &DesignOptions::default());
/// let slots = |at: usize| candidates[at].outcome.as_ref().ok().and_then(|plan| plan.forecast().slots_to_1e_2);
/// assert!(slots(1) < slots(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn compare(topology: &Topology, methods: &[Method], options: &DesignOptions) -> Vec<Candidate> {
    methods.iter().map(|&method| Candidate { method, outcome: design(topology, method, options) }).collect()
}

/// What a plan costs under an objective: slots on a broadcast medium, payloads on another, or seconds where they are
/// known. None where the forecast does not know it.
#[must_use]
pub fn cost(plan: &Plan, objective: Objective) -> Option<f64> {
    let forecast = plan.forecast();
    let per_period = match plan.medium() {
        Medium::Broadcast => forecast.slots_per_period as f64,
        Medium::PointToPoint => forecast.payloads_per_period as f64 / plan.node_count() as f64,
    };
    match objective {
        Objective::Agreement => {
            let periods = forecast.periods_to_1e_2.map(|periods| periods as f64 * per_period);
            forecast.slots_to_1e_2.map(|slots| slots as f64).or(periods)
        }
        Objective::Training => {
            let per_round = per_period * plan.round_length() as f64 / plan.steps().len() as f64;
            let modulus = forecast.lambda_2.filter(|&modulus| modulus < 1.0)?;
            Some(per_round + per_period / -modulus.ln())
        }
    }
}

/// The plan with the least cost among all methods. Its method is the chosen one, its parameters tell why.
pub(super) fn choose(topology: &Topology, options: &DesignOptions) -> Result<Plan, DesignError> {
    let is_small = topology.node_count() <= MAX_SEARCHED_NODES;
    let is_tried = |method: &Method| {
        *method != Method::Auto
            && (is_small || matches!(method, Method::ExactAverage | Method::DPsgd | Method::SgpUniform))
    };
    let methods: Vec<Method> = Method::ALL.into_iter().filter(is_tried).collect();
    let mut priced: Vec<(f64, Plan)> = Vec::new();
    let mut refusals = Vec::new();
    for candidate in compare(topology, &methods, options) {
        match candidate.outcome.map(|plan| (cost(&plan, options.objective), plan)) {
            Ok((Some(cost), plan)) => priced.push((cost, plan)),
            Ok((None, _)) => refusals.push(format!("{}: its spectrum is not known", candidate.method)),
            Err(error) => refusals.push(error.to_string()),
        }
    }
    // Stable: among equals the first of the list.
    priced.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut priced = priced.into_iter();
    let Some((cost, best)) = priced.next() else {
        return Err(DesignError::NoDesign { refusals: refusals.join("; ") });
    };
    let reason = reason(cost, &best, priced.next(), options.objective);
    Ok(best
        .with_parameter("chosen_by", Parameter::Text("auto".to_owned()))
        .with_parameter("reason", Parameter::Text(reason)))
}

fn reason(cost: f64, best: &Plan, next: Option<(f64, Plan)>, objective: Objective) -> String {
    let unit = match best.medium() {
        Medium::Broadcast => "slots",
        Medium::PointToPoint => "payloads per node",
    };
    let what = match objective {
        Objective::Agreement => "to agree to 1e-2",
        Objective::Training => "for a round and a neper",
    };
    let next = next.map_or_else(String::new, |(cost, plan)| format!(", next best {} with {cost:.1}", plan.method()));
    format!("{cost:.1} {unit} {what}{next}")
}

/// Whether the period's graph stays strongly connected after the losses that it has to survive.
pub(super) fn survives(plan: &Plan, tolerance: FaultTolerance) -> Result<(), DesignError> {
    if tolerance == FaultTolerance::None {
        return Ok(());
    }
    let links = plan.steps().iter().flat_map(Step::links).map(|link| link.link());
    let resilience = Resilience::of(&Digraph::new(plan.node_count(), links));
    let name = |node: usize| plan.base().names()[node].clone();
    let critical = match tolerance {
        FaultTolerance::AnyNode => resilience.critical_nodes.first().map(|&node| format!("node {}", name(node))),
        _ => {
            let named = |link: &crate::Link| format!("the link from {} to {}", name(link.from), name(link.to));
            resilience.critical_links.first().map(named)
        }
    };
    match critical {
        None => Ok(()),
        Some(critical) => Err(DesignError::Fragile { method: plan.method().to_owned(), critical }),
    }
}
