//! Load of nodes on a point-to-point medium: the payloads of the busiest node, and the bytes of a payload.
//!
//! On separate links all nodes send at once, and a step lasts as long as the node takes that sends or receives most. So
//! the time of a period is the sum over its steps of the payloads of the busiest node, whatever the others do meanwhile:
//! a star in which one node serves all others is as slow as that node.
//!
//! Payloads differ in length. Peers of a plan whose exact averages hand one ratio down to all send differences to it in
//! few bits. [`payload_share`] has that rule, which is the rule of the nodes that run the plan.

use crate::step::MixingStep;

/// The bytes of a difference in four bits as a share of those of the whole payload: 128 bytes and a scale for 256
/// numbers.
pub const FOUR_BITS: f64 = 132.0 / 1024.0;

/// The most rounds from one exact average to the next under which peers send differences.
pub const LONGEST_CODED_PERIOD: usize = 8;

/// A weight below this one is rounding.
const NO_WEIGHT: f64 = 1e-9;

/// Payloads that each node sends and receives in some steps, one for each link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLoads {
    /// Payloads sent, by node.
    pub sent: Vec<usize>,
    /// Payloads received, by node.
    pub received: Vec<usize>,
}

impl NodeLoads {
    /// O(n + links).
    #[must_use]
    pub fn of(node_count: usize, steps: &[MixingStep]) -> Self {
        let mut loads = Self { sent: vec![0; node_count], received: vec![0; node_count] };
        steps.iter().for_each(|step| loads.add(step));
        loads
    }

    fn add(&mut self, step: &MixingStep) {
        for link in step.links() {
            self.sent[link.from] += 1;
            self.received[link.to] += 1;
        }
    }

    /// The payloads that the busiest node sends or receives, as a multiple of what a node sends on average. 1 where all
    /// carry the same, and where no node sends.
    #[must_use]
    pub fn heaviest_share(&self) -> f64 {
        let all: usize = self.sent.iter().sum();
        let most = self.sent.iter().chain(&self.received).max().copied().unwrap_or(0);
        if all == 0 { 1.0 } else { most as f64 * self.sent.len() as f64 / all as f64 }
    }
}

/// The load of a round on a point-to-point medium, on average over a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundLoad {
    /// Payloads that the busiest node of each step sends or receives, summed over the steps of a round: see [`busiest`].
    pub busiest_payloads: f64,
    /// The payloads that the busiest node sends or receives in a period, as a multiple of the mean.
    pub heaviest_share: f64,
    /// The bytes of a payload as a share of those of a whole one: see [`payload_share`].
    pub payload_share: f64,
    /// Seconds of a round with payloads of these bytes; none without link measurements.
    pub seconds: Option<f64>,
}

/// The sum over steps of the payloads that the busiest node of each sends or receives: the length of these steps, in
/// payloads of one uplink or downlink. O(n + links).
///
/// ```
/// use mingle_planner::{DesignOptions, Medium, Method, Topology, design, load::busiest};
/// let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
/// let plan = design(&Topology::generate("star:n=6")?, Method::ExactAverage, &options)?;
/// assert_eq!(busiest(6, plan.steps()), 10); // the centre receives five payloads and sends five
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn busiest(node_count: usize, steps: &[MixingStep]) -> usize {
    let mut loads = NodeLoads::of(node_count, &[]);
    let mut sum = 0;
    for step in steps {
        loads.add(step);
        let of_link = |link: &crate::step::WeightedLink| loads.sent[link.from].max(loads.received[link.to]);
        sum += step.links().iter().map(of_link).max().unwrap_or(0);
        for link in step.links() {
            loads.sent[link.from] = 0;
            loads.received[link.to] = 0;
        }
    }
    sum
}

/// The most rounds from one exact average to the next, 1 where every round has one; `None` in plans without. At an exact
/// average a node has the weight of all, and hands its ratio down to nodes without weight. O(n + links).
#[must_use]
pub fn rounds_between_exact_averages(node_count: usize, steps: &[MixingStep], round_length: usize) -> Option<usize> {
    let all = node_count as f64 * (1.0 - NO_WEIGHT);
    let mut weights = vec![1.0; node_count];
    let mut scratch = vec![0.0; node_count];
    let mut averages_exactly = |round: &[MixingStep]| {
        let mut has_root = false;
        for step in round {
            has_root |= step.columns().any(|column| {
                let is_empty = |link: &crate::step::WeightedLink| weights[link.to] < NO_WEIGHT;
                weights[column[0].from] >= all && column.iter().all(is_empty)
            });
            step.mix(&mut weights, &mut scratch);
        }
        has_root
    };
    let rounds = steps.chunks(round_length.max(1));
    let count = rounds.len();
    let exact: Vec<usize> =
        rounds.enumerate().filter(|(_, round)| averages_exactly(round)).map(|(number, _)| number).collect();
    let first = exact.first()?;
    let last = exact.last()?;
    exact.windows(2).map(|pair| pair[1] - pair[0]).chain([first + count - last]).max()
}

/// The bytes of a payload of these steps as a share of those of a whole one: `coded_share` where peers send differences
/// to exact averages, which are near each other and come from training; else 1. O(n + links).
#[must_use]
pub fn payload_share(
    node_count: usize,
    steps: &[MixingStep],
    round_length: usize,
    local_steps: u32,
    coded_share: f64,
) -> f64 {
    let is_near = |rounds: usize| rounds <= LONGEST_CODED_PERIOD;
    let is_coded =
        local_steps > 0 && rounds_between_exact_averages(node_count, steps, round_length).is_some_and(is_near);
    if is_coded { coded_share } else { 1.0 }
}
