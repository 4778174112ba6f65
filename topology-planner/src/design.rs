//! Designs of plans from topologies, one file per design.

mod auto;
mod base_graph;
mod bass;
mod contraction;
mod d_psgd;
mod degree_limit;
mod exact_average;
mod exponential;
mod matcha;
mod method;
mod method_check;
mod nguyen_he;
mod options;
mod periodic_average;
mod price;
mod problem;
mod sampled;
mod semidefinite;
mod sgp_uniform;
mod smoothing;
mod tuned;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use self::{
    auto::{Candidate, compare},
    method::{Method, PeriodicAverage, UnknownMethod},
    method_check::{MethodCheck, MethodMismatch},
    options::{DesignObjective, DesignOptions, ExtraEdges, FaultTolerance, UnknownChoice},
    price::cost,
    problem::DesignError,
};
pub(crate) use self::{
    exponential::{offsets as exponential_offsets, step as exponential_step},
    semidefinite::{laplacian_weight, scaled_laplacian_weight},
};
use crate::{
    coloring,
    conflict_graph::ConflictGraph,
    mixing_matrix::MixingMatrix,
    plan::{Medium, MixingStep, Parameter, Plan, PlanDraft, StepDraft},
    topology::Topology,
};

/// The most nodes that Algorithm 1 accepts, alone or in a search: it keeps the distances between all pairs. The other
/// designs need memory linear in links.
pub const MAX_ALGORITHM_1_NODES: usize = 4_096;

/// The most nodes that a seed shuffles for exact averages. Above, nodes are in the order of a breadth-first search
/// whose root the seed chooses.
const MAX_SHUFFLED_NODES: usize = 16_384;

/// Designs a plan. The same arguments give the same plan, bit for bit.
///
/// # Errors
///
/// `DesignError` with the reason why the request is impossible, and with what is possible instead.
///
/// ```
/// use mingle_planner::{DesignOptions, ExtraEdges, Method, Topology, design};
/// let topology = Topology::generate("windmill:cliques=2,size=6")?;
/// let options = DesignOptions { extra_edges: ExtraEdges::Exactly(2), ..DesignOptions::default() };
/// let plan = design(&topology, Method::NguyenHe, &options)?;
/// assert_eq!((plan.forecast().slots_per_period, plan.forecast().links), (7, 52)); // [NH] figure 3
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn design(topology: &Topology, method: Method, options: &DesignOptions) -> Result<Plan, DesignError> {
    let nodes = topology.node_count();
    if nodes > MAX_ALGORITHM_1_NODES && matches!(method, Method::NguyenHe | Method::Tuned) {
        return Err(DesignError::TooManyNodes { nodes, method, limit: MAX_ALGORITHM_1_NODES });
    }
    if method != Method::NguyenHe && options.extra_edges != ExtraEdges::Auto {
        return Err(DesignError::NoExtraEdges { method });
    }
    if method != Method::NguyenHe && !options.augments {
        return Err(DesignError::NoAugmentation { method });
    }
    if !(0.0..=1.0).contains(&options.heterogeneity) {
        return Err(DesignError::Heterogeneity { heterogeneity: options.heterogeneity });
    }
    if options.medium == Medium::PointToPoint && options.budget_slots.is_some() {
        return Err(DesignError::NoSlots);
    }
    let is_large = nodes > MAX_SHUFFLED_NODES && method == Method::ExactAverage;
    let order = if is_large { breadth_first(topology, options.seed) } else { shuffled(nodes, options.seed) };
    let renumbered = if options.seed == 0 && !is_large { None } else { Some(topology.renumbered(&order)?) };
    let request = DesignRequest { topology: renumbered.as_ref().unwrap_or(topology), order: &order, method, options };
    if method == Method::Auto {
        return auto::choose(topology, options);
    }
    let mut design = design_steps(&request)?;
    if renumbered.is_some() {
        design.steps = design.steps.into_iter().map(|step| step.renumbered(&order)).collect();
    }
    design.parameters.push(("seed", Parameter::Whole(options.seed)));
    drop(renumbered);
    let draft = PlanDraft {
        base: topology.clone(),
        method: method.name().to_owned(),
        parameters: design.parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        medium: options.medium,
        network: options.network.clone(),
        steps: Vec::new(),
        local_steps: options.local_steps,
        round_length: design.round_length,
    };
    let plan = Plan::checked(draft, design.steps, None)?;
    check_limits(&plan, method, options)?;
    Ok(plan)
}

/// The period of a method other than `auto`.
fn design_steps(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    match request.method {
        Method::Auto => Err(DesignError::NoDesign { refusals: "auto is a choice among designs".to_owned() }),
        Method::NguyenHe => nguyen_he::design(request),
        Method::Tuned => tuned::design(request),
        Method::ExactAverage => exact_average::design(request),
        Method::PeriodicAverage(wanted) => periodic_average::design(request, wanted),
        Method::BaseGraph(neighbours) => base_graph::design(request, neighbours),
        Method::BassHeuristic | Method::BassOptimised => bass::design(request),
        Method::Matcha => matcha::design(request),
        Method::DPsgd => Ok(d_psgd::design(request)),
        Method::SgpUniform => Ok(sgp_uniform::design(request)),
        Method::Exponential | Method::OnePeerExponential => exponential::design(request),
        Method::CliquePhi
        | Method::EdgePhi
        | Method::LazyMetropolis
        | Method::LazyLaplacian
        | Method::ScaledLaplacian => semidefinite::design(request),
    }
}

/// Checks that the plan keeps the promises of the options (survived losses, slots, bytes and receivers), however it was
/// designed.
fn check_limits(plan: &Plan, method: Method, options: &DesignOptions) -> Result<(), DesignError> {
    auto::survives(plan, options.fault_tolerance)?;
    let forecast = plan.forecast();
    let needed = forecast.slots_per_period as f64 * plan.round_length() as f64 / plan.steps().len() as f64;
    if let Some(budget) = options.budget_slots.filter(|&budget| budget as f64 + 1e-9 < needed) {
        return Err(DesignError::BudgetSlots { method, budget, needed: needed.ceil() as usize });
    }
    check_upload(plan, method, options)?;
    match options.max_out_degree {
        Some(limit) if limit < forecast.max_out_degree => {
            Err(DesignError::DegreeLimit { method, limit, needed: forecast.max_out_degree })
        }
        _ => Ok(()),
    }
}

/// Checks the limit on bytes sent per node and round, averaged over the period, in the codec that peers take.
fn check_upload(plan: &Plan, method: Method, options: &DesignOptions) -> Result<(), DesignError> {
    let Some(limit) = options.max_upload_bytes else {
        return Ok(());
    };
    let per_period = plan.forecast().bytes_per_node_per_period.ok_or(DesignError::UploadWithoutNetwork)?;
    let rounds = plan.steps().len() / plan.round_length();
    let share = price::Prices::of_plan(plan, options.coded_share).payload_share(
        plan.node_count(),
        plan.steps(),
        plan.round_length(),
    );
    let needed = (share * per_period as f64 / rounds as f64).ceil() as u64;
    if needed > limit { Err(DesignError::Upload { method, limit, needed }) } else { Ok(()) }
}

/// A request to a design: the topology, its nodes shuffled by the seed, and the options.
struct DesignRequest<'r> {
    topology: &'r Topology,
    /// For each node, its number in the topology that was given.
    order: &'r [usize],
    /// The method, for files that hold several.
    method: Method,
    options: &'r DesignOptions,
}

/// The result of a design file: a period, and the parameters that chose it.
struct Design {
    steps: Vec<MixingStep>,
    /// Mixing steps from one training to the next, or `None` for the whole period.
    round_length: Option<usize>,
    parameters: Vec<(&'static str, Parameter)>,
}

impl Design {
    /// A period of one step.
    fn fixed(step: StepDraft) -> Self {
        Self { steps: vec![MixingStep::sorted(step)], round_length: None, parameters: Vec::new() }
    }
}

impl DesignRequest<'_> {
    /// The number of a node in the topology that was given.
    fn original(&self, node: usize) -> usize {
        self.order[node]
    }

    /// The nodes in the order of the topology that was given.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(node, &original)| places[original] = node);
        places
    }

    /// A colouring found with a fifth of the effort: the whole effort hardly ever finds fewer slots.
    fn color(&self, graph: &ConflictGraph<'_>) -> coloring::Coloring {
        coloring::best(graph, self.options.effort.div_ceil(5), self.options.seed)
    }

    /// A step with the given weights; on a broadcast medium its links are put into slots.
    fn scheduled_step(&self, matrix: MixingMatrix) -> StepDraft {
        let (keep, links) = matrix.into_parts();
        let slots = match self.options.medium {
            Medium::Broadcast => {
                let graph = ConflictGraph::new(self.topology, links.iter().map(|link| link.link()).collect());
                coloring::slots(graph.links(), &self.color(&graph).colors)
            }
            Medium::PointToPoint => Vec::new(),
        };
        StepDraft { keep, links, slots }
    }
}

/// The nodes in the order of a breadth-first search from a root that the seed chooses: neighbours are near each other
/// in memory.
fn breadth_first(topology: &Topology, seed: u64) -> Vec<usize> {
    let nodes = topology.node_count();
    let root = if seed == 0 { 0 } else { (ChaCha8Rng::seed_from_u64(seed).next_u64() % nodes as u64) as usize };
    let mut is_met = vec![false; nodes];
    is_met[root] = true;
    let mut order = Vec::with_capacity(nodes);
    order.push(root);
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &next in topology.neighbors(node) {
            if !std::mem::replace(&mut is_met[next], true) {
                order.push(next);
            }
        }
    }
    order
}

/// The nodes in the order of a shuffle by the seed (Fisher and Yates); seed 0 leaves them as they are.
fn shuffled(nodes: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    if seed != 0 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for last in (1..nodes).rev() {
            // The bias of a 64-bit remainder is below 2^-50.
            order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
        }
    }
    order
}
