//! The network of a peer: libp2p transports, peer discovery, streams along the links of the plan, and link measurement.
//!
//! - [`transport`] owns the libp2p swarm: it listens, dials, relays and finds peers, over QUIC and TCP.
//! - [`edge`] keeps one stream for each directed link of the plan, and carries the messages of the protocol on it.
//! - [`multicast`] sends the payload of a parcel once for all out-neighbours that packets reach, beside these streams.
//! - [`neighbour_table`] knows which streams there are to each neighbour, and which links are up.
//! - [`objections`] between this peer and its neighbours: those that concern one neighbour, and those that end this peer.
//! - [`probe`] measures round-trip times and throughput between two members.
//! - [`framed`] reads and writes single values on a stream, each with a limit of its size.
//! - [`known_peers`] are those that are served before others, and [`places`] the room that each protocol has for both.
//! - [`guests`] are the connections of a listener that is open to all, and [`unread`] ends those that read no answer.
//! - [`questions`] limits the requests that messages of a neighbour cause.
//! - [`written_address`] parses the addresses that people write.
//! - [`printable`] makes text that others wrote safe to print.
//!
//! This crate knows neither the trained model, nor the rules of admission, nor where files lie: callers decide which
//! peers to accept.

mod dial_error;
pub mod edge;
mod error;
pub mod framed;
pub mod guests;
pub mod known_peers;
pub mod multicast;
pub mod neighbour_table;
pub mod objections;
pub mod places;
pub mod printable;
pub mod probe;
pub mod questions;
pub mod token_bucket;
pub mod traffic;
pub mod transport;
pub mod unread;
pub mod written_address;

pub use error::{NetworkError, ProbeError};
