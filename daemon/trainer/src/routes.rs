//! The calls of the trainer protocol, as `docs/trainer-protocol.md` lists them.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequestParts, Query, State as Served};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use mingle_peer::api::Caller;
use mingle_peer::events::{AskedToEnd, Event};
use mingle_peer::membership::Wish;
use mingle_peer::peer::Extension as PeerExtension;
use serde::Deserialize;
use serde_json::json;

use crate::error::Refusal;
use crate::host::TrainerHost;
use crate::order::{NextOrder, Order, OrderKind};
use crate::run_end::RunEnd;
use crate::state::{State, TrainerAnswer};
use crate::tcp;
use crate::vectors::{VectorBody, read_bytes, read_vector};
use crate::wire::{Attach, EvaluationBody, MAX_ATTACH_BYTES, MAX_METRICS_BYTES, check_metrics, metrics};

/// The header with the secret of a session.
const SESSION: &str = "mingle-session";
/// Longest wait of a call, in seconds.
const LONGEST_WAIT: f64 = 60.0;
/// Default wait of a call, in seconds.
const USUAL_WAIT: f64 = 25.0;

type HandlerResult = Result<Response, Refusal>;

impl TrainerHost {
    /// The extension of the peer's interface for trainers: the calls on its socket, and over TCP where that is wanted,
    /// and the notification of the end.
    ///
    /// # Errors
    /// No token can be made for TCP, or that of an earlier run cannot be removed.
    pub fn extension(&self) -> mingle_peer::Result<PeerExtension> {
        let host = self.clone();
        let home = &self.options().home;
        let tcp = match self.options().tcp {
            Some(address) => Some(tcp::opening(home, address, move |access| host.serve_over_tcp(access))?),
            None => tcp::close(home).map(|()| None)?,
        };
        let host = self.clone();
        Ok(PeerExtension { routes: routes(self), tcp, farewell: Box::new(move |outcome| host.end(outcome)) })
    }
}

fn routes(host: &TrainerHost) -> Router {
    Router::new()
        .route("/v1/trainer", get(show))
        .route("/v1/trainer/attach", post(attach))
        .route("/v1/trainer/initial", put(initial))
        .route("/v1/trainer/order", get(order))
        .route("/v1/trainer/exchange", post(exchange))
        .route("/v1/trainer/evaluation", post(evaluation))
        .route("/v1/trainer/state", get(state).put(put_state))
        .route("/v1/trainer/end", post(end))
        .route("/v1/trainer/detach", post(detach))
        .with_state(host.clone())
}

/// The query of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallQuery {
    order: Option<u64>,
    steps: Option<u32>,
    wait: Option<f64>,
    asks: Option<bool>,
    of: Option<StateOwner>,
}

/// The owner of a state that a trainer asks for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateOwner {
    /// Another member of the swarm, which gave it to this peer.
    Member,
}

impl<S: Sync> FromRequestParts<S> for CallQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        Query::try_from_uri(&parts.uri).map(|Query(asked)| asked).map_err(|error| Refusal::bad(error.body_text()))
    }
}

impl CallQuery {
    fn wait(&self) -> Duration {
        let seconds = self.wait.filter(|seconds| seconds.is_finite()).unwrap_or(USUAL_WAIT);
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_WAIT))
    }

    fn order(&self) -> Result<u64, Refusal> {
        self.order.ok_or_else(|| Refusal::bad("which order is answered? say ?order=NUMBER, the Mingle-Order of it"))
    }
}

/// Returns the attached trainer, the task and what is waited for. A call with a session also renews its lease.
async fn show(Served(host): Served<TrainerHost>, headers: HeaderMap) -> HandlerResult {
    if headers.contains_key(SESSION) {
        check_session(&host, &headers)?;
    }
    let waiting_for = host.waiting_for();
    let state = host.state();
    let trainer = state.session.as_ref().map(|session| session.description.clone());
    let task = state.task.as_ref().map(|task| json!({ "name": task.name, "dimension": task.layout.dimension() }));
    Ok(Json(json!({ "protocol": 1, "trainer": trainer, "task": task, "waiting_for": waiting_for })).into_response())
}

async fn attach(Served(host): Served<TrainerHost>, caller: Extension<Caller>, body: Body) -> HandlerResult {
    let attach = Attach::parse(&read_bytes(body, MAX_ATTACH_BYTES).await?)?;
    // Where they stay unknown, the trainer is told so.
    let _ = tokio::time::timeout(Duration::from_secs_f64(USUAL_WAIT), host.rounds_are_known()).await;
    Ok(Json(host.attach(&attach, *caller)?).into_response())
}

async fn initial(Served(host): Served<TrainerHost>, headers: HeaderMap, body: Body) -> HandlerResult {
    let task = check_session(&host, &headers)?;
    let vector = read_vector(body, &task.layout).await?;
    check_session(&host, &headers)?;
    host.change(|state| state.offer(vector));
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn order(Served(host): Served<TrainerHost>, asked: CallQuery, headers: HeaderMap) -> HandlerResult {
    check_session(&host, &headers)?;
    next_order(&host, &headers, asked.wait()).await
}

/// Asks the swarm to end its training before its last round, or no longer.
async fn end(Served(host): Served<TrainerHost>, asked: CallQuery, headers: HeaderMap) -> HandlerResult {
    check_session(&host, &headers)?;
    let Some(wish) = &host.options().end_wish else {
        return Err(Refusal::bad("this swarm has no operator, whose peer could end it for all")
            .hint("mingle stop ends this peer; mingle init --swarm NAME founds a swarm with an operator"));
    };
    let asks = asked.asks.unwrap_or(true);
    if (wish.get() != Wish::GoOn) != asks {
        wish.set(if asks { Wish::End } else { Wish::GoOn });
        host.tell(Event::AskedToEnd(AskedToEnd { asks }));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn exchange(
    Served(host): Served<TrainerHost>,
    asked: CallQuery,
    headers: HeaderMap,
    body: Body,
) -> HandlerResult {
    let number = asked.order()?;
    let steps = asked.steps;
    let task = check_session(&host, &headers)?;
    host.state().check_order(number, true)?;
    let steps = steps
        .ok_or_else(|| Refusal::bad("how many steps were taken? say ?steps=NUMBER; 0 where nothing was trained"))?;
    let (loss, metrics) = measured(&headers)?;
    let vector = if steps == 0 { None } else { Some(read_vector(body, &task.layout).await?) };
    check_session(&host, &headers)?;
    host.change(|state| {
        // Another answer may have come while this one was being read.
        state.check_order(number, true)?;
        state.report(metrics);
        state.take(TrainerAnswer::Change { vector, steps, loss }, Instant::now());
        Ok::<_, Refusal>(())
    })?;
    next_order(&host, &headers, asked.wait()).await
}

async fn evaluation(
    Served(host): Served<TrainerHost>,
    asked: CallQuery,
    headers: HeaderMap,
    body: Body,
) -> HandlerResult {
    let number = asked.order()?;
    check_session(&host, &headers)?;
    host.state().check_order(number, false)?;
    let body = read_bytes(body, MAX_METRICS_BYTES).await?;
    let body: EvaluationBody = serde_json::from_slice(&body).map_err(|error| {
        Refusal::bad(format!("this is no evaluation, such as {{\"metrics\": {{\"accuracy\": [0.97, 360]}}}}: {error}"))
    })?;
    let metrics = check_metrics(body.metrics)?;
    host.change(|state| {
        state.check_order(number, false)?;
        state.take(TrainerAnswer::Evaluation(metrics), Instant::now());
        Ok::<_, Refusal>(())
    })?;
    next_order(&host, &headers, asked.wait()).await
}

async fn put_state(
    Served(host): Served<TrainerHost>,
    asked: CallQuery,
    headers: HeaderMap,
    body: Body,
) -> HandlerResult {
    let number = asked.order()?;
    let task = check_session(&host, &headers)?;
    host.state().check_order(number, true)?;
    let bytes = read_bytes(body, task.state_bytes).await?;
    host.change(|state| state.kept.put(number, bytes));
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn state(Served(host): Served<TrainerHost>, asked: CallQuery, headers: HeaderMap) -> HandlerResult {
    check_session(&host, &headers)?;
    let (bytes, nothing) = match asked.of {
        None => (host.state().kept.own().to_vec(), "no state is kept of this training"),
        Some(StateOwner::Member) => {
            (host.state().kept.given().to_vec(), "no member has given the state of its training")
        }
    };
    if bytes.is_empty() {
        return Err(Refusal::nothing(nothing));
    }
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn detach(Served(host): Served<TrainerHost>, headers: HeaderMap) -> HandlerResult {
    check_session(&host, &headers)?;
    let who = host.state().session.as_ref().map(|session| session.description.clone()).unwrap_or_default();
    host.change(State::note_farewell);
    host.detach(format!("{who} has detached"));
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Checks that a call shows the session of the attached trainer, and returns the task.
fn check_session(
    host: &TrainerHost,
    headers: &HeaderMap,
) -> Result<std::sync::Arc<crate::memory::TrainedTask>, Refusal> {
    let id = headers.get(SESSION).and_then(|value| value.to_str().ok()).ok_or_else(|| {
        Refusal::bad("which session is this? send the header Mingle-Session with what attach answered")
    })?;
    host.state().check_session(id, Instant::now())
}

/// The loss and metrics in the headers of an exchange.
fn measured(headers: &HeaderMap) -> Result<(Option<f64>, crate::wire::WeightedMetrics), Refusal> {
    let loss = headers.get("mingle-loss").map(|value| {
        let loss = value.to_str().ok().and_then(|text| text.parse::<f64>().ok()).filter(|loss| loss.is_finite());
        loss.ok_or_else(|| Refusal::bad("Mingle-Loss is a finite number"))
    });
    let metrics = match headers.get("mingle-metrics") {
        Some(value) if value.len() > MAX_METRICS_BYTES => {
            return Err(Refusal::bad(format!("Mingle-Metrics has more than {MAX_METRICS_BYTES} bytes")));
        }
        Some(value) => metrics(value.as_bytes())?,
        None => crate::wire::WeightedMetrics::new(),
    };
    Ok((loss.transpose()?, metrics))
}

/// Waits for the next order or the end; answers `202` where neither comes within `wait`.
async fn next_order(host: &TrainerHost, headers: &HeaderMap, wait: Duration) -> HandlerResult {
    let until = tokio::time::Instant::now() + wait;
    let mut changes = host.changes();
    loop {
        changes.mark_unchanged();
        let next = host.state().next();
        match next {
            NextOrder::Order(order) => return Ok(in_vector(&order)),
            NextOrder::End(RunEnd::Model { vector, rounds, was_stopped }) => {
                let headers = [
                    (header::CONTENT_TYPE, word("application/octet-stream")),
                    (name("mingle-kind"), word("end")),
                    (name("mingle-round"), rounds.into()),
                    (name("mingle-stopped"), word(if was_stopped { "true" } else { "false" })),
                ];
                let told = host.clone();
                let body = VectorBody::new(vector).on_end(move || told.change(State::note_end_told));
                return Ok((headers, Body::new(body)).into_response());
            }
            NextOrder::End(failure @ RunEnd::Failure { .. }) => {
                host.change(State::note_end_told);
                return Err(failure.refusal());
            }
            NextOrder::Nothing => {}
        }
        check_session(host, headers)?;
        if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
            let waiting = Json(json!({ "waiting_for": host.waiting_for() }));
            return Ok((StatusCode::ACCEPTED, waiting).into_response());
        }
    }
}

/// The response that carries an order.
fn in_vector(order: &Order) -> Response {
    let mut response = Response::new(Body::new(VectorBody::new(order.vector.clone())));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, word("application/octet-stream"));
    headers.insert("mingle-order", order.number.into());
    headers.insert("mingle-round", order.round.into());
    match order.work {
        OrderKind::Evaluate => drop(headers.insert("mingle-kind", word("evaluate"))),
        OrderKind::Train { steps, rounds_left, seconds, last_factor } => {
            headers.insert("mingle-kind", word("train"));
            headers.insert("mingle-steps", steps.into());
            headers.insert("mingle-rounds-left", rounds_left.into());
            headers.insert("mingle-last-factor", number(last_factor));
            if let Some(seconds) = seconds {
                headers.insert("mingle-seconds", number(seconds));
            }
        }
    }
    response
}

fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

fn word(word: &'static str) -> HeaderValue {
    HeaderValue::from_static(word)
}

/// The shortest decimal that reads back as the same number.
fn number(number: f64) -> HeaderValue {
    // Digits, signs and points are all visible.
    HeaderValue::from_str(&number.to_string()).unwrap_or(HeaderValue::from_static("1"))
}
