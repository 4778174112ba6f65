//! The events of a demo that trains a model.

use std::time::Duration;

use crate::tally::SwarmRow;

/// An event of a demo that trains a model.
#[derive(Debug)]
pub enum DemoEvent<'a> {
    /// Every peer has its neighbours.
    Joined {
        /// Time since the first peer was started.
        after: Duration,
    },
    /// Some peer has done so many rounds.
    Round(u64),
    /// All living peers have reported a round.
    Row(&'a SwarmRow),
    /// A peer's process was killed.
    Killed {
        /// The peer.
        node: usize,
        /// The rounds that it had done.
        round: u64,
    },
    /// A killed peer is back, with the state on its disk.
    StartedAgain {
        /// The peer.
        node: usize,
        /// The round that it goes on with.
        round: u64,
        /// Its weight, in units of 2^-40.
        weight_units: u64,
    },
    /// A peer has ended with a result, and without most of the rounds: the others went on without it.
    Late {
        /// The peer.
        node: usize,
        /// Its own words.
        message: &'a str,
    },
    /// A peer warned, and none has in these words before.
    Warned {
        /// The peer.
        node: usize,
        /// Its own words.
        message: &'a str,
    },
    /// The swarm is done, and this baseline is trained.
    Trains(Unaided),
    /// The swarm has failed, or the demo was asked to stop: its peers are stopped.
    Stops,
}

/// Training without a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unaided {
    /// A peer alone.
    Peer {
        /// The peer.
        node: usize,
        /// The number of peers.
        peers: usize,
    },
    /// All data in one place.
    AllData,
}

/// An observer of a demo.
pub trait Watcher: Send + Sync + 'static {
    /// Receives each event as it happens.
    fn see(&self, event: &DemoEvent<'_>);
}
