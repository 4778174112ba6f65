//! One exchange between neighbours: a node sends the same vector to all of its partners, and receives one from each.
//!
//! One message a partner in each direction; complete when all have arrived.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::mixing::check_inputs;
use super::{Collective, CollectiveError, CollectiveFault};
use crate::payload::MAX_DIMENSION;
use crate::schedule::{NodeId, Schedule};

/// The vector that a node sends to all of its partners.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeMessage {
    /// `[dimension]`; shared by all messages that carry it.
    pub values: Arc<[f64]>,
}

/// One node's part in an exchange: it sends the same vector to all partners, and waits until each has sent one.
///
/// ```
/// use mingle_protocol::collective::{Collective, Exchange};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Schedule::new(2, &[step], 0)?;
/// let mut nodes = [Exchange::new(&plan, a, &[b], &[1.0])?, Exchange::new(&plan, b, &[a], &[2.0])?];
/// for (from, to) in [(a, b), (b, a)] {
///     while let Some((_, message)) = nodes[from.index()].poll() {
///         nodes[to.index()].handle(from, message)?;
///     }
/// }
/// assert_eq!(*nodes[0].result().unwrap()[&b], [2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exchange {
    dimension: usize,
    waits_for: usize,
    received: BTreeMap<NodeId, Arc<[f64]>>,
    partners: Vec<NodeId>,
    outgoing: VecDeque<(NodeId, ExchangeMessage)>,
}

impl Exchange {
    /// Takes part as node `me` of `schedule` with `values`, `[dimension]`. Each of the `partners` has this node among
    /// its own, and the schedule has a link to it and one back.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, a partner is no neighbour in both directions, or `values` is
    /// empty, too long or not finite.
    pub fn new(schedule: &Schedule, me: NodeId, partners: &[NodeId], values: &[f64]) -> Result<Self, CollectiveError> {
        let nodes = schedule.nodes();
        if me.index() >= nodes {
            return Err(CollectiveError::NotInPlan { id: me, nodes });
        }
        let both = [schedule.all_out_neighbours(me), schedule.all_in_neighbours(me)];
        let is_neighbour = |partner: &NodeId| both.iter().all(|links| links.binary_search(partner).is_ok());
        if let Some(&partner) = partners.iter().find(|partner| !is_neighbour(partner)) {
            return Err(CollectiveError::NotANeighbour { me, partner });
        }
        if values.is_empty() || values.len() > MAX_DIMENSION {
            return Err(CollectiveError::Dimension { dimension: values.len() });
        }
        check_inputs(values)?;
        let mut partners = partners.to_vec();
        partners.sort_unstable();
        partners.dedup();
        let values: Arc<[f64]> = values.into();
        let outgoing = partners.iter().map(|to| (*to, ExchangeMessage { values: Arc::clone(&values) })).collect();
        Ok(Self { dimension: values.len(), waits_for: partners.len(), received: BTreeMap::new(), partners, outgoing })
    }

    /// The vector that each partner sent, once all have.
    pub fn result(&self) -> Option<&BTreeMap<NodeId, Arc<[f64]>>> {
        self.is_complete().then_some(&self.received)
    }
}

impl Collective for Exchange {
    type Message = ExchangeMessage;

    fn poll(&mut self) -> Option<(NodeId, ExchangeMessage)> {
        self.outgoing.pop_front()
    }

    fn handle(&mut self, from: NodeId, message: ExchangeMessage) -> Result<(), CollectiveFault> {
        if self.partners.binary_search(&from).is_err() {
            return Err(CollectiveFault::NoSuchLink);
        }
        if message.values.len() != self.dimension {
            return Err(CollectiveFault::WrongDimension);
        }
        if !message.values.iter().all(|value| value.is_finite()) {
            return Err(CollectiveFault::NotFinite);
        }
        self.received.entry(from).or_insert(message.values);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.received.len() == self.waits_for
    }
}
