//! The routes of the interface, and their handlers.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::extract::{Query, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use hyper::body::Body as _;
use mingle_planner::draw;
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::answer::{self, refuse};
use super::request::{EndAnswer, Request, Stopping};
use super::token::{self, AccessToken};
use super::{Shared, browser, measuring, page, serve, stream};
use crate::error::ErrorKind;
use crate::openmetrics;
use crate::status::{NeighbourStatus, PeerState};

/// Largest number of open streams of events and snapshots, per listener.
const MAX_STREAMS: usize = 16;
/// Largest body of a request, in bytes.
const MAX_BODY_BYTES: u64 = 4096;
/// Timeout of the driver's answer to a request; a driver that exceeds it is busy ending.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Routes for the owner of the home, and for the trainer that its peer has started.
pub(super) fn local(shared: &Arc<Shared>, calls: Router) -> Router {
    let router = watching()
        .route("/v1/stop", post(stop))
        .route("/v1/leave", post(leave))
        .route("/v1/end", post(end))
        .route("/v1/known", get(measuring::known))
        .route("/v1/measure", post(measuring::measure));
    finish(router, shared).merge(calls).layer(middleware::from_fn(serve::hear))
}

/// Routes for a browser, none of which changes anything.
pub(super) fn public(shared: &Arc<Shared>) -> Router {
    let router = watching()
        .route("/", get(page::page))
        .route("/icon.svg", get(page::icon))
        .route("/plan.svg", get(plan_picture));
    finish(router, shared).layer(middleware::from_fn(serve::hear)).layer(middleware::from_fn(browser::guard))
}

/// Routes for a trainer over TCP that shows the token: its own calls and the status, and none that steers the peer.
pub(super) fn guarded(shared: &Arc<Shared>, calls: Router, token: AccessToken) -> Router {
    let router = Router::new().route("/v1/status", get(status));
    let router = finish(router, shared).merge(calls).layer(middleware::from_fn(serve::hear));
    router.layer(middleware::from_fn_with_state(token, token::guard))
}

/// Permits for the streams of one listener.
#[derive(Clone)]
struct StreamPlaces(Arc<Semaphore>);

impl StreamPlaces {
    fn take(self) -> Option<OwnedSemaphorePermit> {
        self.0.try_acquire_owned().ok()
    }
}

fn watching() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/status/follow", get(follow_status))
        .route("/v1/peers", get(peers))
        .route("/v1/events", get(events))
        .route("/metrics", get(scrape))
        .route(serve::LIVE, get(async || "alive\n"))
        .route(serve::READY, get(ready))
}

fn finish(router: Router<Arc<Shared>>, shared: &Arc<Shared>) -> Router {
    router
        .fallback(async || refuse(StatusCode::NOT_FOUND, ErrorKind::BadInput, "there is nothing here"))
        .method_not_allowed_fallback(async || {
            refuse(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::BadInput, "this cannot be done here")
        })
        .layer(middleware::from_fn(limit_body))
        // Viewers of the page take no stream permits from the owner of the home.
        .layer(Extension(StreamPlaces(Arc::new(Semaphore::new(MAX_STREAMS)))))
        .with_state(Arc::clone(shared))
}

/// Rejects large bodies: no request here needs more than a few bytes.
async fn limit_body(request: HttpRequest, next: Next) -> Response {
    let size = request.body().size_hint();
    if size.upper().is_none_or(|upper| upper > MAX_BODY_BYTES) {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, ErrorKind::BadInput, "the body of the request is too large");
    }
    next.run(request).await
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    let status = Arc::clone(&shared.status.borrow());
    answer::json(&*status)
}

async fn peers(State(shared): State<Arc<Shared>>) -> Response {
    let status = Arc::clone(&shared.status.borrow());
    answer::json(&peers_object(&status.neighbours))
}

/// The neighbours as a JSON object of their own.
pub fn peers_object(neighbours: &[NeighbourStatus]) -> serde_json::Value {
    json!({ "schema": "mingle.peers/1", "peers": neighbours })
}

async fn follow_status(State(shared): State<Arc<Shared>>, Extension(places): Extension<StreamPlaces>) -> Response {
    let Some(permit) = places.take() else { return too_many_streams() };
    stream::snapshots(shared.status.clone(), permit)
}

/// Streams the events from now on. With `?since=NUMBER`, or the `Last-Event-ID` that browsers send when they reconnect,
/// the remembered events after that number come first.
async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(places): Extension<StreamPlaces>,
    query: Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let last_id = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let since = last_id.or(query.get("since").map(String::as_str));
    let Ok(since) = since.map(str::parse).transpose() else {
        return refuse(StatusCode::BAD_REQUEST, ErrorKind::BadInput, "since is the number of an event, such as 0");
    };
    let Some(permit) = places.take() else { return too_many_streams() };
    stream::events(shared.events.read(since), permit)
}

fn too_many_streams() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Refused, "too many streams are open: close one of them")
}

async fn scrape(State(shared): State<Arc<Shared>>) -> Response {
    match openmetrics::encode(&shared.registry) {
        Ok(text) => answer::typed(openmetrics::CONTENT_TYPE, text),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, &error.to_string()),
    }
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let (joined, state) = {
        let status = shared.status.borrow();
        (status.joined, status.state)
    };
    let is_ready = joined && !state.is_over();
    let mut response = answer::typed("text/plain; charset=utf-8", format!("{state}\n"));
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

async fn stop(State(shared): State<Arc<Shared>>) -> Response {
    match ask_driver(&shared, Request::Stop).await {
        Ok(Some(stopping)) => answer::json(&stopping),
        Ok(None) => answer::json(&ending(&shared)),
        Err(busy) => busy,
    }
}

async fn leave(State(shared): State<Arc<Shared>>) -> Response {
    match ask_driver(&shared, Request::Leave).await {
        Ok(Some(Some(stopping))) => answer::json(&stopping),
        Ok(_) if shared.status.borrow().state == PeerState::Solving => refuse(
            StatusCode::CONFLICT,
            ErrorKind::Refused,
            "this peer solves a problem: it holds no weight to hand over, and goes on. `mingle stop` stops it; the others then wait \
             for it, until it is back or a plan leaves it out",
        ),
        Ok(_) => refuse(StatusCode::CONFLICT, ErrorKind::Refused, "this peer is ending already, and keeps its weight"),
        Err(busy) => busy,
    }
}

async fn end(State(shared): State<Arc<Shared>>) -> Response {
    match ask_driver(&shared, Request::End).await {
        Ok(answer) => answer::json(&answer.unwrap_or(EndAnswer::Impossible)),
        Err(busy) => busy,
    }
}

/// Sends a request to the driver. Returns its answer, or `None` if the driver has ended.
async fn ask_driver<T>(
    shared: &Shared,
    request: impl FnOnce(oneshot::Sender<T>) -> Request,
) -> Result<Option<T>, Response> {
    let (answer, answered) = oneshot::channel();
    let busy = || refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Refused, "this peer is busy: ask again");
    match shared.requests.try_send(request(answer)) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => return Err(busy()),
        Err(TrySendError::Closed(_)) => return Ok(None),
    }
    match tokio::time::timeout(ANSWER_TIMEOUT, answered).await {
        Ok(answer) => Ok(answer.ok()),
        Err(_) => Err(busy()),
    }
}

/// The answer for a driver that has ended already: the requested end is under way.
fn ending(shared: &Shared) -> Stopping {
    let status = shared.status.borrow();
    Stopping { round: status.round, rounds: status.rounds, weight_units: status.weight.units, durable: status.durable }
}

/// A picture of the plan, as the planner draws it. Large plans take a while, so a blocking thread draws it.
async fn plan_picture(State(shared): State<Arc<Shared>>) -> Response {
    let plan = shared.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(plan) = plan else {
        return refuse(StatusCode::NOT_FOUND, ErrorKind::BadInput, "this peer has no plan yet");
    };
    let drawn = tokio::task::spawn_blocking(move || draw::svg(&plan, &draw::NodePlacement::Circle)).await;
    match drawn {
        Ok(Ok(svg)) => answer::typed("image/svg+xml", svg),
        Ok(Err(error)) => refuse(StatusCode::NOT_FOUND, ErrorKind::BadInput, &error.to_string()),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, &error.to_string()),
    }
}
