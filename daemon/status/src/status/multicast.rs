//! Payloads by multicast, in a snapshot.

use mingle_net::traffic::MulticastTraffic;
use serde::{Deserialize, Serialize};

/// Payloads by multicast of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastStatus {
    /// The group and its port.
    pub group: String,
    /// The traffic since the process began.
    #[serde(flatten)]
    pub traffic: MulticastTraffic,
}

/// Payloads by multicast on the links with one neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkMulticast {
    /// `true` if packets of this peer reach the neighbour, or its packets this peer where there is no link to it.
    pub hears: bool,
    /// Parcels sent whose payload went by multicast.
    pub sent_parcels: u64,
    /// Parcels sent whose payload went by stream in the end.
    pub resorted_parcels: u64,
    /// Parcels received whose payload came by multicast.
    pub received_parcels: u64,
}

impl LinkMulticast {
    /// The way of payloads at present.
    pub fn way(&self) -> &'static str {
        if self.hears { "multicast" } else { "stream" }
    }
}
