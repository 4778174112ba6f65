//! The part of a plan that nodes need: the senders, receivers and shares of every step of the period.
//!
//! A schedule that exists is sound: every index is a node, no link is a self-loop or listed twice in a step, and every
//! column of every step (what a node keeps plus what it sends) sums to one. So a node that follows it conserves mass,
//! whatever the others do: that a column sums to one is a property of its sender alone.
//!
//! The stationary weights w* at the start of every step, n times the Perron vector of the period's product started
//! there, are what the guarded step divides by.

mod agreement;
mod computed;
mod encodings;
mod error;
mod parts;
mod reversible;
mod stationary;

use crate::mass::{Mass, Share, UNITS_PER_ONE};
use computed::Computed;

pub use crate::node_id::NodeId;
pub use encodings::Encodings;
pub use error::ScheduleError;

/// Most nodes in one plan: their total mass stays far below 2^64 units.
pub const MAX_NODES: usize = 1 << 20;
/// Most steps in one period.
pub const MAX_PERIOD: usize = 1 << 16;
/// The largest distance of a column's sum from 1 before the plan is refused.
pub const COLUMN_TOLERANCE: f64 = 1e-9;

/// The heaviest that a parcel may be, as a multiple of a settled swarm's: mass that piled up at a sender whose links
/// were down goes out in several.
const MOST_TIMES_USUAL: f64 = 4.0;

/// One step of a plan as the host hands it over: raw numbers, checked by [`Schedule::new`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The fraction each node keeps; one per node; 0 is legal (a node that hands everything up a tree).
    pub keep: Vec<f64>,
    /// The links and the fractions sent on them: `(from, to, weight)` with `0 < weight <= 1`.
    pub links: Vec<(NodeId, NodeId, f64)>,
}

/// One outgoing link of a node in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutShare {
    /// The receiver.
    pub to: NodeId,
    /// The fraction of the sender's mass it gets.
    pub share: Share,
}

/// A plan that has been checked, seen from its nodes.
///
/// ```
/// use mingle_protocol::{NodeId, Schedule, Step};
/// // Two nodes that exchange a quarter in every step.
/// let step = Step {
///     keep: vec![0.75, 0.75],
///     links: vec![(NodeId(0), NodeId(1), 0.25), (NodeId(1), NodeId(0), 0.25)],
/// };
/// let schedule = Schedule::new(2, &[step], 1).unwrap();
/// assert_eq!(schedule.out_links(NodeId(0), 0)[0].to, NodeId(1));
/// assert_eq!(schedule.in_neighbours(NodeId(0), 0), [NodeId(1)]);
/// assert!((schedule.stationary_weight(NodeId(0), 0) - 1.0).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    nodes: usize,
    local_steps: u32,
    round_length: u64,
    steps: Vec<StepTable>,
    /// Union over the period, per node, ascending.
    in_union: Vec<Vec<NodeId>>,
    out_union: Vec<Vec<NodeId>>,
    /// `[step][node]`.
    stationary: Vec<Vec<f64>>,
    /// By the place of the last round in the period.
    rounds_to_agree: Vec<Computed<u64>>,
    is_reversible: Computed<bool>,
    hands_ratios_down: Computed<bool>,
    rounds_between_exact_averages: Computed<Option<u64>>,
}

/// A stationary weight below this one is rounding.
const NO_WEIGHT: f64 = 1e-9;

/// The fewest rounds that mix without training where nodes may be out of step. Two nodes that exchange halves need less.
const LEAST_OUT_OF_STEP: u64 = 7;
const LEAST_OF_TWO_OUT_OF_STEP: u64 = 4;
/// The fewest such rounds beyond those that suffice where nodes are in step, and half as many as those where that is more.
const MORE_OUT_OF_STEP: u64 = 3;

/// The part of all rounds that may mix without training at the end: one of so many.
pub(crate) const MOST_OF_ALL_ROUNDS: u64 = 3;

/// One step, indexed by node.
#[derive(Clone, Debug, PartialEq)]
struct StepTable {
    keeps: Vec<bool>,
    out: Vec<Vec<OutShare>>,
    incoming: Vec<Vec<NodeId>>,
}

impl Schedule {
    /// Checks a plan of `nodes` nodes whose period is `steps`, with `local_steps` gradient steps at the start of it.
    /// For plans that train more often, see [`Schedule::with_round_length`].
    ///
    /// `local_steps` 0 means that nothing is trained: the nodes only average.
    ///
    /// # Errors
    /// [`ScheduleError`] names the step, node or link that is wrong.
    ///
    /// # Complexity
    /// O(n B + links) for the tables; the stationary weights take a power iteration over all links until two
    /// iterates agree to 1e-13, or 20,000 periods.
    pub fn new(nodes: usize, steps: &[Step], local_steps: u32) -> Result<Self, ScheduleError> {
        if nodes == 0 || nodes > MAX_NODES {
            return Err(ScheduleError::Nodes { nodes });
        }
        if steps.is_empty() || steps.len() > MAX_PERIOD {
            return Err(ScheduleError::Period { steps: steps.len() });
        }
        let tables = steps
            .iter()
            .enumerate()
            .map(|(index, step)| StepTable::new(nodes, index, step))
            .collect::<Result<Vec<_>, _>>()?;
        let (in_union, out_union) = unions(nodes, &tables);
        let stationary = stationary::weights(nodes, steps);
        let round_length = tables.len() as u64;
        Ok(Self {
            nodes,
            local_steps,
            round_length,
            steps: tables,
            in_union,
            out_union,
            stationary,
            rounds_to_agree: vec![Computed::default()],
            is_reversible: Computed::default(),
            hands_ratios_down: Computed::default(),
            rounds_between_exact_averages: Computed::default(),
        })
    }

    /// Changes the length of rounds to `steps` mixing steps: training happens before every `steps`-th step.
    ///
    /// # Errors
    /// [`ScheduleError::RoundLength`] unless `steps` divides the period.
    pub fn with_round_length(mut self, steps: usize) -> Result<Self, ScheduleError> {
        let period = self.steps.len();
        if steps == 0 || !period.is_multiple_of(steps) {
            return Err(ScheduleError::RoundLength { steps, period });
        }
        self.round_length = steps as u64;
        self.rounds_to_agree = vec![Computed::default(); period / steps];
        self.rounds_between_exact_averages = Computed::default();
        Ok(self)
    }

    /// The number of nodes n.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The number of steps B in a period.
    pub fn period(&self) -> u64 {
        self.steps.len() as u64
    }

    /// The number of steps in a round, from one training to the next: the whole period unless the plan trains more
    /// often.
    pub fn round_length(&self) -> u64 {
        self.round_length
    }

    /// The number of rounds in a period.
    pub(crate) fn rounds_in_period(&self) -> u64 {
        self.period() / self.round_length
    }

    /// Gradient steps each node takes at the start of every round; 0 = none.
    pub fn local_steps(&self) -> u32 {
        self.local_steps
    }

    /// The number of rounds, the last of `rounds`, that mix without training, so that the models that peers end with
    /// agree: as many as leave a twentieth of the disagreement, and at most a third of all. 0 where nothing is trained
    /// or the plan has one node.
    pub fn closing_rounds(&self, rounds: u64) -> u64 {
        if self.local_steps == 0 || self.nodes == 1 {
            return 0;
        }
        let wanted = self.rounds_to_agree(rounds);
        // The last round that trains mixes too.
        wanted.saturating_sub(1).min(rounds / MOST_OF_ALL_ROUNDS)
    }

    /// Returns `true` if a single round, whichever of the period, leaves at most a twentieth of the disagreement, as in
    /// plans that average exactly in every round.
    pub fn agrees_in_every_round(&self) -> bool {
        (0..self.rounds_in_period()).all(|end| self.rounds_to_agree(end) <= 1)
    }

    /// The last rounds of a run of `rounds` rounds that leave a twentieth of the disagreement.
    fn rounds_to_agree(&self, rounds: u64) -> u64 {
        let end = rounds % self.rounds_in_period();
        self.rounds_to_agree[end as usize].get_or(|| agreement::rounds_to_agree(self, end))
    }

    /// The same number where nodes need not wait for the parcels of a step, and may be half a round out of step: then even
    /// a plan that averages exactly in one round needs some more, unless it hands ratios down in every round.
    pub fn closing_rounds_out_of_step(&self, rounds: u64) -> u64 {
        let closing = self.closing_rounds(rounds);
        if self.local_steps == 0 || self.nodes == 1 || self.hands_ratios_down_in_every_round() {
            return closing;
        }
        let wanted = closing + MORE_OUT_OF_STEP.max(closing / 2);
        let least = if self.nodes == 2 { LEAST_OF_TWO_OUT_OF_STEP } else { LEAST_OUT_OF_STEP };
        wanted.max(least).min(rounds / MOST_OF_ALL_ROUNDS)
    }

    /// The links `node` sends on in global step `step`, by ascending receiver.
    pub fn out_links(&self, node: NodeId, step: u64) -> &[OutShare] {
        &self.table(step).out[node.index()]
    }

    /// The nodes that send to `node` in global step `step`, ascending.
    pub fn in_neighbours(&self, node: NodeId, step: u64) -> &[NodeId] {
        &self.table(step).incoming[node.index()]
    }

    /// Returns `true` if `node` keeps anything in global step `step`.
    pub fn keeps(&self, node: NodeId, step: u64) -> bool {
        self.table(step).keeps[node.index()]
    }

    /// The nodes that send to `node` in some step of the period, ascending.
    pub fn all_in_neighbours(&self, node: NodeId) -> &[NodeId] {
        &self.in_union[node.index()]
    }

    /// The nodes that `node` sends to in some step of the period, ascending.
    pub fn all_out_neighbours(&self, node: NodeId) -> &[NodeId] {
        &self.out_union[node.index()]
    }

    /// The weight w* that `node` holds at the start of global step `step` once the swarm has settled.
    ///
    /// n times the Perron vector of the product of one period of mixing matrices started at that step; 0 where the
    /// plan leaves the node empty at that point.
    pub fn stationary_weight(&self, node: NodeId, step: u64) -> f64 {
        self.stationary[self.slot(step)][node.index()]
    }

    /// Returns `true` if `node`, in global step `step`, sends only to nodes that hold nothing in a settled swarm, such as
    /// the root of an exact average once it has all: they take its ratio over.
    pub fn hands_down(&self, node: NodeId, step: u64) -> bool {
        let links = self.out_links(node, step);
        let is_empty = |link: &OutShare| self.stationary_weight(link.to, step) < NO_WEIGHT;
        !links.is_empty() && self.stationary_weight(node, step) > NO_WEIGHT && links.iter().all(is_empty)
    }

    /// Returns `true` if nodes [hand ratios down](Self::hands_down) in some step of the period.
    pub fn hands_ratios_down(&self) -> bool {
        let hands_down_in = |step| (0..self.nodes).any(|node| self.hands_down(NodeId(node as u32), step));
        self.hands_ratios_down.get_or(|| (0..self.period()).any(hands_down_in))
    }

    fn hands_ratios_down_in_every_round(&self) -> bool {
        let hands_down_in = |step| (0..self.nodes).any(|node| self.hands_down(NodeId(node as u32), step));
        let mut first_steps = (0..self.period()).step_by(self.round_length as usize);
        self.hands_ratios_down() && first_steps.all(|first| (first..first + self.round_length).any(hands_down_in))
    }

    /// The heaviest parcel on the link `from -> to` in global step `step`: the share of that link in four times the
    /// weight that its sender has in a settled swarm, or at the start where that is more. Senders keep what is beyond
    /// it for later steps, so a heavier parcel holds mass that was made up.
    pub fn heaviest_parcel(&self, from: NodeId, to: NodeId, step: u64) -> Mass {
        let links = self.out_links(from, step);
        let Ok(index) = links.binary_search_by_key(&to, |link| link.to) else {
            return Mass::ZERO;
        };
        let usual = self.stationary_weight(from, step).max(1.0);
        Mass::from_units((MOST_TIMES_USUAL * usual * UNITS_PER_ONE as f64) as u64).portion(links[index].share)
    }

    /// Returns `true` if the link `from -> to` is used in global step `step`.
    pub fn has_link(&self, from: NodeId, to: NodeId, step: u64) -> bool {
        to.index() < self.nodes && self.in_neighbours(to, step).binary_search(&from).is_ok()
    }

    /// The last global step up to and including `step` in which `from -> to` is used, if any.
    pub fn last_use(&self, from: NodeId, to: NodeId, step: u64) -> Option<u64> {
        let oldest = step.saturating_sub(self.period() - 1);
        (oldest..=step).rev().find(|&step| self.has_link(from, to, step))
    }

    fn slot(&self, step: u64) -> usize {
        (step % self.period()) as usize
    }

    fn table(&self, step: u64) -> &StepTable {
        &self.steps[self.slot(step)]
    }
}

impl StepTable {
    fn new(nodes: usize, index: usize, step: &Step) -> Result<Self, ScheduleError> {
        if step.keep.len() != nodes {
            return Err(ScheduleError::KeepLength { step: index, got: step.keep.len(), nodes });
        }
        let mut columns = step.keep.clone();
        let mut weights: Vec<Vec<(NodeId, f64)>> = vec![Vec::new(); nodes];
        let mut incoming: Vec<Vec<NodeId>> = vec![Vec::new(); nodes];
        for &(from, to, weight) in &step.links {
            check_link(nodes, index, from, to, weight)?;
            columns[from.index()] += weight;
            weights[from.index()].push((to, weight));
            incoming[to.index()].push(from);
        }
        for (node, (&keep, &sum)) in step.keep.iter().zip(&columns).enumerate() {
            let node = NodeId(node as u32);
            if !(0.0..=1.0).contains(&keep) {
                return Err(ScheduleError::Keep { step: index, node, keep });
            }
            if (sum - 1.0).abs() > COLUMN_TOLERANCE {
                return Err(ScheduleError::ColumnSum { step: index, node, sum });
            }
        }
        let mut out = Vec::with_capacity(nodes);
        for (node, links) in weights.iter_mut().enumerate() {
            let from = NodeId(node as u32);
            links.sort_by_key(|&(to, _)| to);
            if let Some(pair) = links.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(ScheduleError::RepeatedLink { step: index, from, to: pair[0].0 });
            }
            out.push(integer_shares(links, step.keep[node] > 0.0));
        }
        for senders in &mut incoming {
            senders.sort_unstable();
        }
        Ok(Self { keeps: step.keep.iter().map(|&keep| keep > 0.0).collect(), out, incoming })
    }
}

fn check_link(nodes: usize, step: usize, from: NodeId, to: NodeId, weight: f64) -> Result<(), ScheduleError> {
    for node in [from, to] {
        if node.index() >= nodes {
            return Err(ScheduleError::UnknownNode { step, node, nodes });
        }
    }
    if from == to {
        return Err(ScheduleError::SelfLink { step, node: from });
    }
    if !(weight > 0.0 && weight <= 1.0) {
        return Err(ScheduleError::Weight { step, from, to, weight });
    }
    Ok(())
}

/// Rounds one column to shares that never exceed the whole, and are exactly the whole when nothing is kept.
fn integer_shares(links: &[(NodeId, f64)], keeps: bool) -> Vec<OutShare> {
    let mut left = Share::WHOLE;
    let mut shares: Vec<OutShare> =
        links.iter().map(|&(to, weight)| OutShare { to, share: left.take(Share::nearest(weight)) }).collect();
    if !keeps && let Some(last) = shares.last_mut() {
        last.share = last.share.join(left);
    }
    shares
}

fn unions(nodes: usize, tables: &[StepTable]) -> (Vec<Vec<NodeId>>, Vec<Vec<NodeId>>) {
    let mut incoming = vec![Vec::new(); nodes];
    let mut outgoing = vec![Vec::new(); nodes];
    for table in tables {
        for node in 0..nodes {
            incoming[node].extend_from_slice(&table.incoming[node]);
            outgoing[node].extend(table.out[node].iter().map(|link| link.to));
        }
    }
    for list in incoming.iter_mut().chain(&mut outgoing) {
        list.sort_unstable();
        list.dedup();
    }
    (incoming, outgoing)
}

#[cfg(test)]
mod tests;
