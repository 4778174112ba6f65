//! A search for agreement in few slots that starts from Algorithm 1 of \[NH\].
//!
//! The measure is slots per neper, `tau / -ln |lambda_2|`, with every node's long-run weight `n pi_i` at or above a
//! floor. Eq. 19, which Algorithm 1 minimises, hardly predicts it. Three things are searched, in this order:
//!
//! 1. Starts: steps 1 to 3 of Algorithm 1 on shuffled nodes (other trees, roots, searches and ties) with random `K`,
//!    their conflict graphs coloured by tabu search, their slots filled with all links that fit ([`slots`]).
//! 2. Weights: the columns of every candidate are optimised ([`ColumnWeights`]).
//! 3. Neighbours: in the best starts a slot is dropped, or up to three are partly emptied, and all are refilled; the
//!    weights are carried over and optimised a little further. The better candidate stays.

mod slots;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::slots::SlotFiller;
use super::{Design, DesignError, DesignRequest, nguyen_he, shuffled};
use crate::{
    coloring,
    column_weights::ColumnWeights,
    conflict_graph::ConflictGraph,
    digraph::{Digraph, Link},
    mixing_matrix::MixingMatrix,
    plan::{Medium, MixingStep, Parameter, StepDraft},
    recurrence::recurrent_nodes,
    spectrum,
};

/// The least long-run weight `n pi_i` of a node: below, its data would hardly count.
const PERRON_FLOOR: f64 = 0.3;

/// Products of a share and a number per unit of effort; half a second or so.
const PRODUCTS_PER_EFFORT: usize = 1_200_000_000;

/// Steps of weight optimisation for a start, for a neighbour, and at the end.
const START_STEPS: usize = 40;
const NEIGHBOR_STEPS: usize = 24;
const FINAL_STEPS: usize = 400;

/// Above this many nodes the work is bounded so that 1,000 nodes of degree 20 take some seconds. There is no start by
/// the whole of Algorithm 1, whose sweep and step 4 would take longer than all the rest; there are fewer steps at the
/// end, in the same proportions, and the plan's parameters record their number.
const MAX_UNBOUNDED_NODES: usize = 400;

/// The largest `K` of a start above `MAX_UNBOUNDED_NODES`.
const LARGE_EXTRA_EDGES: usize = 256;

/// Products for the search per unit of effort on larger graphs, and for the steps at the end whatever the effort.
const LARGE_PRODUCTS_PER_EFFORT: usize = 400_000_000;
const MAX_FINAL_PRODUCTS: usize = 4_000_000_000;

/// Number of times that the floor is raised at the end where mass settles slowly.
const FLOOR_TRIES: usize = 6;

/// The most starts, and the most neighbours, per unit of effort: small graphs leave products over.
const STARTS_PER_EFFORT: usize = 30;
const NEIGHBORS_PER_EFFORT: usize = 300;

/// Number of starts that are searched further.
const SEARCHED_STARTS: usize = 3;

/// Searches for the links, slots and weights with the fewest slots per neper.
pub(super) fn design(request: &DesignRequest<'_>) -> Result<Design, DesignError> {
    let mut search = Search::new(request);
    let best = match request.options.medium {
        Medium::Broadcast => search.broadcast()?,
        Medium::PointToPoint => search.point_to_point()?,
    };
    let mut parameters = vec![
        ("effort", Parameter::Whole(request.options.effort.into())),
        ("perron_floor", Parameter::Real(PERRON_FLOOR)),
        ("starts", Parameter::Whole(search.starts as u64)),
        ("neighbors", Parameter::Whole(search.neighbors as u64)),
    ];
    if search.final_steps < FINAL_STEPS {
        parameters.push(("final_steps", Parameter::Whole(search.final_steps as u64)));
    }
    Ok(Design { parameters, ..Design::fixed(best.into_step()) })
}

/// Slots with the weights of their links.
#[derive(Debug, Clone)]
struct Candidate {
    slots: Vec<Vec<Link>>,
    weights: MixingMatrix,
    /// The factor by which disagreement shrinks per period.
    contraction: f64,
}

impl Candidate {
    /// The slots over the budget, then slots per neper plus the slots of one period: less is better.
    fn cost(&self, budget: usize) -> (usize, f64) {
        let slots = self.slots.len();
        (slots.saturating_sub(budget), slots.max(1) as f64 * (1.0 + 1.0 / -self.contraction.min(1.0).ln()))
    }

    fn is_better_than(&self, other: &Self, budget: usize) -> bool {
        let a = self.cost(budget);
        let b = other.cost(budget);
        a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
    }

    /// The step. Links that the weights left without a share leave their slots too.
    fn into_step(self) -> StepDraft {
        let (keep, links) = self.weights.into_parts();
        let is_used = |link: &Link| links.binary_search_by_key(link, |weighted| weighted.link()).is_ok();
        let used = |slot: Vec<Link>| slot.into_iter().filter(is_used).collect::<Vec<_>>();
        let slots = self.slots.into_iter().map(used).filter(|slot| !slot.is_empty()).collect();
        StepDraft { keep, links, slots }
    }
}

struct Search<'r> {
    request: &'r DesignRequest<'r>,
    filler: SlotFiller<'r>,
    rng: ChaCha8Rng,
    budget_slots: usize,
    products_left: usize,
    /// Steps of weight optimisation at the end: [`FINAL_STEPS`], or fewer where the work is bounded.
    final_steps: usize,
    starts: usize,
    neighbors: usize,
}

impl<'r> Search<'r> {
    fn new(request: &'r DesignRequest<'r>) -> Self {
        let options = request.options;
        let is_large = request.topology.node_count() > MAX_UNBOUNDED_NODES;
        let products_per_effort = if is_large { LARGE_PRODUCTS_PER_EFFORT } else { PRODUCTS_PER_EFFORT };
        Self {
            request,
            filler: SlotFiller::new(request.topology, options.max_out_degree.unwrap_or(usize::MAX)),
            rng: ChaCha8Rng::seed_from_u64(options.seed),
            budget_slots: options.budget_slots.unwrap_or(usize::MAX),
            products_left: products_per_effort * options.effort as usize,
            final_steps: FINAL_STEPS,
            starts: 0,
            neighbors: 0,
        }
    }

    fn is_large(&self) -> bool {
        self.request.topology.node_count() > MAX_UNBOUNDED_NODES
    }

    fn broadcast(&mut self) -> Result<Candidate, DesignError> {
        let all = self.products_left;
        let mut found: Vec<Candidate> =
            if self.is_large() { Vec::new() } else { self.paper_start().into_iter().collect() };
        let most_starts = STARTS_PER_EFFORT * self.request.options.effort as usize;
        while (self.products_left > all / 10 * 6 && self.starts < most_starts) || found.is_empty() {
            let candidate = self.start();
            found.extend(candidate);
            if self.starts > 40 && found.is_empty() {
                return Err(self.degree_limit());
            }
        }
        let budget = self.budget_slots;
        found.sort_by(|a, b| {
            let a = a.cost(budget);
            let b = b.cost(budget);
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        found.truncate(SEARCHED_STARTS);
        let share = self.products_left / found.len();
        for candidate in &mut found {
            let stop = self.products_left.saturating_sub(share);
            self.improve(candidate, stop);
        }
        let improved =
            found.into_iter().reduce(|best, next| if next.is_better_than(&best, budget) { next } else { best });
        // There is at least one start, or the loop above has returned.
        improved.map(|best| self.polish(best)).ok_or_else(|| self.degree_limit())
    }

    fn degree_limit(&self) -> DesignError {
        let limit = self.filler.max_out_degree();
        DesignError::DegreeLimit { method: self.request.method, limit, needed: self.filler.least_degree_seen() }
    }

    /// The design of `nguyen-he` with its own choice of `K`, so that this design is never slower.
    fn paper_start(&mut self) -> Option<Candidate> {
        let paper = nguyen_he::best(self.request.topology);
        self.starts += 1;
        self.evaluate(paper.step.slots, None, START_STEPS)
    }

    /// Algorithm 1 up to its step 3 on shuffled nodes, with slots filled. `None` if a node has too many receivers, or
    /// the weights cannot respect the floor yet.
    fn start(&mut self) -> Option<Candidate> {
        self.starts += 1;
        let topology = self.request.topology;
        let nodes = topology.node_count();
        let order = shuffled(nodes, self.rng.next_u64() | 1);
        let renumbered = topology.renumbered(&order).ok()?;
        let available = topology.edges().len() + 1 - nodes;
        let most = if self.is_large() { LARGE_EXTRA_EDGES } else { nodes };
        let extra_edges = below(&mut self.rng, available.min(most) + 1);
        let oriented = nguyen_he::oriented(&renumbered, extra_edges);
        let links = oriented.into_iter().map(|link| Link::new(order[link.from], order[link.to])).collect();
        let conflicts = ConflictGraph::new(topology, links);
        let coloring = coloring::best(&conflicts, 2, self.rng.next_u64());
        // A start costs this much beyond its weights.
        self.products_left = self.products_left.saturating_sub(nodes * nodes * 200);
        let slots = coloring::slots(conflicts.links(), &coloring.colors);
        let filled = self.filler.fill(slots, &mut self.rng)?;
        self.evaluate(filled, None, START_STEPS)
    }

    /// Optimises the weights of some slots. `None` if they are not strongly connected, or break the floor.
    fn evaluate(&mut self, slots: Vec<Vec<Link>>, known: Option<&MixingMatrix>, steps: usize) -> Option<Candidate> {
        let graph = Digraph::new(self.request.topology.node_count(), slots.iter().flatten().copied());
        if graph.first_cut_off().is_some() {
            return None;
        }
        let mut weights = match known {
            Some(known) => ColumnWeights::similar_to(&graph, PERRON_FLOOR, known),
            None => ColumnWeights::uniform(&graph, PERRON_FLOOR),
        };
        weights.improve(steps);
        self.products_left = self.products_left.saturating_sub(weights.products_per_step() * steps);
        let contraction = weights.contraction();
        (contraction < 1.0).then(|| Candidate { slots, weights: weights.best(), contraction })
    }

    /// Moves to better neighbours until `stop` products are left.
    fn improve(&mut self, best: &mut Candidate, stop: usize) {
        let most_neighbors = NEIGHBORS_PER_EFFORT * self.request.options.effort as usize;
        while self.products_left > stop && self.neighbors < most_neighbors {
            self.neighbors += 1;
            let Some(slots) = self.neighbor(&best.slots) else {
                self.products_left = self.products_left.saturating_sub(self.request.topology.node_count() * 1_000);
                continue;
            };
            let known = best.weights.clone();
            if let Some(next) = self.evaluate(slots, Some(&known), NEIGHBOR_STEPS)
                && next.is_better_than(best, self.budget_slots)
            {
                *best = next;
            }
        }
    }

    /// The same slots, one dropped or up to three emptied in part, and all filled again.
    fn neighbor(&mut self, slots: &[Vec<Link>]) -> Option<Vec<Vec<Link>>> {
        let mut slots = slots.to_vec();
        let rng = &mut self.rng;
        match below(rng, 4) {
            0 if slots.len() > 1 => {
                slots.remove(below(rng, slots.len()));
            }
            kind => {
                for _ in 0..kind.max(1) {
                    let slot = below(rng, slots.len());
                    let left_out = 1 + below(rng, 3);
                    slots[slot].retain(|_| below(rng, 4) >= left_out);
                }
                slots.retain(|slot| !slot.is_empty());
            }
        }
        self.filler.fill(slots, &mut self.rng)
    }

    /// The winner with its weights optimised to the end.
    fn polish(&mut self, best: Candidate) -> Candidate {
        let graph = Digraph::new(self.request.topology.node_count(), best.slots.iter().flatten().copied());
        let mut weights = ColumnWeights::similar_to(&graph, PERRON_FLOOR, &best.weights);
        // Half as many steps over twice as many periods cost as much again.
        if self.is_large() {
            let affordable = MAX_FINAL_PRODUCTS / (2 * weights.products_per_step()).max(1);
            self.final_steps = FINAL_STEPS.min(affordable.max(1));
        }
        weights.improve(self.final_steps);
        weights.measure_over(5);
        weights.improve(self.final_steps / 2);
        for attempt in 0..FLOOR_TRIES {
            let least = self.least_mass(&weights.best());
            if least >= PERRON_FLOOR {
                break;
            }
            // The first attempt only lets the mass settle.
            weights.raise_floor(if attempt == 0 { 1.0 } else { (PERRON_FLOOR / least).clamp(1.01, 1.2) });
            weights.improve(self.final_steps / 4);
        }
        if weights.contraction() < 1.0 { Candidate { weights: weights.best(), ..best } } else { best }
    }

    /// The least `n pi_i`; zero where it cannot be computed.
    fn least_mass(&self, weights: &MixingMatrix) -> f64 {
        let nodes = self.request.topology.node_count();
        let (keep, links) = weights.clone().into_parts();
        let steps = [MixingStep::sorted(StepDraft { keep, links, slots: Vec::new() })];
        let masses = recurrent_nodes(nodes, &steps)
            .ok()
            .and_then(|recurrent| spectrum::perron_weights(nodes, &steps, &recurrent).ok());
        masses.map_or(0.0, |masses| masses.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// All links up to the degree limit, with optimised weights: without slots every link is free.
    fn point_to_point(&mut self) -> Result<Candidate, DesignError> {
        let topology = self.request.topology;
        let tree = nguyen_he::oriented(topology, 0);
        let all = self.filler.add_any(tree, &mut self.rng).ok_or_else(|| self.degree_limit())?;
        let steps = 20 + self.request.options.effort as usize * 20;
        let mut found = self.evaluate(vec![all], None, steps).ok_or_else(|| self.degree_limit())?;
        found.slots.clear();
        Ok(found)
    }
}

/// A number below `bound`; the bias of a 64-bit remainder is below 2^-40 here.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}
