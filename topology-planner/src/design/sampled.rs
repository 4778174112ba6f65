//! What designs that draw symmetric steps at random have in common.
//!
//! Such a design is a seeded sequence in the plan: as many steps as [`STEPS`], drawn once, repeated for ever, a gradient
//! step before each. A step uses some edges in both directions with one weight `a`: `W = I - a L`, `L` the Laplacian of
//! the edges; it is symmetric, hence push-sum weights stay 1 and the method is D-PSGD.

use faer::Mat;

use super::{Design, DesignError, Request};
use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    plan::{Parameter, StepDraft, WeightedLink},
    spectrum,
    topology::Topology,
};

/// Steps in a period: enough that their mean cost is near the expected one, few enough that a plan for 61 nodes stays
/// below the limit of the wire.
pub(super) const STEPS: usize = 64;

/// How often a sequence is drawn until it joins all nodes and keeps within the budget.
pub(super) const DRAWS: usize = 24;

/// One drawn step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    /// The active edges.
    pub(super) edges: Vec<(usize, usize)>,
    /// The slots, where the design assigns them.
    pub(super) slots: Option<Vec<Vec<Link>>>,
}

/// The largest degree in any of the steps.
pub(super) fn max_degree(nodes: usize, steps: &[Drawn]) -> usize {
    let degrees = |step: &Drawn| {
        let mut degrees = vec![0; nodes];
        step.edges.iter().for_each(|&(u, v)| {
            degrees[u] += 1;
            degrees[v] += 1;
        });
        degrees.into_iter().max().unwrap_or(0)
    };
    steps.iter().map(degrees).max().unwrap_or(0)
}

/// Whether the edges of all steps join all nodes.
pub(super) fn joins_all(nodes: usize, steps: &[Drawn]) -> bool {
    let links = steps.iter().flat_map(|step| &step.edges).flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
    Digraph::new(nodes, links).first_cut_off().is_none()
}

/// The design of a drawn sequence with `W = I - weight L`.
pub(super) fn design(
    request: &Request<'_>,
    drawn: Vec<Drawn>,
    weight: f64,
    mut parameters: Vec<(&'static str, Parameter)>,
) -> Design {
    parameters.push(("weight", Parameter::Real(weight)));
    let steps = drawn.into_iter().map(|step| draft(request, step, weight)).collect();
    Design { steps, round_length: Some(1), parameters }
}

fn draft(request: &Request<'_>, drawn: Drawn, weight: f64) -> StepDraft {
    let mut keep = vec![1.0; request.topology.node_count()];
    let mut links = Vec::with_capacity(2 * drawn.edges.len());
    for &(u, v) in &drawn.edges {
        links.extend([Link::new(u, v), Link::new(v, u)].map(|link| WeightedLink::new(link, weight)));
        keep[u] -= weight;
        keep[v] -= weight;
    }
    // A full share can leave a rounding error.
    keep.iter_mut().for_each(|share| *share = if *share < 1e-12 { 0.0 } else { *share });
    let mut step = request.scheduled_step(MixingMatrix::normalised(keep, links));
    if let Some(slots) = drawn.slots.filter(|_| !step.slots.is_empty()) {
        step.slots = slots;
    }
    step
}

/// The Laplacian of some edges.
pub(super) fn laplacian(nodes: usize, edges: &[(usize, usize)]) -> Mat<f64> {
    let mut matrix = Mat::zeros(nodes, nodes);
    add_laplacian(&mut matrix, edges, 1.0);
    matrix
}

/// Adds a multiple of the Laplacian of some edges.
pub(super) fn add_laplacian(matrix: &mut Mat<f64>, edges: &[(usize, usize)], scale: f64) {
    for &(u, v) in edges {
        matrix[(u, u)] += scale;
        matrix[(v, v)] += scale;
        matrix[(u, v)] -= scale;
        matrix[(v, u)] -= scale;
    }
}

/// The largest eigenvalue of a symmetric matrix with rows that sum to 1, the one of the average left out, and its
/// eigenvector.
pub(super) fn top_of_disagreement(matrix: &Mat<f64>) -> Result<(f64, Vec<f64>), DesignError> {
    let nodes = matrix.nrows();
    let mean = 1.0 / nodes as f64;
    let centered = Mat::from_fn(nodes, nodes, |row, column| matrix[(row, column)] - mean);
    let (values, vectors) = spectrum::symmetric_eigen(&centered).map_err(DesignError::Spectrum)?;
    let last = nodes - 1;
    Ok((values[last], (0..nodes).map(|row| vectors[(row, last)]).collect()))
}

/// Where a convex function of one variable has its minimum: golden-section search.
pub(super) fn minimise(
    low: f64,
    high: f64,
    mut cost: impl FnMut(f64) -> Result<f64, DesignError>,
) -> Result<f64, DesignError> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (low, high);
    let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_left, mut at_right) = (cost(left)?, cost(right)?);
    for _ in 0..40 {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = cost(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = cost(right)?;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// The largest number of nodes whose spectra are searched here.
pub(super) fn check_size(request: &Request<'_>) -> Result<(), DesignError> {
    let nodes = request.topology.node_count();
    if nodes > spectrum::MAX_DENSE_NODES {
        return Err(DesignError::TooManyNodes { nodes, method: request.method, limit: spectrum::MAX_DENSE_NODES });
    }
    Ok(())
}

/// The number of slots of all links of a topology, which budgets are measured against.
pub(super) fn all_links_slots(request: &Request<'_>, topology: &Topology) -> usize {
    let links = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
    let matrix = MixingMatrix::uniform_columns(&Digraph::new(topology.node_count(), links));
    request.scheduled_step(matrix).slots.len()
}
