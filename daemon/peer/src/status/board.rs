//! Where the newest snapshot of a peer is shown.

use std::sync::Arc;

use tokio::sync::watch;

use super::{PlanFacts, Status};
use crate::place::Place;
use crate::units;

/// A look at the newest snapshot, and a way to wait for the next.
pub type StatusView = watch::Receiver<Arc<Status>>;

/// Where the newest snapshot hangs. Whoever looks sees the newest; nobody can hold the peer up.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    sender: watch::Sender<Arc<Status>>,
    started: std::time::Instant,
}

impl StatusBoard {
    /// Shows the plan that the peer follows, and its place there.
    pub fn show_place(&self, place: &Place) {
        let plan = &place.plan.plan;
        // |lambda_2| is that of a period, which may have several rounds.
        let share = units::ratio(plan.round_length(), plan.steps().len());
        self.update(|status| {
            status.node = Some(place.node.index());
            status.plan = Some(PlanFacts {
                hash: place.hash.clone(),
                method: plan.method().to_owned(),
                nodes: plan.node_count(),
                origin: place.origin.clone(),
            });
            status.contraction.forecast = plan.forecast().lambda_2.map(|lambda| lambda.powf(share));
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
