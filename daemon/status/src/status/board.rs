//! Where the newest snapshot of a peer is shown.

use std::sync::Arc;

use tokio::sync::watch;

use super::{PlanFacts, Status};

/// A look at the newest snapshot, and a way to wait for the next.
pub type StatusView = watch::Receiver<Arc<Status>>;

/// Where the newest snapshot hangs. Whoever looks sees the newest; nobody can hold the peer up.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    sender: watch::Sender<Arc<Status>>,
    started: std::time::Instant,
}

impl StatusBoard {
    /// Shows the plan that the peer follows, the node that it is there, and by which factor the plan brings models closer in a round.
    pub fn show_plan(&self, plan: PlanFacts, node: usize, contraction: Option<f64>) {
        self.update(|status| {
            status.node = Some(node);
            status.plan = Some(plan);
            status.contraction.forecast = contraction;
        });
    }

    /// A board with a first snapshot; `started` is when the process began.
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

    /// A look at the board.
    pub fn look(&self) -> StatusView {
        self.sender.subscribe()
    }
}
