//! Algorithm 1 of Nguyen and He \[NH\], and the choice of its parameter `K`.
//!
//! `K*` minimises eq. 19 after step 3, the lowest `K` among equals, with one exception. When the oriented graph is a
//! directed ring through all nodes (`D+ = 1`), eq. 19 is far below all others and misleads. One more link raises `D+`
//! to 2, but leaves at `n - 1` the distance from the node after its transmitter round to the transmitter. So step 4 can
//! never pay for it, and the ring stays a ring, whose `|lambda_2|` is `cos(pi / n)`. On a dense topology its neighbours
//! among the `K` mix fifty times faster. So a ring is taken only if it needs no more slots per neper than the finished
//! design of the best `K` without one; on a topology that is itself a ring, it does.

mod trials;

use self::trials::Trials;
use super::{Design, DesignError, DesignRequest, ExtraEdges};
use crate::{
    augmentation::augment,
    coloring,
    conflict_graph::ConflictGraph,
    digraph::{Digraph, Link},
    distance,
    extra_edges::FarthestEdges,
    forecast::slots_per_neper,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree,
    mixing_matrix::MixingMatrix,
    objective::ln_objective_16,
    orientation::orient,
    plan::{Medium, MixingStep, Parameter, StepDraft},
    spectrum,
    topology::Topology,
};

/// The largest `K` of a sweep is this many times the number of nodes: eq. 19 grows with the degrees that extra edges
/// bring, and on all topologies tried `K*` was below `0.7 n`.
const SWEEP_EDGES_PER_NODE: usize = 2;

/// Effort of colouring: a step-3 graph has few links, and is mostly coloured optimally at once.
const COLORING_EFFORT: u32 = 1;

/// Up to this `K` a sweep continues in any case: on small topologies to the last edge.
const SWEEP_AT_LEAST: usize = 256;

/// The largest `K` of a sweep.
fn sweep_limit(topology: &Topology) -> usize {
    SWEEP_AT_LEAST.max(SWEEP_EDGES_PER_NODE * topology.node_count())
}

/// Algorithm 1 with the given `K`, or with `K*`.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let topology = request.topology;
    let mut choice = match request.options.extra_edges {
        ExtraEdges::Exactly(asked) => {
            let available = topology.edges().len() + 1 - topology.node_count();
            if asked > available {
                return Err(DesignError::TooManyExtraEdges { asked, available });
            }
            let step = algorithm_1(topology, oriented(topology, asked));
            Choice { extra_edges: asked, step, searched_below: None }
        }
        ExtraEdges::Auto => best(topology),
    };
    if !request.options.augments {
        choice.step = steps_1_to_3(topology, oriented(topology, choice.extra_edges));
    }
    if request.options.medium == Medium::PointToPoint {
        choice.step.slots.clear();
    }
    let mut parameters = vec![("extra_edges", Parameter::Whole(choice.extra_edges as u64))];
    if !request.options.augments {
        parameters.push(("augmented", Parameter::Flag(false)));
    }
    parameters.extend(choice.searched_below.map(|bound| ("extra_edges_tried_below", Parameter::Whole(bound as u64))));
    let step = choice.step;
    Ok(Design { parameters, ..Design::fixed(step) })
}

/// A `K` and its design.
pub(super) struct Choice {
    extra_edges: usize,
    pub(super) step: StepDraft,
    /// The first `K` that was not tried, where the sweep was cut short because the topology is large.
    searched_below: Option<usize>,
}

/// `K*` and its design; see the module's documentation.
pub(super) fn best(topology: &Topology) -> Choice {
    let mut trials = Trials::new(topology, sweep_limit(topology));
    let finish = |trials: &Trials<'_>, extra_edges| (extra_edges, algorithm_1(topology, trials.oriented(extra_edges)));
    let ring = trials.best(|_| true).filter(|&extra_edges| trials.max_out_degree(extra_edges) == 1);
    let ring = ring.map(|extra_edges| finish(&trials, extra_edges));
    // K = 0 orients a tree, where some node of three or more has two neighbours; two nodes have no other K.
    let other = trials.best(|max_out_degree| max_out_degree > 1);
    let other = other.map(|extra_edges| better_tree(topology, &trials, finish(&trials, extra_edges)));
    let (extra_edges, step) = match (ring, other) {
        (None, Some(other)) => other,
        (Some(ring), Some(other)) if speed(topology, &other.1) < speed(topology, &ring.1) => other,
        (Some(ring), _) => ring,
        (None, None) => finish(&trials, 0),
    };
    Choice { extra_edges, step, searched_below: trials.is_bounded().then(|| trials.len()) }
}

/// The design of the tree alone (`K = 0`), if it takes fewer slots and is no worse by eq. 16 at the end; otherwise the
/// given one. On dense topologies with a hub, step 4 fills up both to the same degrees and diameter, and extra edges
/// only cost slots; eq. 19 after step 3 does not show that.
fn better_tree(topology: &Topology, trials: &Trials<'_>, other: (usize, StepDraft)) -> (usize, StepDraft) {
    if other.0 == 0 {
        return other;
    }
    let tree = algorithm_1(topology, trials.oriented(0));
    let fewer_slots = tree.slots.len() < other.1.slots.len();
    let is_better = fewer_slots && ln_objective_16_of(topology, &tree) <= ln_objective_16_of(topology, &other.1);
    if is_better { (0, tree) } else { other }
}

fn ln_objective_16_of(topology: &Topology, draft: &StepDraft) -> f64 {
    let graph = Digraph::new(topology.node_count(), draft.links.iter().map(|link| link.link()));
    let diameter = distance::diameter(&graph).unwrap_or(usize::MAX);
    ln_objective_16(draft.slots.len(), diameter, graph.max_out_degree())
}

/// The oriented links after steps 1 to 3.
pub(super) fn oriented(topology: &Topology, extra_edges: usize) -> Vec<Link> {
    let mut edges = minimum_degree_spanning_tree(topology);
    let farthest = FarthestEdges::new(topology, &edges);
    edges.extend(farthest.take(extra_edges));
    orient(topology.node_count(), &edges)
}

/// The step made of oriented links after step 3: their slots, and step 4.
fn algorithm_1(topology: &Topology, oriented: Vec<Link>) -> StepDraft {
    mixing_in(topology, augment(topology, slots_of(topology, oriented)))
}

/// The same without step 4.
fn steps_1_to_3(topology: &Topology, oriented: Vec<Link>) -> StepDraft {
    mixing_in(topology, slots_of(topology, oriented))
}

/// Slots of links in which no two interfere.
fn slots_of(topology: &Topology, links: Vec<Link>) -> Vec<Vec<Link>> {
    let conflicts = ConflictGraph::new(topology, links);
    coloring::slots(conflicts.links(), &coloring::best(&conflicts, COLORING_EFFORT, 0).colors)
}

/// The step of links in these slots, with uniform weights.
fn mixing_in(topology: &Topology, slots: Vec<Vec<Link>>) -> StepDraft {
    let graph = Digraph::new(topology.node_count(), slots.iter().flatten().copied());
    let (keep, links) = MixingMatrix::uniform_columns(&graph).into_parts();
    StepDraft { keep, links, slots }
}

/// Slots per neper of a finished design; infinite if the spectrum is not known.
fn speed(topology: &Topology, draft: &StepDraft) -> f64 {
    let step = MixingStep::sorted(draft.clone());
    let slots = step.slots().len();
    let lambda_2 = spectrum::second_modulus(topology.node_count(), &[step]);
    lambda_2.map_or(f64::INFINITY, |lambda_2| slots_per_neper(slots, lambda_2))
}
