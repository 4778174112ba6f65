//! What is told while a demo trains a model.

use std::time::Duration;

use crate::tally::Row;

/// What happens while a model is trained.
#[derive(Debug)]
pub enum DemoEvent<'a> {
    /// Every peer has its neighbours.
    Joined {
        /// Since the first was started.
        after: Duration,
    },
    /// Some peer has done so many rounds.
    Round(u64),
    /// All living peers have reported a round.
    Row(&'a Row),
    /// A peer's process was killed.
    Killed {
        /// Which.
        node: usize,
        /// The rounds that it had done.
        round: u64,
    },
    /// A killed peer is back, with what is on its disk.
    StartedAgain {
        /// Which.
        node: usize,
        /// The round that it goes on with.
        round: u64,
        /// Its weight, in units of 2^-40.
        weight_units: u64,
    },
    /// The swarm is done; this is trained to compare with.
    Trains(Unaided),
    /// The swarm has failed, or is to stop: its peers are stopped.
    Stops,
}

/// Training without a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unaided {
    /// A peer alone.
    Peer {
        /// Which.
        node: usize,
        /// Of how many.
        peers: usize,
    },
    /// All data in one place.
    AllData,
}

/// Whoever follows a demo.
pub trait Watcher: Send + Sync + 'static {
    /// Sees what happens, as it happens.
    fn see(&self, event: &DemoEvent<'_>);
}
