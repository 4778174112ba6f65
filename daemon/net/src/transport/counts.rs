//! Counts of the work done to find peers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libp2p::core::ConnectedPoint;
use libp2p::swarm::SwarmEvent;
use serde::{Deserialize, Serialize};

use super::behaviour::BehaviourEvent;
use crate::dial_error;

/// Counts of what a process has done so far to find its neighbours and to be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkCounts {
    /// Dials of a peer, each at all its addresses at once.
    pub dials: u64,
    /// Dials in which no address worked.
    pub failed_dials: u64,
    /// Connections that others opened.
    pub accepted: u64,
    /// Connections that others began to open and that were not established, including refused ones.
    pub failed_accepts: u64,
    /// Queries to the Kademlia table.
    pub table_queries: u64,
}

/// Running counts; clones share them, and any thread may read them.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    dials: AtomicU64,
    failed_dials: AtomicU64,
    accepted: AtomicU64,
    failed_accepts: AtomicU64,
    table_queries: AtomicU64,
}

impl Counter {
    /// The present counts.
    pub(super) fn read(&self) -> NetworkCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NetworkCounts {
            dials: read(&self.0.dials),
            failed_dials: read(&self.0.failed_dials),
            accepted: read(&self.0.accepted),
            failed_accepts: read(&self.0.failed_accepts),
            table_queries: read(&self.0.table_queries),
        }
    }

    /// Counts a dial that this process requested; the swarm reports only those that it makes by itself.
    pub(super) fn count_dial(&self) {
        self.0.dials.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_table_query(&self) {
        self.0.table_queries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note(&self, event: &SwarmEvent<BehaviourEvent>) {
        let counter = match event {
            SwarmEvent::Dialing { .. } => &self.0.dials,
            SwarmEvent::OutgoingConnectionError { error, .. } if !dial_error::attempts(error).is_empty() => {
                &self.0.failed_dials
            }
            SwarmEvent::IncomingConnectionError { .. } => &self.0.failed_accepts,
            SwarmEvent::ConnectionEstablished { endpoint: ConnectedPoint::Listener { .. }, .. } => &self.0.accepted,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
