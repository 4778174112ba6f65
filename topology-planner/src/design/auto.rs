//! The best design for a topology: makes all that are possible, compares their forecasts and takes one.

use super::{DesignError, DesignObjective, DesignOptions, FaultTolerance, Method, design};
use crate::{
    digraph::Digraph,
    drift,
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

/// The cost of a unit of [`drift::response`] in gradient steps' worth of rounds where every node has one or two
/// classes, as a share of the gradient steps `T` of the whole training.
///
/// Measured: softmax regression on the digits, sorted by label, to an accuracy of 0.9, with 1 to 8 local steps on 13
/// graphs. Rounds to the target were `T (1 / H + s r)` with `T` about 190 gradient steps, and `s` from 0.15 to 0.4,
/// depending on the graph. At 0.25 the choices on these graphs are nearest to the best. A power of `r`, other ways to
/// add the two terms, and a term for drift within a round did not improve choices on other graphs. `docs/planning.md`
/// has the table.
const DRIFT_SENSITIVITY: f64 = 0.25;

/// The cost of a plan under an objective: seconds where the links have been measured, otherwise slots on a broadcast
/// medium and payloads per node on a point-to-point one. `None` where the forecast lacks it.
///
/// For training it is the cost of a round times `1 / H + 0.25 h r`, with `H` local steps, the `heterogeneity` `h` of
/// the data and the [`drift::response`] `r`. It is the cost of a gradient step, as a share of the time to a given
/// accuracy. That time has two parts. The rounds in which the gradient steps take place are divided by `H`; those in
/// which nodes agree again are not (Koloskova et al., "A Unified Theory of Decentralized SGD with Changing Topology and
/// Local Updates", ICML 2020, theorem 2: of the terms of its bound on gradient steps, those of the noise do not grow
/// with `H`; that of the network is proportional to it, and the number of its rounds is thus constant).
#[must_use]
pub fn cost(plan: &Plan, objective: DesignObjective, heterogeneity: f64) -> Option<f64> {
    let forecast = plan.forecast();
    let per_period = match (forecast.seconds_per_period, plan.medium()) {
        (Some(seconds), _) => seconds,
        (None, Medium::Broadcast) => forecast.slots_per_period as f64,
        (None, Medium::PointToPoint) => forecast.payloads_per_period as f64 / plan.node_count() as f64,
    };
    match objective {
        DesignObjective::Agreement => {
            let periods = forecast.periods_to_1e_2.map(|periods| periods as f64 * per_period);
            forecast.slots_to_1e_2.map(|slots| slots as f64).or(periods)
        }
        DesignObjective::Training => {
            let per_round = per_period * plan.round_length() as f64 / plan.steps().len() as f64;
            forecast.lambda_2.filter(|&modulus| modulus < 1.0)?;
            let drift = drift::response(plan.node_count(), plan.steps(), plan.round_length());
            Some(per_round * rounds_for_a_gradient_step(plan.local_steps(), heterogeneity, drift))
        }
    }
}

/// The rounds for a gradient step, `1 / H + 0.25 h r`: see [`cost`].
pub(super) fn rounds_for_a_gradient_step(local_steps: u32, heterogeneity: f64, drift: f64) -> f64 {
    1.0 / f64::from(local_steps.max(1)) + DRIFT_SENSITIVITY * heterogeneity * drift
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
        match design(topology, method, options)
            .map(|plan| (cost(&plan, options.objective, options.heterogeneity), plan))
        {
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
        Method::DPsgd | Method::SgpUniform | Method::Exponential | Method::OnePeerExponential => {
            nodes > MAX_ITERATED_NODES && has_plan
        }
        _ => nodes > MAX_SEARCHED_NODES,
    }
}

fn reason(cost: f64, best: &Plan, next: Option<(f64, Plan)>, objective: DesignObjective) -> String {
    let unit = match (best.forecast().seconds_per_period, best.medium()) {
        (Some(_), _) => "seconds",
        (None, Medium::Broadcast) => "slots",
        (None, Medium::PointToPoint) => "payloads per node",
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
fn holder_of_most(plan: &Plan) -> Option<usize> {
    let nodes = plan.node_count();
    let mut weights = vec![1.0; nodes];
    let mut scratch = vec![0.0; nodes];
    plan.steps().iter().find_map(|step| {
        step.mix(&mut weights, &mut scratch);
        weights.iter().position(|&weight| weight > 0.5 * nodes as f64 + 1e-9)
    })
}

/// Checks that the period's graph stays strongly connected after the losses that it has to survive, and that most of the
/// weight is never lost with one node.
pub(super) fn survives(plan: &Plan, tolerance: FaultTolerance) -> Result<(), DesignError> {
    if tolerance == FaultTolerance::None {
        return Ok(());
    }
    let links = plan.steps().iter().flat_map(MixingStep::links).map(|link| link.link());
    let resilience = Resilience::of(&Digraph::new(plan.node_count(), links));
    let name = |node: usize| plan.base().names()[node].clone();
    let critical = match tolerance {
        FaultTolerance::AnyNode => {
            let cut = resilience.critical_nodes.first().map(|&node| format!("node {}", name(node)));
            let holds = |node| format!("node {}, which holds most of the weight of all at times", name(node));
            cut.or_else(|| holder_of_most(plan).map(holds))
        }
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
