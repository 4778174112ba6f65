//! Base-(k+1) graphs: a sequence of sparse graphs after which all nodes have the exact average, for any number of nodes.
//!
//! Takezawa, Sato, Bao, Niwa and Yamada, "Beyond Exponential Graph: Communication-Efficient Topologies for Decentralized
//! Learning via Finite-time Convergence", NeurIPS 2023, arXiv:2305.11420. No node has more than `k` neighbours in a step,
//! all matrices are symmetric, and their product is `J / n`. Where all prime factors of `n` are at most `k + 1`, the
//! sequence is the *k-peer hyper-hypercube*: for `n = n_1 n_2 ...` groups of `n_1` average, then groups of `n_2`, and so
//! on; with `k = 1` and `n` a power of two it is the hypercube. Any other `n` is written in base `k + 1`:
//!
//! ```text
//!   n = 5, k = 1: 5 = 4 + 1     0-1 2-3     0-2 1-3        0-4          0-1 2-3     0-2 1-3
//!                               the four average,          the fifth    the four average again: each
//!                               the fifth waits            exchanges    has the average of five
//! ```

use std::num::NonZeroU32;

use super::{Design, DesignError, DesignRequest};
use crate::{
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    plan::{MixingStep, Parameter},
};

/// Edges of a step, and the share that both ends of each give.
type Edges = Vec<((usize, usize), f64)>;

/// Numbers of neighbours that are compared where none is asked for.
const NEIGHBOURS: std::ops::RangeInclusive<usize> = 1..=4;

/// The graph with the requested number of neighbours in a step, or else the one of least cost for training. A step is a
/// round.
pub(super) fn design(request: &DesignRequest<'_>, wanted: Option<NonZeroU32>) -> Result<Design, DesignError> {
    let nodes = request.topology.node_count();
    let limit = request.options.max_out_degree.unwrap_or(usize::MAX);
    let most = wanted.map_or(*NEIGHBOURS.end(), |wanted| wanted.get() as usize).min(nodes - 1);
    let least = if wanted.is_some() { most } else { *NEIGHBOURS.start() };
    let mut best: Option<(f64, Design)> = None;
    let mut refusal = None;
    for neighbours in least..=most {
        let design = match of_neighbours(request, neighbours, limit) {
            Ok(design) => design,
            Err(error) => {
                refusal.get_or_insert(error);
                continue;
            }
        };
        let price = request.training_cost(&design.steps, 1);
        if best.as_ref().is_none_or(|(least, _)| price < *least) {
            best = Some((price, design));
        }
    }
    match (best, refusal) {
        (Some((_, design)), _) => Ok(design),
        (None, Some(refusal)) => Err(refusal),
        (None, None) => Err(DesignError::NoDesign { refusals: "there is no base graph".to_owned() }),
    }
}

fn of_neighbours(request: &DesignRequest<'_>, neighbours: usize, limit: usize) -> Result<Design, DesignError> {
    let matrices = matrices(request, neighbours, true)?;
    let graph = Digraph::new(
        request.topology.node_count(),
        matrices.iter().flat_map(|matrix| matrix.links().iter().map(|link| link.link())),
    );
    if graph.max_out_degree() > limit {
        return Err(DesignError::DegreeLimit { method: request.method, limit, needed: graph.max_out_degree() });
    }
    let steps: Vec<MixingStep> =
        matrices.into_iter().map(|matrix| MixingStep::sorted(request.scheduled_step(matrix))).collect();
    request.check_slots(&steps)?;
    let parameters = vec![("k", Parameter::Whole(neighbours as u64))];
    Ok(Design { steps, round_length: Some(1), parameters })
}

/// The matrices on the nodes in the order of the topology that was given. With `fills`, nodes that would be idle mix too.
///
/// # Errors
///
/// A link that the topology does not have.
pub(super) fn matrices(
    request: &DesignRequest<'_>,
    neighbours: usize,
    fills: bool,
) -> Result<Vec<MixingMatrix>, DesignError> {
    let nodes = request.topology.node_count();
    let places = request.places();
    let mut matrices = Vec::new();
    for edges in sequence(nodes, neighbours, fills) {
        let edges: Edges = edges.into_iter().map(|((u, v), share)| ((places[u], places[v]), share)).collect();
        if let Some(&((from, to), _)) = edges.iter().find(|((u, v), _)| !request.topology.has_edge(*u, *v)) {
            return Err(request.missing_link(Link::new(from, to)));
        }
        matrices.push(MixingMatrix::symmetric(nodes, &edges));
    }
    Ok(matrices)
}

/// The edges of each step: the shorter of the two constructions of the paper, and of equally short ones that in which
/// the busiest nodes send less.
fn sequence(nodes: usize, neighbours: usize, fills: bool) -> Vec<Edges> {
    let all: Vec<usize> = (0..nodes).collect();
    let simple = simple_base_graph(&all, neighbours, fills);
    let smooth = smooth_part(nodes, neighbours + 1);
    if smooth == 1 || smooth == nodes {
        return simple;
    }
    let split = split_base_graph(&all, smooth, neighbours, fills);
    let cost = |steps: &[Edges]| (steps.len(), most_in_steps(nodes, steps));
    if cost(&split) < cost(&simple) { split } else { simple }
}

/// The sum over steps of the most neighbours of a node.
fn most_in_steps(nodes: usize, steps: &[Edges]) -> usize {
    let most = |edges: &Edges| {
        let mut degrees = vec![0; nodes];
        edges.iter().for_each(|&((u, v), _)| [u, v].iter().for_each(|&node| degrees[node] += 1));
        degrees.into_iter().max().unwrap_or(0)
    };
    steps.iter().map(most).sum()
}

/// The Base-(k+1) graph of the paper (algorithm 3): simple ones on `smooth` groups, then a hyper-hypercube across.
fn split_base_graph(nodes: &[usize], smooth: usize, neighbours: usize, fills: bool) -> Vec<Edges> {
    let size = nodes.len() / smooth;
    let mut steps: Vec<Edges> = Vec::new();
    for group in nodes.chunks(size) {
        append(&mut steps, 0, simple_base_graph(group, neighbours, fills));
    }
    let inside = steps.len();
    for member in 0..size {
        let across: Vec<usize> = nodes.chunks(size).map(|group| group[member]).collect();
        append(&mut steps, inside, hyper_hypercube(&across, neighbours));
    }
    steps
}

/// The simple Base-(k+1) graph of the paper (algorithm 2).
fn simple_base_graph(nodes: &[usize], neighbours: usize, fills: bool) -> Vec<Edges> {
    let base = neighbours + 1;
    if smooth_part(nodes.len(), base) == nodes.len() {
        return hyper_hypercube(nodes, neighbours);
    }
    let parts = digit_parts(nodes, base);
    let first = hyper_hypercube(&parts[0].nodes, neighbours).len();
    let length = first + 1 + hyper_hypercube(parts[0].group(0), neighbours).len();
    let mut steps = vec![Edges::new(); length];
    for (number, part) in parts.iter().enumerate() {
        // Everyone in a part agrees.
        repeat(&mut steps[..first], &hyper_hypercube(&part.nodes, neighbours), fills);
        if number + 1 < parts.len() {
            let meeting = &mut steps[first + number];
            let met = meet(meeting, part, &parts[number + 1..]);
            if fills {
                average_the_idle(meeting, &part.nodes[..], &met, base);
            }
        }
        // The groups of the part have the mean of all now; the last part has it node by node.
        let is_last = number + 1 == parts.len();
        let begin = (first + number + usize::from(!is_last)).min(length);
        for group in (0..part.groups).filter(|_| fills || !is_last) {
            repeat(&mut steps[begin..], &hyper_hypercube(part.group(group), neighbours), fills);
        }
    }
    steps
}

/// A part of the nodes for one digit of their number: as many groups as the digit says, each as large as its place.
struct Part {
    nodes: Vec<usize>,
    groups: usize,
}

impl Part {
    fn group(&self, number: usize) -> &[usize] {
        let size = self.nodes.len() / self.groups;
        &self.nodes[number * size..(number + 1) * size]
    }
}

/// The parts for the digits of the number of nodes, the highest first; those of digits 0 are left out.
fn digit_parts(nodes: &[usize], base: usize) -> Vec<Part> {
    let mut place = 1;
    while nodes.len() / place >= base {
        place *= base;
    }
    let mut parts = Vec::new();
    let mut rest = nodes;
    while place > 0 {
        let groups = rest.len() / place;
        if groups > 0 {
            let (now, later) = rest.split_at(groups * place);
            parts.push(Part { nodes: now.to_vec(), groups });
            rest = later;
        }
        place /= base;
    }
    parts
}

/// Lets every node of the later parts exchange with one node of each group of `part`, so that the mean of each group, and
/// that of the later parts together, becomes that of all. Returns the nodes of `part` that took part.
fn meet(edges: &mut Edges, part: &Part, later: &[Part]) -> Vec<usize> {
    let others: Vec<usize> = later.iter().flat_map(|part| part.nodes.iter().copied()).collect();
    let share = part.nodes.len() as f64 / (part.groups * (part.nodes.len() + others.len())) as f64;
    let mut met = Vec::new();
    for (at, &other) in others.iter().enumerate() {
        for group in 0..part.groups {
            // A digit's place is larger than all lower digits together.
            let node = part.group(group)[at];
            edges.push(((node, other), share));
            met.push(node);
        }
    }
    met
}

/// Averages the nodes that are not in `met` by groups of `base`: they hold the same, up to changes since.
fn average_the_idle(edges: &mut Edges, nodes: &[usize], met: &[usize], base: usize) {
    let idle: Vec<usize> = nodes.iter().copied().filter(|node| !met.contains(node)).collect();
    idle.chunks(base).for_each(|group| average(edges, group));
}

/// The k-peer hyper-hypercube graph (algorithm 1): a step for each factor of the number of nodes, in which nodes whose
/// numbers differ in that digit alone average.
fn hyper_hypercube(nodes: &[usize], neighbours: usize) -> Vec<Edges> {
    let mut stride = 1;
    let mut steps = Vec::new();
    for factor in factors(nodes.len(), neighbours + 1) {
        let mut edges = Edges::new();
        for start in (0..nodes.len()).filter(|place| place / stride % factor == 0) {
            let group: Vec<usize> = (0..factor).map(|digit| nodes[start + digit * stride]).collect();
            average(&mut edges, &group);
        }
        steps.push(edges);
        stride *= factor;
    }
    steps
}

/// Gives every pair of a group the share that brings all to the mean.
fn average(edges: &mut Edges, group: &[usize]) {
    let share = 1.0 / group.len() as f64;
    for (at, &node) in group.iter().enumerate() {
        edges.extend(group[at + 1..].iter().map(|&other| ((node, other), share)));
    }
}

/// Puts a sequence into these steps, from the first one on; with `fills` again and again.
fn repeat(steps: &mut [Edges], sequence: &[Edges], fills: bool) {
    if sequence.is_empty() {
        return;
    }
    let times = if fills { steps.len() } else { sequence.len().min(steps.len()) };
    for (step, edges) in steps[..times].iter_mut().zip(sequence.iter().cycle()) {
        step.extend_from_slice(edges);
    }
}

fn append(steps: &mut Vec<Edges>, begin: usize, sequence: Vec<Edges>) {
    if steps.len() < begin + sequence.len() {
        steps.resize(begin + sequence.len(), Edges::new());
    }
    steps[begin..].iter_mut().zip(sequence).for_each(|(step, edges)| step.extend(edges));
}

/// The largest divisor of `number` whose prime factors are all at most `largest`.
fn smooth_part(mut number: usize, largest: usize) -> usize {
    let mut smooth = 1;
    for factor in 2..=largest.min(number) {
        while number.is_multiple_of(factor) && number > 1 {
            number /= factor;
            smooth *= factor;
        }
    }
    smooth
}

/// As few factors of `number` as possible, none above `largest`, ascending; of as few those with the least sum.
fn factors(number: usize, largest: usize) -> Vec<usize> {
    fn search(number: usize, least: usize, largest: usize) -> Option<Vec<usize>> {
        if number == 1 {
            return Some(Vec::new());
        }
        let with = |factor: usize| {
            let mut rest = search(number / factor, factor, largest)?;
            rest.insert(0, factor);
            Some(rest)
        };
        let candidates = (least..=largest.min(number)).filter(|factor| number.is_multiple_of(*factor));
        candidates.filter_map(with).min_by_key(|factors| (factors.len(), factors.iter().sum::<usize>()))
    }
    search(number, 2, largest).unwrap_or_else(|| vec![number])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    /// The steps on nodes in their own order.
    fn steps(nodes: usize, neighbours: usize, fills: bool) -> Vec<MixingStep> {
        let step = |edges: Edges| {
            let (keep, links) = MixingMatrix::symmetric(nodes, &edges).into_parts();
            MixingStep::sorted(crate::plan::StepDraft { keep, links, slots: Vec::new() })
        };
        sequence(nodes, neighbours, fills).into_iter().map(step).collect()
    }

    fn assert_averages(nodes: usize, steps: &[MixingStep], what: &str) {
        let mut scratch = vec![0.0; nodes];
        for source in 0..nodes {
            let mut column = vec![0.0; nodes];
            column[source] = 1.0;
            steps.iter().for_each(|step| step.mix(&mut column, &mut scratch));
            let worst = column.iter().map(|entry| (entry - 1.0 / nodes as f64).abs()).fold(0.0, f64::max);
            assert!(worst <= 1e-12, "{what}: column {source} is off by {worst:e}");
        }
    }

    #[test]
    fn a_period_averages_exactly_with_at_most_k_neighbours_in_a_step() {
        for nodes in 2..=40 {
            for neighbours in (1..=4).filter(|k| *k < nodes) {
                for fills in [false, true] {
                    let what = format!("n = {nodes}, k = {neighbours}, fills {fills}");
                    let steps = steps(nodes, neighbours, fills);
                    assert_averages(nodes, &steps, &what);
                    for step in &steps {
                        for (node, keep) in step.keep().into_iter().enumerate() {
                            let links = step.links_from(node);
                            assert!(links.len() <= neighbours, "{what}: node {node} has {} receivers", links.len());
                            let column = keep + links.iter().map(|link| link.weight).sum::<f64>();
                            assert!((column - 1.0).abs() <= 1e-12, "{what}: column {node} sums to {column}");
                            assert!(keep > 0.0, "{what}: node {node} keeps nothing");
                        }
                    }
                }
            }
        }
    }

    /// Lengths of the paper: at most twice the logarithm of the number of nodes to the base of `k + 1`, and 2.
    #[test]
    fn periods_are_as_short_as_the_paper_says() {
        for (nodes, neighbours, length) in [(8, 1, 3), (27, 2, 3), (12, 2, 3), (5, 1, 5), (6, 1, 4), (5, 4, 1)] {
            assert_eq!(sequence(nodes, neighbours, true).len(), length, "n = {nodes}, k = {neighbours}");
        }
        for nodes in 2..=200_usize {
            for neighbours in 1..=4 {
                let bound = 2.0 * (nodes as f64).ln() / ((neighbours + 1) as f64).ln() + 2.0;
                let length = sequence(nodes, neighbours, false).len();
                assert!(length as f64 <= bound, "n = {nodes}, k = {neighbours}: {length} steps, bound {bound}");
            }
        }
    }

    #[test]
    fn powers_of_two_give_the_hypercube_in_which_all_send_the_same() {
        let steps = steps(8, 1, false);
        for (dimension, step) in steps.iter().enumerate() {
            let links: Vec<(usize, usize)> = step.links().iter().map(|link| (link.from, link.to)).collect();
            assert_eq!(links, (0..8).map(|node| (node, node ^ (1 << dimension))).collect::<Vec<_>>());
        }
        assert_eq!(load::busiest(8, &steps), 3);
        assert!((load::NodeLoads::of(8, &steps).heaviest_share() - 1.0).abs() < 1e-12);
    }
}
