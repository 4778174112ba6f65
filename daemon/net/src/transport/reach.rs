//! Finding single peers beside the neighbours of the plan.

use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc, oneshot};

use super::{DialAttempt, NetworkCommand};

/// A handle on the network task for finding peers.
#[derive(Clone)]
pub struct Reach {
    commands: mpsc::Sender<NetworkCommand>,
}

impl Reach {
    pub(super) fn new(commands: mpsc::Sender<NetworkCommand>) -> Self {
        Self { commands }
    }

    /// Searches for this peer for a while, at these addresses and all others known. Returns `true` once it is
    /// connected, `false` if the search ends without that.
    pub async fn connect(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> bool {
        let (connected, connects) = oneshot::channel();
        // The task ends with the process.
        let _ = self.commands.send(NetworkCommand::Connect(peer, addresses, connected)).await;
        connects.await.is_ok()
    }

    /// The addresses that a connected peer reports for itself; empty before it has reported any.
    pub async fn addresses(&self, peer: PeerId) -> Vec<Multiaddr> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(NetworkCommand::Addresses(peer, answer)).await;
        answered.await.unwrap_or_default()
    }

    /// Passes on addresses that another peer relayed, and dials the sought peers among them.
    pub async fn learn(&self, found: Vec<(PeerId, Vec<Multiaddr>)>) {
        let _ = self.commands.send(NetworkCommand::Learn(found)).await;
    }

    /// Stores the addresses that a member reports for itself, and returns the known addresses of `wanted`.
    pub async fn introduce(
        &self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        wanted: Vec<PeerId>,
    ) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(NetworkCommand::Introduce { peer, addresses, wanted, answer }).await;
        answered.await.unwrap_or_default()
    }

    /// The known addresses of `wanted`.
    pub async fn whereabouts(&self, wanted: Vec<PeerId>) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(NetworkCommand::Whereabouts(wanted, answer)).await;
        answered.await.unwrap_or_default()
    }

    /// The known addresses of the neighbours; `None` if the network is gone.
    pub async fn neighbours(&self) -> Option<Vec<(PeerId, Vec<Multiaddr>)>> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(NetworkCommand::Neighbours(answer)).await;
        answered.await.ok()
    }

    /// The addresses that the last failed dial of this peer tried, and why each failed.
    pub async fn attempts(&self, peer: PeerId) -> Vec<DialAttempt> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(NetworkCommand::Attempts(peer, answer)).await;
        answered.await.unwrap_or_default()
    }
}
