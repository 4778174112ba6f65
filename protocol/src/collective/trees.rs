//! Two trees of a plan's links, and one node's part in reducing vectors up the one and spreading the result down the
//! other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{CollectiveError, CollectiveFault};
use crate::payload::MAX_DIMENSION;
use crate::schedule::{NodeId, Schedule};

/// Two trees with one root: along the links of one all nodes reach it, along those of the other it reaches all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trees {
    towards: ReductionTree,
    away: ReductionTree,
}

/// Each node's neighbour on the side of the root, and those on the other side, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReductionTree {
    parents: Vec<Option<NodeId>>,
    children: Vec<Vec<NodeId>>,
}

impl Trees {
    /// The trees of a plan, around the node that has most links; `None` when some node cannot reach it or be reached
    /// from it.
    ///
    /// # Complexity
    /// O(links): a breadth-first search in each direction.
    pub fn of(schedule: &Schedule) -> Option<Self> {
        let nodes = || (0..schedule.nodes() as u32).map(NodeId);
        let links = |node: NodeId| schedule.all_out_neighbours(node).len() + schedule.all_in_neighbours(node).len();
        // The first of those that have most.
        let root = nodes().rev().max_by_key(|node| links(*node))?;
        let away = ReductionTree::grow(schedule.nodes(), root, |node| schedule.all_out_neighbours(node))?;
        let towards = ReductionTree::grow(schedule.nodes(), root, |node| schedule.all_in_neighbours(node))?;
        Some(Self { towards, away })
    }
}

impl ReductionTree {
    fn grow<'a>(nodes: usize, root: NodeId, next: impl Fn(NodeId) -> &'a [NodeId]) -> Option<Self> {
        let mut tree = Self { parents: vec![None; nodes], children: vec![Vec::new(); nodes] };
        let mut queue = VecDeque::from([root]);
        let mut reached = 1;
        while let Some(parent) = queue.pop_front() {
            for &child in next(parent) {
                let is_new = child != root && tree.parents[child.index()].is_none();
                if is_new {
                    tree.parents[child.index()] = Some(parent);
                    tree.children[parent.index()].push(child);
                    queue.push_back(child);
                    reached += 1;
                }
            }
        }
        (reached == nodes).then_some(tree)
    }
}

/// One node's part in a reduction over the trees: it waits for its children, combines their vectors with its own in the
/// order of their ids, and passes the result on; the root spreads it.
#[derive(Clone, Debug)]
pub(super) struct TreeReduction<Value> {
    trees: Arc<Trees>,
    me: NodeId,
    combine: fn(&mut [Value], &[Value]),
    own: Vec<Value>,
    /// The results of its children in the tree towards the root.
    received: BTreeMap<NodeId, Vec<Value>>,
    whole: Option<Vec<Value>>,
    /// Messages: `true` for the result of all nodes, and the values.
    outgoing: VecDeque<(NodeId, bool, Vec<Value>)>,
}

impl<Value: Clone> TreeReduction<Value> {
    /// Takes part as node `me` with `own`, `[dimension]`.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, or `own` is empty or too long.
    pub(super) fn new(
        trees: Arc<Trees>,
        me: NodeId,
        combine: fn(&mut [Value], &[Value]),
        own: Vec<Value>,
    ) -> Result<Self, CollectiveError> {
        let nodes = trees.away.parents.len();
        if me.index() >= nodes {
            return Err(CollectiveError::NotInPlan { id: me, nodes });
        }
        if own.is_empty() || own.len() > MAX_DIMENSION {
            return Err(CollectiveError::Dimension { dimension: own.len() });
        }
        let received = BTreeMap::new();
        let outgoing = VecDeque::new();
        let mut node = Self { trees, me, combine, own, received, whole: None, outgoing };
        node.pass_on();
        Ok(node)
    }

    /// The result of all nodes, once it is there.
    pub(super) fn whole(&self) -> Option<&[Value]> {
        self.whole.as_deref()
    }

    /// The next message: its receiver, `true` if it has the result of all nodes, and the values.
    pub(super) fn poll(&mut self) -> Option<(NodeId, bool, Vec<Value>)> {
        self.outgoing.pop_front()
    }

    /// Takes the values of a message. A message that was here before changes nothing.
    ///
    /// # Errors
    /// [`CollectiveFault`] when no sound neighbour would send it.
    pub(super) fn handle(&mut self, from: NodeId, is_whole: bool, values: Vec<Value>) -> Result<(), CollectiveFault> {
        let me = self.me.index();
        let is_expected = match is_whole {
            true => self.trees.away.parents[me] == Some(from),
            false => self.trees.towards.children[me].contains(&from),
        };
        if !is_expected {
            return Err(CollectiveFault::NoSuchLink);
        }
        if values.len() != self.own.len() {
            return Err(CollectiveFault::WrongDimension);
        }
        if is_whole {
            if self.whole.is_none() {
                self.spread(values);
            }
        } else if let Entry::Vacant(place) = self.received.entry(from) {
            place.insert(values);
            self.pass_on();
        }
        Ok(())
    }

    /// Sends the result of this node and those below it towards the root, once all its children have sent theirs. The
    /// root spreads it.
    fn pass_on(&mut self) {
        if self.received.len() < self.trees.towards.children[self.me.index()].len() {
            return;
        }
        let mut values = self.own.clone();
        // By ascending id, after one's own.
        self.received.values().for_each(|theirs| (self.combine)(&mut values, theirs));
        match self.trees.towards.parents[self.me.index()] {
            Some(parent) => self.outgoing.push_back((parent, false, values)),
            None => self.spread(values),
        }
    }

    /// Keeps the whole result and sends it to the children in the tree away from the root.
    fn spread(&mut self, values: Vec<Value>) {
        for child in &self.trees.away.children[self.me.index()] {
            self.outgoing.push_back((*child, true, values.clone()));
        }
        self.whole = Some(values);
    }
}
