//! Looking for single peers, beside those that the plan names.

use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc, oneshot};

use super::{Command, DialAttempt};

/// Asks the network task for a peer.
#[derive(Clone)]
pub struct Reach {
    commands: mpsc::Sender<Command>,
}

impl Reach {
    pub(super) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self { commands }
    }

    /// Looks for this peer for a while, at these addresses and wherever else it is known to be. Returns when it is
    /// connected, or `false` when that did not come about.
    pub async fn connect(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> bool {
        let (connected, connects) = oneshot::channel();
        // The task ends with the process.
        let _ = self.commands.send(Command::Connect(peer, addresses, connected)).await;
        connects.await.is_ok()
    }

    /// Where a connected peer says that it listens; none while it has not said.
    pub async fn addresses(&self, peer: PeerId) -> Vec<Multiaddr> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Addresses(peer, answer)).await;
        answered.await.unwrap_or_default()
    }

    /// Takes in what somebody said of where peers listen, and dials those that are looked for.
    pub async fn learn(&self, found: Vec<(PeerId, Vec<Multiaddr>)>) {
        let _ = self.commands.send(Command::Learn(found)).await;
    }

    /// Remembers where a member says that it listens, and returns where those listen that it wants to know of, as far as
    /// this peer knows.
    pub async fn introduce(
        &self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        wanted: Vec<PeerId>,
    ) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Introduce { peer, addresses, wanted, answer }).await;
        answered.await.unwrap_or_default()
    }

    /// Where these listen, as far as this peer knows.
    pub async fn whereabouts(&self, wanted: Vec<PeerId>) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Whereabouts(wanted, answer)).await;
        answered.await.unwrap_or_default()
    }

    /// Where the neighbours listen, as far as it is known; none when the network is gone.
    pub async fn neighbours(&self) -> Option<Vec<(PeerId, Vec<Multiaddr>)>> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Neighbours(answer)).await;
        answered.await.ok()
    }

    /// The addresses that the last failed dial of this peer tried, and why none worked.
    pub async fn attempts(&self, peer: PeerId) -> Vec<DialAttempt> {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::Attempts(peer, answer)).await;
        answered.await.unwrap_or_default()
    }
}
