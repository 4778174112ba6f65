//! The best design for a topology: makes all that are possible, compares their forecasts and takes one.

use super::{DesignError, DesignObjective, DesignOptions, FaultTolerance, Method, design, price::cost};
use crate::{
    digraph::{Digraph, Link},
    plan::{Medium, MixingStep, Parameter, Plan},
    resilience::Resilience,
    topology::Topology,
};

/// Above this many nodes only the designs that need no search over whole spectra or distances are tried.
const MAX_SEARCHED_NODES: usize = 400;

/// Above this many nodes the spectra of slowly mixing plans take too long to compute, if a plan that averages exactly
/// exists.
const MAX_ITERATED_NODES: usize = 4_096;

/// A design that was tried.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The method of the design.
    pub method: Method,
    /// The plan, or the reason why there is none.
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

/// The plan with the least cost among all methods. Its method is the chosen one; its parameters give the reason.
pub(super) fn choose(topology: &Topology, options: &DesignOptions) -> Result<Plan, DesignError> {
    let mut priced: Vec<(f64, Plan)> = Vec::new();
    let mut refusals = Vec::new();
    let mut skipped = Vec::new();
    for method in in_order(topology.node_count()) {
        if is_too_slow(method, topology.node_count(), !priced.is_empty()) {
            skipped.push(method.name());
            continue;
        }
        match design(topology, method, options).map(|plan| (cost(&plan, options), plan)) {
            Ok((Some(cost), plan)) => priced.push((cost, plan)),
            Ok((None, _)) => refusals.push(format!("{method}: its speed is not known")),
            Err(error) => refusals.push(format!("{method}: {error}")),
        }
    }
    refusals.extend(skipped.iter().map(|method| format!("{method}: not tried, too slow for so many nodes")));
    // The sort is stable: among equals the first of the list.
    priced.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut priced = priced.into_iter();
    let Some((cost, best)) = priced.next() else {
        return Err(DesignError::NoDesign { refusals: refusals.join("; ") });
    };
    let reason = reason(cost, &best, priced.next(), options.objective);
    let mut best = best
        .with_parameter("chosen_by", Parameter::Text("auto".to_owned()))
        .with_parameter("reason", Parameter::Text(reason));
    if options.objective == DesignObjective::Training {
        best = best.with_parameter("heterogeneity", Parameter::Real(options.heterogeneity));
    }
    if !skipped.is_empty() {
        best = best.with_parameter("too_slow_to_try", Parameter::Text(skipped.join(" ")));
    }
    Ok(best)
}

/// All methods but `auto` and those for solvers. On large topologies exact averaging, which scales best, comes first.
fn in_order(nodes: usize) -> Vec<Method> {
    let mut methods: Vec<Method> = Method::ALL.into_iter().filter(|method| method.is_tried_by_auto()).collect();
    if nodes > MAX_SEARCHED_NODES {
        methods.sort_by_key(|&method| method != Method::ExactAverage);
    }
    methods
}

/// Returns `true` if a method is left out on a topology of `nodes` nodes.
fn is_too_slow(method: Method, nodes: usize, has_plan: bool) -> bool {
    match method {
        Method::ExactAverage => false,
        Method::DPsgd
        | Method::SgpUniform
        | Method::Exponential
        | Method::OnePeerExponential
        | Method::BaseGraph(_) => nodes > MAX_ITERATED_NODES && has_plan,
        _ => nodes > MAX_SEARCHED_NODES,
    }
}

fn reason(cost: f64, best: &Plan, next: Option<(f64, Plan)>, objective: DesignObjective) -> String {
    let unit = match (best.forecast().seconds_per_period, best.medium()) {
        (Some(_), _) => "seconds",
        (None, Medium::Broadcast) => "slots",
        (None, Medium::PointToPoint) => "payloads of the busiest node",
    };
    let what = match objective {
        DesignObjective::Agreement => "to agree to 1e-2",
        DesignObjective::Training => "for a gradient step",
    };
    // Seconds may be small.
    let digits = |cost: f64| if cost < 10.0 { format!("{cost:.3}") } else { format!("{cost:.1}") };
    let next =
        next.map_or_else(String::new, |(cost, plan)| format!(", next best {} with {}", plan.method(), digits(cost)));
    format!("{} {unit} {what}{next}", digits(cost))
}

/// A node that holds more than half of the weight of all after some step of a period, which begins with equal weights:
/// the root of an exact average.
fn holder_of_most(nodes: usize, steps: &[MixingStep]) -> Option<usize> {
    let mut weights = vec![1.0; nodes];
    let mut scratch = vec![0.0; nodes];
    steps.iter().find_map(|step| {
        step.mix(&mut weights, &mut scratch);
        weights.iter().position(|&weight| weight > 0.5 * nodes as f64 + 1e-9)
    })
}

/// Checks that the period's graph stays strongly connected after the losses that it has to survive, and that most of the
/// weight is never lost with one node.
pub(super) fn survives(plan: &Plan, tolerance: FaultTolerance) -> Result<(), DesignError> {
    let name = |node: usize| plan.base().names()[node].clone();
    let critical = match critical(plan.node_count(), plan.steps(), tolerance) {
        None => return Ok(()),
        Some(Critical::Node(node)) => format!("node {}", name(node)),
        Some(Critical::Holder(node)) => format!("node {}, which holds most of the weight of all at times", name(node)),
        Some(Critical::Link(link)) => format!("the link from {} to {}", name(link.from), name(link.to)),
    };
    Err(DesignError::Fragile { method: plan.method().to_owned(), critical })
}

/// A loss that a period does not survive.
pub(super) enum Critical {
    /// A node without which others are cut off.
    Node(usize),
    /// A node that holds more than half of all weight at times.
    Holder(usize),
    /// A link without which nodes are cut off.
    Link(Link),
}

/// The first loss that is to be survived and is not.
pub(super) fn critical(nodes: usize, steps: &[MixingStep], tolerance: FaultTolerance) -> Option<Critical> {
    if tolerance == FaultTolerance::None {
        return None;
    }
    let links = steps.iter().flat_map(MixingStep::links).map(|link| link.link());
    let resilience = Resilience::of(&Digraph::new(nodes, links));
    match tolerance {
        FaultTolerance::AnyNode => {
            let cut = resilience.critical_nodes.first().map(|&node| Critical::Node(node));
            cut.or_else(|| holder_of_most(nodes, steps).map(Critical::Holder))
        }
        _ => resilience.critical_links.first().map(|&link| Critical::Link(link)),
    }
}
