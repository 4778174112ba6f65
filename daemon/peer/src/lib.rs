//! A running peer of Mingle as a library.
//!
//! A peer keeps its data, trains locally, and pushes shares of its model along a planned directed graph until all peers
//! agree. What it trains is yours: implement [`LocalTraining`], and give it to
//! [`Peer::builder`]. The program `mingle` is a thin user of this crate.

pub mod api;
mod connections;
mod driver;
pub mod encodings;
pub mod error;
mod event_loop;
pub mod events;
pub mod home;
pub mod identity;
pub mod last_run;
mod member;
pub mod membership;
mod metrics;
mod objections;
pub mod peer;
mod place;
pub mod plan;
pub mod priority;
pub mod records;
pub mod results;
mod solving;
pub mod status;
pub mod stop;
pub mod task;
pub mod timeline;
pub mod training;
pub mod units;

pub use error::{Error, ErrorKind, Result};
pub use home::Home;
pub use identity::Identity;
/// What addresses and public names of peers are.
pub use libp2p::{Multiaddr, PeerId};
pub use peer::{Outcome, Peer, PeerBuilder, PeerOptions, RunningPeer};
pub use training::LocalTraining;
