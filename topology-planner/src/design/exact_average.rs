//! The exact average in one period: gather to a root, scatter from it.
//!
//! Push-sum with a periodic matrix whose product is `J / n`: on the way up a node keeps nothing and pushes all it holds;
//! on the way down it keeps 1 and pushes each receiver the number of nodes that one will serve. The ratio `x / w` is the
//! average from the root's last reception on, so one broadcast serves all receivers. Schedules of this kind on a radio
//! channel are aggregation and broadcast trees (Chen, Hu and Zhu, "Minimum data aggregation time problem in wireless
//! sensor networks", 2005; Gandhi, Parthasarathy and Mishra, "Minimizing broadcast latency and redundancy in ad hoc
//! networks", 2003); the two need not be one tree here.
//!
//! The number of slots is searched for: both phases are built greedily for every root, the best roots are then searched
//! with the effort asked for ([`gather`], [`scatter`]).

mod bound;
mod gather;
mod scatter;
mod slot_room;
mod tree;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::{gather::Gatherer, scatter::Scatterer};
use super::{Design, DesignError, Request};
use crate::{
    digraph::Link,
    plan::{Medium, Parameter, StepDraft, WeightedLink},
    topology::Topology,
};

/// The most roots that are tried, evenly spread; roots near the middle win, but not by their place alone.
const MAX_ROOTS: usize = 64;

/// How many of the roots are searched.
const SEARCHED_ROOTS: usize = 4;

/// Visits of a node that one unit of effort pays for.
const VISITS_PER_EFFORT: usize = 3_000_000;

/// Gathers and scatters in as few slots as the effort finds, or on a point-to-point medium in as few steps.
pub(super) fn design(request: &Request<'_>) -> Result<Design, DesignError> {
    let topology = request.topology;
    match request.options.medium {
        Medium::Broadcast => {
            let schedule = search(topology, request.options.effort, request.options.seed);
            let parameters = vec![
                ("effort", Parameter::Whole(request.options.effort.into())),
                ("root", Parameter::Whole(request.original(schedule.root) as u64)),
                ("slots_at_least", Parameter::Whole(bound::least_slots(topology) as u64)),
            ];
            let steps = schedule.into_steps(topology.node_count());
            Ok(Design { steps, round_length: None, parameters })
        }
        Medium::PointToPoint => tree::design(request),
    }
}

/// A gathering and a scattering with one root.
struct Schedule {
    root: usize,
    gathering: Vec<Vec<Link>>,
    scattering: Vec<Vec<Link>>,
}

/// Tries roots, then searches the best of them.
fn search(topology: &Topology, effort: u32, seed: u64) -> Schedule {
    let nodes = topology.node_count();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut gatherer, mut scatterer) = (Gatherer::new(topology), Scatterer::new(topology));
    let budget = VISITS_PER_EFFORT * effort as usize;
    // A gathering visits most nodes in most of its slots, of which there are about as many as neighbours.
    let visits = nodes * (1 + 2 * topology.edges().len() / nodes);
    let tries = (budget / visits).clamp(1, 40_000);
    let root_count = nodes.min(MAX_ROOTS).min(tries);
    let per_root = (tries / (8 * root_count)).clamp(1, 50);
    let mut roots: Vec<_> = spread(nodes, root_count)
        .map(|root| {
            let gathered = gatherer.search(root, per_root, &mut rng);
            let scattered = scatterer.search(root, per_root, &mut rng);
            let slots = gathered.slots.len() + scattered.slots.len();
            (slots, gathered.cost().1 + scattered.cost().1, root, gathered, scattered)
        })
        .collect();
    roots.sort_by_key(|&(slots, waiting, root, ..)| (slots, waiting, root));
    roots.truncate(SEARCHED_ROOTS);
    let per_root = tries / roots.len();
    for (slots, _, root, gathered, scattered) in &mut roots {
        if per_root > 1 {
            let again = gatherer.search(*root, per_root, &mut rng);
            if again.cost() < gathered.cost() {
                *gathered = again;
            }
            let again = scatterer.search(*root, per_root, &mut rng);
            if again.cost() < scattered.cost() {
                *scattered = again;
            }
        }
        *slots = gathered.slots.len() + scattered.slots.len();
    }
    let best = roots.into_iter().min_by_key(|&(slots, _, root, ..)| (slots, root));
    best.map_or_else(
        || Schedule { root: 0, gathering: Vec::new(), scattering: Vec::new() },
        |(_, _, root, gathered, scattered)| Schedule { root, gathering: gathered.slots, scattering: scattered.slots },
    )
}

/// `count` of the nodes, evenly spread over their numbers.
fn spread(nodes: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| index * nodes / count)
}

impl Schedule {
    /// The period: slots that do not wait for one another share a step.
    fn into_steps(self, nodes: usize) -> Vec<StepDraft> {
        let served = served(nodes, &self.scattering);
        let mut holdings = Holdings { masses: vec![1; nodes] };
        let mut steps: Vec<StepDraft> = Vec::new();
        for group in independent_groups(nodes, self.gathering) {
            steps.push(holdings.step(group, |link, held| held[link.from]));
        }
        for group in independent_groups(nodes, self.scattering) {
            steps.push(holdings.step(group, |link, _| served[link.to]));
        }
        steps
    }
}

/// What each node holds, in units of the weight one node starts with.
struct Holdings {
    masses: Vec<usize>,
}

impl Holdings {
    /// Moves along every link of the slots what `moved` says, all from what was held before.
    fn step(&mut self, slots: Vec<Vec<Link>>, moved: impl Fn(Link, &[usize]) -> usize) -> StepDraft {
        let before = self.masses.clone();
        let mut left = before.clone();
        let mut links = Vec::new();
        for &link in slots.iter().flatten() {
            let mass = moved(link, &before);
            links.push(WeightedLink::new(link, mass as f64 / before[link.from] as f64));
            left[link.from] -= mass;
            self.masses[link.from] -= mass;
            self.masses[link.to] += mass;
        }
        let kept = |(&left, &before): (&usize, &usize)| if before == 0 { 1.0 } else { left as f64 / before as f64 };
        StepDraft { keep: left.iter().zip(&before).map(kept).collect(), links, slots }
    }
}

/// How many nodes each node serves in a scattering, itself included.
fn served(nodes: usize, scattering: &[Vec<Link>]) -> Vec<usize> {
    let mut served = vec![1; nodes];
    for link in scattering.iter().rev().flatten() {
        served[link.from] += served[link.to];
    }
    served
}

/// Joins slots in a row as long as nobody transmits what only arrives in one of them.
fn independent_groups(nodes: usize, slots: Vec<Vec<Link>>) -> Vec<Vec<Vec<Link>>> {
    let mut groups: Vec<Vec<Vec<Link>>> = Vec::new();
    let mut received_in = vec![usize::MAX; nodes];
    for slot in slots {
        let group = groups.len().wrapping_sub(1);
        if groups.is_empty() || slot.iter().any(|link| received_in[link.from] == group) {
            groups.push(Vec::new());
        }
        let group = groups.len() - 1;
        slot.iter().for_each(|link| received_in[link.to] = group);
        groups[group].push(slot);
    }
    groups
}

/// A number below `bound`; the bias of a 64-bit remainder is below 2^-40 here.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}
