//! The collectives in which a node's part of a solver is written, as futures.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use mingle_masking::MaskingError;
use mingle_protocol::NodeId;
use mingle_protocol::collective::{
    Collective, CollectiveError, CollectiveSequence, Extreme, PullRoutes, Reduction, ReliableChannel,
};

use crate::agreed_masks::AgreedMasks;
use crate::communication_plan::{AveragingScheme, CommunicationPlan};
use crate::error::SolveError;
use crate::schedule::node;
use crate::sum_scale::{Precision, Scale};

/// The reliable channel of one node, which both its work and its host hold.
pub(crate) type SharedChannel = Arc<Mutex<ReliableChannel<CollectiveSequence>>>;

/// One node's access to the collectives of its swarm.
#[derive(Clone)]
pub(crate) struct Collectives {
    pub me: usize,
    pub communication: Arc<CommunicationPlan>,
    pub(crate) channel: SharedChannel,
    /// The masks of sums, unless those are in clear.
    pub(crate) masks: Option<AgreedMasks>,
}

/// The channel behind its lock. Nothing that holds the lock panics.
pub(crate) fn lock(channel: &SharedChannel) -> MutexGuard<'_, ReliableChannel<CollectiveSequence>> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collectives {
    /// The collectives of node `me`, before the first one, and the channel for its host.
    pub(crate) fn new(me: usize, communication: Arc<CommunicationPlan>) -> (Self, SharedChannel) {
        let sequence = CollectiveSequence::new(Arc::clone(&communication.schedule), node(me));
        let channel = Arc::new(Mutex::new(ReliableChannel::new(sequence)));
        (Self { me, communication, channel: Arc::clone(&channel), masks: None }, channel)
    }

    /// The largest value of all nodes, place by place, and the node that has it. The same at all nodes.
    pub(crate) async fn largest(&self, values: &[f64]) -> Result<Vec<(f64, NodeId)>, SolveError> {
        let rounds = self.communication.diameter;
        self.begin(|sequence| sequence.begin_extremum(Extreme::Max, values, rounds))?;
        let largest: Vec<(f64, NodeId)> = self.result(|sequence| sequence.extremum().map(<[_]>::to_vec)).await?;
        if let Some(masks) = &self.masks {
            let words: Vec<u64> = largest.iter().flat_map(|(value, of)| [value.to_bits(), of.0.into()]).collect();
            masks.note(words.into_iter());
        }
        Ok(largest)
    }

    /// The sum of all nodes' values, place by place. The same bits at all nodes. Masked, unless the user wants it in
    /// clear.
    pub(crate) async fn total(&self, values: &[f64]) -> Result<Vec<f64>, SolveError> {
        self.total_in_pieces(values, values.len().max(1), Scale::OfLargest, Precision::Double).await
    }

    /// The sum of all nodes' values in clear: the node above in the tree sees those of a leaf.
    pub(crate) async fn plain_total(&self, values: &[f64]) -> Result<Vec<f64>, SolveError> {
        self.reduce(Reduction::Sum, values).await
    }

    /// The largest value of all nodes, place by place, without its owner. The same at all nodes.
    pub(crate) async fn most(&self, values: &[f64]) -> Result<Vec<f64>, SolveError> {
        self.reduce(Reduction::Max, values).await
    }

    async fn reduce(&self, reduction: Reduction, values: &[f64]) -> Result<Vec<f64>, SolveError> {
        self.begin(|sequence| sequence.begin_all_reduce(&self.communication.trees, reduction, values))?;
        let reduced: Vec<f64> = self.result(|sequence| sequence.reduced().map(<[f64]>::to_vec)).await?;
        if let Some(masks) = &self.masks {
            masks.note(reduced.iter().map(|value| value.to_bits()));
        }
        Ok(reduced)
    }

    /// The values of all nodes at every node, by node: the sum of vectors in which all places but one's own are zero,
    /// so that no value changes. In clear: all
    /// nodes see all rows anyway. Over the trees that is two messages a node, where a flood would take one for each row
    /// and link.
    ///
    /// # Errors
    /// Its own row came back as another, beside the errors of a sum.
    pub(crate) async fn gather(&self, own: &[f64]) -> Result<Vec<Vec<f64>>, SolveError> {
        let nodes = self.communication.schedule.nodes();
        let mut rows = vec![0.0; nodes * own.len()];
        rows[self.me * own.len()..][..own.len()].copy_from_slice(own);
        let rows = self.plain_total(&rows).await?;
        if rows[self.me * own.len()..][..own.len()] != *own {
            return Err(MaskingError::OwnRow.into());
        }
        Ok(rows.chunks_exact(own.len()).map(<[f64]>::to_vec).collect())
    }

    /// Returns `true` if averages are tracked, and so not exact.
    pub(crate) fn tracks(&self) -> bool {
        matches!(self.communication.agreement, AveragingScheme::Tracking { .. })
    }

    /// Begins the averages anew with twice the steps. All nodes have to do it between the same two collectives.
    pub(crate) fn average_more(&mut self) -> Result<(), SolveError> {
        lock(&self.channel).collective_mut().forget_tracking().map_err(SolveError::Collective)?;
        let mut communication = (*self.communication).clone();
        if let AveragingScheme::Tracking { steps } = &mut communication.agreement {
            *steps *= 2;
        }
        self.communication = Arc::new(communication);
        Ok(())
    }

    /// Sends values to each partner, and returns those that each partner sent.
    pub(crate) async fn exchange(
        &self,
        partners: &[NodeId],
        values: &[f64],
    ) -> Result<BTreeMap<NodeId, Arc<[f64]>>, SolveError> {
        self.begin(|sequence| sequence.begin_exchange(partners, values))?;
        self.result(|sequence| sequence.exchanged().cloned()).await
    }

    /// Returns the vectors of the nodes that this node chose as sources. The routes have to be the same at all nodes.
    pub(crate) async fn pull(
        &self,
        routes: &Arc<PullRoutes>,
        values: &[f64],
    ) -> Result<BTreeMap<NodeId, Arc<[f64]>>, SolveError> {
        self.begin(|sequence| sequence.begin_pull(routes, values))?;
        self.result(|sequence| sequence.pulled().cloned()).await
    }

    /// One iteration's mixture of all nodes' vectors, by the averaging scheme of the plan.
    pub(crate) async fn mix(&self, values: &[f64]) -> Result<Vec<f64>, SolveError> {
        let rows = match &self.communication.agreement {
            AveragingScheme::Tracking { steps } => {
                self.begin(|sequence| sequence.begin_tracking(values, *steps))?;
                return self.result(|sequence| sequence.average().map(<[f64]>::to_vec)).await;
            }
            AveragingScheme::Exact => {
                let nodes = self.communication.schedule.nodes() as f64;
                return Ok(self.total(values).await?.into_iter().map(|total| total / nodes).collect());
            }
            AveragingScheme::Mixing(rows) => Arc::clone(rows),
        };
        let row = &rows[self.me];
        let partners: Vec<NodeId> = row.iter().filter(|entry| entry.0 != self.me).map(|entry| node(entry.0)).collect();
        let said = self.exchange(&partners, values).await?;
        let mut mixed = vec![0.0; values.len()];
        for &(other, weight) in row {
            let theirs = said.get(&node(other)).map_or(values, |theirs| theirs);
            mixed.iter_mut().zip(theirs).for_each(|(mixed, value)| *mixed += weight * value);
        }
        Ok(mixed)
    }

    pub(crate) fn begin(
        &self,
        begin: impl FnOnce(&mut CollectiveSequence) -> Result<(), CollectiveError>,
    ) -> Result<(), SolveError> {
        begin(lock(&self.channel).collective_mut()).map_err(|error| match error {
            CollectiveError::NotFinite { .. } => SolveError::NotFinite(error),
            CollectiveError::Neighbour { .. } => SolveError::Neighbour(error),
            _ => SolveError::Collective(error),
        })
    }

    /// Waits until the collective is complete, and returns its result.
    pub(crate) async fn result<T>(&self, of: impl Fn(&CollectiveSequence) -> Option<T>) -> Result<T, SolveError> {
        let found = poll_fn(|_| {
            let channel = lock(&self.channel);
            let sequence = channel.collective();
            if sequence.is_complete() { Poll::Ready(of(sequence)) } else { Poll::Pending }
        });
        found.await.ok_or(SolveError::NoResult)
    }
}
