//! Exact averages on separate links: the cheapest among trees and Base-(k+1) graphs.
//!
//! On separate links a step lasts as long as its busiest node takes ([`crate::load`]), so no node may serve all others at
//! once. Two families have an exact average in every round:
//!
//! - **Trees**, there and back. Those in which each step multiplies the nodes ([`MultiplyingTree`]) where the topology has
//!   the links, otherwise trees that are searched. The root hands one ratio down to all, so peers that train send
//!   differences to it in few bits.
//! - **Base-(k+1) graphs** ([`base_graph`]), on which all nodes send the same and none ever holds the weight of others.
//!   They take half as many payloads, and all of them are whole: nodes end with the same average, up to rounding, but
//!   nobody hands it down.
//!
//! Peers that train thus get a tree, and peers that only average, or that have to survive the loss of any node, a base
//! graph. Measured links may turn either choice.

use super::{
    super::{Design, DesignError, DesignRequest, auto, base_graph},
    channel::Channel,
    multiplying_tree::MultiplyingTree,
    one_by_one::grown,
    schedule::SlotSchedule,
    search::central_nodes,
    spanning_tree::SpanningTree,
    too_few_receivers,
};
use crate::{
    digraph::{Digraph, Link},
    load,
    plan::{MAX_STEPS, MixingStep, Parameter},
    step::StepDraft,
    topology::Topology,
};

/// The most nodes for which several trees are compared where the topology lacks the links of a [`MultiplyingTree`].
const MAX_COMPARED_NODES: usize = 2_048;

/// The most neighbours in a step of a base graph that is compared.
const MOST_NEIGHBOURS: usize = 8;

/// Limits on neighbours in searched trees.
const LIMITS: [usize; 3] = [5, 4, 3];

/// Prices are the same within this factor: more of it is rounding.
const SAME: f64 = 1.0 + 1e-9;

/// A period that averages exactly in every round.
struct Candidate {
    /// The shape in words.
    shape: String,
    steps: Vec<MixingStep>,
    round_length: usize,
    /// The roots of its rounds, none for a base graph.
    roots: Vec<usize>,
}

/// The cheapest candidate that keeps the promises of the options. Among equally cheap ones it is that with the fewest
/// steps in a round.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let mut candidates = multiplying_trees(request);
    if candidates.is_empty() {
        candidates = searched_trees(request)?;
    }
    candidates.extend(base_graphs(request));
    let has_few_steps = |candidate: &Candidate| candidate.steps.len() <= MAX_STEPS;
    let is_any_short = candidates.iter().any(has_few_steps);
    candidates.retain(|candidate| !is_any_short || has_few_steps(candidate));
    let is_any_fit = candidates.iter().any(|candidate| is_fit(request, candidate));
    // Without any, the refusal of the whole plan has the reason.
    candidates.retain(|candidate| !is_any_fit || is_fit(request, candidate));
    let mut priced: Vec<(f64, Candidate)> = Vec::new();
    for candidate in candidates {
        let rounds = candidate.steps.len() as f64 / candidate.round_length as f64;
        let price = request.period_cost(&candidate.steps, candidate.round_length) / rounds;
        let is_better = |(known, than): &(f64, Candidate)| {
            price * SAME < *known || (price <= known * SAME && candidate.round_length < than.round_length)
        };
        let at = priced.iter().position(is_better).unwrap_or(priced.len());
        priced.insert(at, (price, candidate));
    }
    let other = priced.iter().skip(1).find(|(_, other)| other.roots.is_empty() != priced[0].1.roots.is_empty());
    let other = other.map(|(price, other)| (*price, other.shape.clone()));
    let limit = request.options.max_out_degree.unwrap_or(usize::MAX);
    let Some((price, best)) = priced.into_iter().next() else {
        return Err(too_few_receivers(request, limit, limit.saturating_add(1)));
    };
    let reason = reason(request, price, &best, other);
    let mut parameters = vec![("shape", Parameter::Text(best.shape)), ("shape_reason", Parameter::Text(reason))];
    match best.roots[..] {
        [] => {}
        [root] => parameters.push(("root", Parameter::Whole(request.original(root) as u64))),
        [..] => parameters.push(("roots", Parameter::Whole(best.roots.len() as u64))),
    }
    Ok(Design { steps: best.steps, round_length: Some(best.round_length), parameters })
}

/// The reason for a choice, such as `0.77 payloads of the busiest node a round in coded differences; base k=1 takes 3.00`.
fn reason(request: &DesignRequest<'_>, price: f64, best: &Candidate, other: Option<(f64, String)>) -> String {
    let nodes = request.topology.node_count();
    let unit = if request.options.network.is_some() { "s" } else { "payloads of the busiest node" };
    let is_coded = request.prices().payload_share(nodes, &best.steps, best.round_length) < 1.0;
    let form = if is_coded { "coded differences" } else { "whole models" };
    let other = other.map_or_else(String::new, |(price, shape)| format!("; {shape} takes {price:.2}"));
    format!("{price:.2} {unit} a round in {form}{other}")
}

/// Returns `true` if a candidate keeps the promises on receivers, uploads and losses.
fn is_fit(request: &DesignRequest<'_>, candidate: &Candidate) -> bool {
    let nodes = request.topology.node_count();
    let options = request.options;
    let steps = &candidate.steps;
    let links = || steps.iter().flat_map(MixingStep::links).map(|link| link.link());
    let has_few_receivers =
        || options.max_out_degree.is_none_or(|limit| Digraph::new(nodes, links()).max_out_degree() <= limit);
    let sends_little = || match (options.max_upload_bytes, &options.network) {
        (Some(limit), Some(network)) => {
            let most = load::NodeLoads::of(nodes, steps).sent.into_iter().max().unwrap_or(0);
            let share = request.prices().payload_share(nodes, steps, candidate.round_length);
            let rounds = steps.len() as f64 / candidate.round_length as f64;
            share * (most as u64 * network.payload_bytes) as f64 / rounds <= limit as f64
        }
        _ => true,
    };
    has_few_receivers() && sends_little() && auto::critical(nodes, steps, options.fault_tolerance).is_none()
}

/// The trees of all numbers of steps for which the topology has the links, with roots that take turns, and with one root.
fn multiplying_trees(request: &DesignRequest<'_>) -> Vec<Candidate> {
    let nodes = request.topology.node_count();
    let mut candidates = Vec::new();
    let mut orders = vec![(0..nodes).collect(), request.places()];
    orders.dedup();
    if let Some(network) = &request.options.network {
        let mut fastest: Vec<usize> = (0..nodes).collect();
        let rates: Vec<f64> = fastest.iter().map(|&node| network.rate_of(request.original(node))).collect();
        fastest.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
        orders.insert(0, fastest);
    }
    for tree in MultiplyingTree::all(nodes) {
        for places in &orders {
            let one = tree.schedule(0, places);
            if !has_links(request.topology, &one) {
                continue;
            }
            let all: Vec<SlotSchedule> = tree.roots().iter().map(|&root| tree.schedule(root, places)).collect();
            if all.len() > 1 && all.iter().all(|schedule| has_links(request.topology, schedule)) {
                let shape = format!("tree {}, {} roots in turn", tree.shape(), all.len());
                candidates.push(of_schedules(nodes, shape, &all));
            }
            candidates.push(of_schedules(nodes, format!("tree {}", tree.shape()), &[one]));
        }
    }
    candidates
}

fn has_links(topology: &Topology, schedule: &SlotSchedule) -> bool {
    schedule.scatter.iter().flatten().all(|link| topology.has_edge(link.from, link.to))
}

fn of_schedules(nodes: usize, shape: String, schedules: &[SlotSchedule]) -> Candidate {
    let steps: Vec<MixingStep> = schedules.iter().flat_map(|schedule| schedule.steps_without_slots(nodes)).collect();
    let round_length = steps.len() / schedules.len().max(1);
    Candidate { shape, steps, round_length, roots: schedules.iter().map(|schedule| schedule.root).collect() }
}

/// Trees of any topology: breadth first, with several limits on the neighbours of a node, and one that grows by the
/// step.
///
/// # Errors
///
/// No tree is within the limit on receivers.
fn searched_trees(request: &DesignRequest<'_>) -> Result<Vec<Candidate>, DesignError> {
    let topology = request.topology;
    let nodes = topology.node_count();
    let limit = request.options.max_out_degree.unwrap_or(usize::MAX);
    let widest = SpanningTree::within(topology, limit).map_err(|needed| too_few_receivers(request, limit, needed))?;
    let mut trees = vec![widest];
    if nodes <= MAX_COMPARED_NODES {
        trees.extend(
            LIMITS.iter().filter(|&&fewer| fewer < limit).flat_map(|&fewer| SpanningTree::within(topology, fewer)),
        );
    }
    let schedules = trees.iter().flat_map(|tree| [tree.level_by_level(), tree.child_by_child(nodes)]);
    let mut schedules: Vec<SlotSchedule> = schedules.collect();
    if nodes <= MAX_COMPARED_NODES {
        let channel = Channel::new(topology);
        let roots = central_nodes(&channel, 16).into_iter();
        schedules.extend(roots.filter_map(|root| {
            let scatter: Vec<Vec<Link>> = grown(&channel, root, limit)?;
            Some(SlotSchedule::there_and_back(root, scatter))
        }));
    }
    Ok(schedules.into_iter().map(|schedule| of_schedules(nodes, "tree".to_owned(), &[schedule])).collect())
}

/// The base graphs for which the topology has the links. A round is the whole sequence.
fn base_graphs(request: &DesignRequest<'_>) -> Vec<Candidate> {
    let nodes = request.topology.node_count();
    let of_neighbours = |neighbours: usize| {
        let matrices = base_graph::matrices(request, neighbours, false).ok()?;
        let step = |matrix: crate::mixing_matrix::MixingMatrix| {
            let (keep, links) = matrix.into_parts();
            MixingStep::sorted(StepDraft { keep, links, slots: Vec::new() })
        };
        let steps: Vec<MixingStep> = matrices.into_iter().map(step).collect();
        let round_length = steps.len();
        Some(Candidate { shape: format!("base k={neighbours}"), steps, round_length, roots: Vec::new() })
    };
    (1..=MOST_NEIGHBOURS.min(nodes - 1)).filter_map(of_neighbours).collect()
}
