//! Delivery of chosen nodes' vectors, unchanged, to each node that chose them: the basis of personal averages.
//!
//! All nodes know which vectors each of them wants, from a table or as a function of one. So all know along which links
//! each vector travels: those of the tree of shortest paths from its source, without the branches behind the last node
//! that wants it. A vector crosses every link of its tree once; nodes on the way pass it on. A node keeps one vector of
//! each source that it wants or passes on, and no more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::mixing::check_inputs;
use super::{Collective, CollectiveError, CollectiveFault};
use crate::payload::MAX_DIMENSION;
use crate::schedule::{NodeId, Schedule};

/// The links along which vectors travel from their sources to the nodes that want them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRoutes {
    nodes: usize,
    /// By node and source.
    hops: Vec<BTreeMap<NodeId, Hop>>,
}

/// A node's place in the tree of a source other than itself, or in its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hop {
    /// The neighbour that the vector comes from; `None` where it is the node's own.
    from: Option<NodeId>,
    /// The neighbours that it goes to, ascending.
    to: Vec<NodeId>,
    /// Set when this node wants it.
    is_wanted: bool,
}

impl PullRoutes {
    /// The routes where node `i` wants the vectors of `wanted[i]`; its own vector it has in any case. `None` where a
    /// source cannot reach a node that wants it, a source is not in the plan, or `wanted` has not one list for each
    /// node. `O(nodes * links)`.
    pub fn of(schedule: &Schedule, wanted: &[Vec<NodeId>]) -> Option<Self> {
        let nodes = schedule.nodes();
        if wanted.len() != nodes || wanted.iter().flatten().any(|source| source.index() >= nodes) {
            return None;
        }
        let mut hops = vec![BTreeMap::<NodeId, Hop>::new(); nodes];
        for source in (0..nodes).map(|node| NodeId(node as u32)) {
            let parents = parents(schedule, source);
            for (receiver, _) in wanted.iter().enumerate().filter(|(_, sources)| sources.contains(&source)) {
                hops[receiver].entry(source).or_default().is_wanted = true;
                let mut at = NodeId(receiver as u32);
                while at != source {
                    let parent = parents[at.index()]?;
                    hops[at.index()].entry(source).or_default().from = Some(parent);
                    let children = &mut hops[parent.index()].entry(source).or_default().to;
                    if let Err(place) = children.binary_search(&at) {
                        children.insert(place, at);
                    }
                    at = parent;
                }
            }
        }
        Some(Self { nodes, hops })
    }
}

/// The node before each on a shortest path from the source; of several, the first that is found.
fn parents(schedule: &Schedule, source: NodeId) -> Vec<Option<NodeId>> {
    let mut parents = vec![None; schedule.nodes()];
    let mut queue = VecDeque::from([source]);
    while let Some(node) = queue.pop_front() {
        for &next in schedule.all_out_neighbours(node) {
            if next != source && parents[next.index()].is_none() {
                parents[next.index()] = Some(node);
                queue.push_back(next);
            }
        }
    }
    parents
}

/// A vector on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct PullMessage {
    /// The node that the vector is of.
    pub source: NodeId,
    /// `[dimension]`; shared by all messages that carry it.
    pub values: Arc<[f64]>,
}

/// One node's part in a pull: it sends its vector towards the nodes that want it, passes on vectors of others, and
/// waits for those that it wants or passes on.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, Pull, PullRoutes};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Schedule::new(2, &[step], 0)?;
/// // The second node wants the vector of the first, which wants its own alone.
/// let routes = Arc::new(PullRoutes::of(&plan, &[vec![a], vec![a, b]]).unwrap());
/// let mut nodes = [Pull::new(Arc::clone(&routes), a, &[1.0])?, Pull::new(routes, b, &[2.0])?];
/// while let Some((to, message)) = nodes[0].poll() {
///     nodes[to.index()].handle(a, message)?;
/// }
/// assert_eq!(*nodes[1].result().unwrap()[&a], [1.0]);
/// assert_eq!(*nodes[0].result().unwrap()[&a], [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pull {
    me: NodeId,
    routes: Arc<PullRoutes>,
    dimension: usize,
    /// Sources whose vectors have come, wanted here or passed on.
    received: BTreeSet<NodeId>,
    wanted: BTreeMap<NodeId, Arc<[f64]>>,
    outgoing: VecDeque<(NodeId, PullMessage)>,
}

impl Pull {
    /// Takes part as node `me` with `values`, `[dimension]`; all nodes have routes of the same plan and wishes.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, or `values` is empty, too long or not finite.
    pub fn new(routes: Arc<PullRoutes>, me: NodeId, values: &[f64]) -> Result<Self, CollectiveError> {
        if me.index() >= routes.nodes {
            return Err(CollectiveError::NotInPlan { id: me, nodes: routes.nodes });
        }
        if values.is_empty() || values.len() > MAX_DIMENSION {
            return Err(CollectiveError::Dimension { dimension: values.len() });
        }
        check_inputs(values)?;
        let mut pull = Self {
            me,
            routes,
            dimension: values.len(),
            received: BTreeSet::new(),
            wanted: BTreeMap::new(),
            outgoing: VecDeque::new(),
        };
        pull.accept(PullMessage { source: me, values: values.into() });
        Ok(pull)
    }

    /// The vectors that this node wants, by source, once all are there.
    pub fn result(&self) -> Option<&BTreeMap<NodeId, Arc<[f64]>>> {
        self.is_complete().then_some(&self.wanted)
    }

    fn hops(&self) -> &BTreeMap<NodeId, Hop> {
        &self.routes.hops[self.me.index()]
    }

    /// Passes a vector on, and keeps it if this node wants it.
    fn accept(&mut self, message: PullMessage) {
        let routes = Arc::clone(&self.routes);
        let Some(hop) = routes.hops[self.me.index()].get(&message.source) else { return };
        self.outgoing.extend(hop.to.iter().map(|to| (*to, message.clone())));
        self.received.insert(message.source);
        if hop.is_wanted {
            self.wanted.insert(message.source, message.values);
        }
    }
}

impl Collective for Pull {
    type Message = PullMessage;

    fn poll(&mut self) -> Option<(NodeId, PullMessage)> {
        self.outgoing.pop_front()
    }

    fn handle(&mut self, from: NodeId, message: PullMessage) -> Result<(), CollectiveFault> {
        if self.hops().get(&message.source).is_none_or(|hop| hop.from != Some(from)) {
            return Err(CollectiveFault::NoSuchLink);
        }
        if message.values.len() != self.dimension {
            return Err(CollectiveFault::WrongDimension);
        }
        if !message.values.iter().all(|value| value.is_finite()) {
            return Err(CollectiveFault::NotFinite);
        }
        if !self.received.contains(&message.source) {
            self.accept(message);
        }
        Ok(())
    }

    /// Returns `true` once all vectors that this node wants or passes on have arrived.
    fn is_complete(&self) -> bool {
        self.received.len() == self.hops().len()
    }
}
