//! The slots of a plan for a shared channel, as one node needs them.

use crate::digraph::Link;
use crate::plan::Plan;
use crate::step::MixingStep;
use crate::topology::Topology;

/// Most links, times neighbours, for which quiet slots are looked for.
const MOST_CHECKS: usize = 10_000_000;

/// The slots of one step, for one node. Slots are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSlots {
    /// Their number.
    pub count: u32,
    /// The receivers of the node, each with the slot of the link to it.
    pub own: Vec<(u32, u32)>,
    /// The last slot in which the node sends or receives.
    pub last_busy: Option<u32>,
    /// Neighbours, each with a slot in which a word from or to it would disturb a receiver of a sender that one of the two
    /// is out of range of, and so does not wait for.
    pub quiet: Vec<(u32, u32)>,
}

impl Plan {
    /// `true` if the links of each round have the same slots.
    #[must_use]
    pub fn has_equal_rounds(&self) -> bool {
        let mut rounds = self.steps().chunks_exact(self.round_length().max(1));
        let Some(first) = rounds.next() else { return true };
        let is_alike = |(one, other): (&MixingStep, &MixingStep)| one.slots() == other.slots();
        rounds.all(|round| round.iter().zip(first).all(is_alike))
    }

    /// The slots of each step of the period, for a node with these neighbours. O(links x neighbours). Where that is more than
    /// 10^7, no slot is quiet.
    ///
    /// ```
    /// use mingle_planner::{DesignOptions, Method, Topology, design};
    /// let path = Topology::new(vec!["a".into(), "b".into(), "c".into()], &[(0, 1), (1, 2)]).unwrap();
    /// let plan = design(&path, Method::DPsgd, &DesignOptions::default()).unwrap();
    /// let slots = &plan.slots_of_node(0, &[1])[0];
    /// assert_eq!((slots.count, slots.own.len()), (3, 1));
    /// // While c sends to b, a would disturb b, and does not notice.
    /// assert_eq!(slots.quiet.len(), 1);
    /// ```
    #[must_use]
    pub fn slots_of_node(&self, node: usize, neighbours: &[usize]) -> Vec<NodeSlots> {
        let links: usize = self.steps().iter().map(|step| step.links().len()).sum();
        let neighbours = if links.saturating_mul(neighbours.len()) <= MOST_CHECKS { neighbours } else { &[] };
        let is_busy = |links: &Vec<Link>| links.iter().any(|link| is_end(node, link));
        let of = |step: &MixingStep| NodeSlots {
            count: step.slots().len() as u32,
            own: step.slots_from(node).map(|(receiver, slot)| (receiver as u32, slot as u32)).collect(),
            last_busy: (0_u32..).zip(step.slots()).filter(|(_, links)| is_busy(links)).map(|(slot, _)| slot).last(),
            quiet: quiet_slots(self.base(), step, node, neighbours),
        };
        self.steps().iter().map(of).collect()
    }
}

fn is_end(node: usize, link: &Link) -> bool {
    link.from == node || link.to == node
}

fn quiet_slots(base: &Topology, step: &MixingStep, node: usize, neighbours: &[usize]) -> Vec<(u32, u32)> {
    let disturbs = |node: usize, link: &Link| {
        !is_end(node, link) && !base.has_edge(node, link.from) && base.interferes(node, link.to)
    };
    let slots = (0_u32..).zip(step.slots());
    let quiet = slots.flat_map(|(slot, links)| {
        let is_quiet =
            move |neighbour: &&usize| links.iter().any(|link| disturbs(node, link) || disturbs(**neighbour, link));
        neighbours.iter().filter(is_quiet).map(move |neighbour| (*neighbour as u32, slot))
    });
    quiet.collect()
}
