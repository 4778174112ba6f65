//! The board that shows the newest snapshot of a peer.

use std::sync::Arc;

use tokio::sync::watch;

use super::{PlanFacts, Status};

/// A reader of the newest snapshot, which can also wait for the next.
pub type StatusView = watch::Receiver<Arc<Status>>;

/// Holds the newest snapshot. Readers see only the newest, and none can delay the peer.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    sender: watch::Sender<Arc<Status>>,
    started: std::time::Instant,
}

impl StatusBoard {
    /// Shows the plan that the peer follows, its node there, and the factor by which the plan reduces disagreement in a
    /// round.
    pub fn show_plan(&self, plan: PlanFacts, node: usize, contraction: Option<f64>) {
        self.update(|status| {
            status.node = Some(node);
            status.plan = Some(plan);
            status.contraction.forecast = contraction;
        });
    }

    /// A board with a first snapshot; `started` is the start of the process.
    pub fn new(status: Status, started: std::time::Instant) -> Self {
        Self { sender: watch::Sender::new(Arc::new(status)), started }
    }

    /// Changes the snapshot and shows it.
    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        let at_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.sender.send_modify(|status| {
            let status = Arc::make_mut(status);
            status.at_ms = at_ms;
            change(status);
        });
    }

    /// A reader of the board.
    pub fn look(&self) -> StatusView {
        self.sender.subscribe()
    }
}
