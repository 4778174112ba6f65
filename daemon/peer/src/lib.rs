//! A running peer of Mingle as a library.
//!
//! A peer keeps its data, trains locally, and pushes shares of its model along a planned directed graph until all peers
//! agree. You choose its training: implement [`LocalTraining`], and give it to [`Peer::builder`]. The program `mingle`
//! is a thin user of this crate.

pub mod api;
mod connections;
mod driver;
mod event_loop;
pub mod medium;
mod member;
pub mod peer;
mod place;
pub mod plan;
pub mod solving;
pub mod training;

/// Types of addresses and public names of peers.
pub use libp2p::{Multiaddr, PeerId};
pub use mingle_follow as follow;
pub use mingle_home::{
    Error, ErrorKind, Home, Identity, Result, audit, error, home, identity, output_file, owner_only, provisional,
    records, timeline, units,
};
pub use mingle_membership::{self as membership, plan_apply, task};
use mingle_status::openmetrics;
pub use mingle_status::{encodings, events, last_run, overlap, results, status, stop};
pub use mingle_training::priority;
pub use peer::{Outcome, Peer, PeerBuilder, PeerOptions, RunningPeer};
pub use training::LocalTraining;
