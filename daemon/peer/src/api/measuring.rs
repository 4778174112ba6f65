//! Measurement of links, for `mingle probe` and `mingle ping`.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use libp2p::PeerId;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::answer::{self, fail, refuse};
use crate::error::ErrorKind;

/// The peers whose links can be measured, by PeerId.
#[derive(Debug, Serialize, Deserialize)]
pub struct Known {
    /// This peer first, then members of its plan, then pending peers.
    pub peers: Vec<String>,
    /// The reason for which this peer can have only its own links measured, if there is one.
    pub objection: Option<String>,
}

/// A measured link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSpeed {
    /// PeerId of the sender.
    pub from: String,
    /// PeerId of the receiver.
    pub to: String,
    /// Median round trip in milliseconds.
    pub rtt_ms: f64,
    /// Throughput in 10^6 bits per second, counted at the receiver.
    pub mbit_s: f64,
}

#[derive(Deserialize)]
pub(super) struct LinkQuery {
    from: String,
    to: String,
}

pub(super) async fn known(State(shared): State<Arc<Shared>>) -> Response {
    let Some(service) = shared.service.get() else { return starting() };
    let objection = service.may_order_measurements().err().map(|failure| format!("{failure:#}"));
    answer::json(&Known { peers: service.known().iter().map(PeerId::to_string).collect(), objection })
}

pub(super) async fn measure(State(shared): State<Arc<Shared>>, link: Query<LinkQuery>) -> Response {
    let Some(service) = shared.service.get() else { return starting() };
    let (Ok(from), Ok(to)) = (link.from.parse(), link.to.parse()) else {
        return refuse(StatusCode::BAD_REQUEST, ErrorKind::BadInput, "from and to are PeerIds");
    };
    match service.measure(from, to).await {
        Ok(measured) => answer::json(&LinkSpeed {
            from: link.from.clone(),
            to: link.to.clone(),
            rtt_ms: measured.round_trip.as_secs_f64() * 1e3,
            mbit_s: measured.bits_per_s / 1e6,
        }),
        Err(failure) => fail(StatusCode::BAD_GATEWAY, &failure),
    }
}

fn starting() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Refused, "this peer is just starting: ask again")
}
