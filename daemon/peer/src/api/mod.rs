//! The local interface of a running peer: HTTP over a Unix socket in its home (on Windows over a named pipe), for the
//! commands that watch and steer it. On request it is also served over TCP: read only, for a browser and for Prometheus,
//! and for a trainer that shows a token.
//!
//! ```text
//!   GET /v1/status         the snapshot (mingle.status/1)      GET /v1/status/follow  each new one, as an SSE stream
//!   GET /v1/peers          its neighbours                      GET /v1/events         the events, as an SSE stream
//!   GET /metrics           OpenMetrics                         GET /livez, /readyz    for supervisors
//!   POST /v1/stop          end in good order (socket only)     GET /, /plan.svg       the page (TCP only)
//!   POST /v1/leave         hand all weight over, and end
//!   GET /v1/known          whose links can be measured         POST /v1/measure?from=PEER&to=PEER
//! ```
//!
//! The driver knows nothing of HTTP: it updates a [`StatusBoard`](crate::status::StatusBoard), publishes events on a
//! bus, and takes [`Request`]s from a queue. The interface cannot delay it.

mod answer;
mod browser;
pub mod client;
mod measuring;
mod page;
#[cfg(windows)]
mod pipe;
mod request;
mod routes;
mod serve;
#[cfg(unix)]
mod socket;
mod stream;
mod token;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use libp2p_metrics::Registry;
use mingle_planner::Plan;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::Result;
use crate::events::EventFeed;
use crate::home::Home;
use crate::membership::MembershipService;
use crate::openmetrics;
use crate::status::Status;
pub use answer::fail;
pub use measuring::{Known, LinkSpeed};
#[cfg(windows)]
use pipe as socket;
pub use request::{EndAnswer, Request, Stopping, requests};
pub use routes::peers_object;
pub use serve::Caller;
use serve::Manners;
use socket::SocketFile;
pub use token::AccessToken;

/// Time that answers under way get when the peer ends.
const CLOSING: Duration = Duration::from_secs(1);

/// Sources of the interface's answers, and the queue of its requests.
pub struct ApiState {
    /// The newest snapshot.
    pub status: watch::Receiver<Arc<Status>>,
    /// Feed of the events.
    pub events: EventFeed,
    /// Metrics of libp2p.
    pub registry: Registry,
    /// Queue of requests to the driver.
    pub requests: mpsc::Sender<Request>,
}

/// Addresses served besides the socket, and further calls.
#[derive(Default)]
pub struct Openings {
    /// Address of the page.
    pub http: Option<SocketAddr>,
    /// Further calls, served over the socket.
    pub more: Option<Router>,
    /// TCP address at which the further calls are served too.
    pub tcp: Option<TcpOpening>,
}

/// A TCP address for clients with a token.
pub struct TcpOpening {
    /// The option that requests it, for error messages.
    pub option: &'static str,
    /// Address to listen on; port 0 takes any free port.
    pub address: SocketAddr,
    /// The token that a request must show.
    pub token: AccessToken,
    /// Called with the address once it is open, before anything is served there.
    pub opened: Box<dyn FnOnce(SocketAddr) -> Result + Send>,
}

/// The interface while it is open. Dropping it closes it at once, and removes the socket.
pub struct Interface {
    shared: Arc<Shared>,
    /// `true` once the peer ends.
    closing: watch::Sender<bool>,
    listeners: JoinSet<()>,
    socket: Option<SocketFile>,
    page: Option<SocketAddr>,
    guarded: Option<SocketAddr>,
    /// The reason for which there is no socket.
    trouble: Option<String>,
}

/// State shared by all connections.
struct Shared {
    status: watch::Receiver<Arc<Status>>,
    events: EventFeed,
    registry: Registry,
    requests: mpsc::Sender<Request>,
    plan: Mutex<Option<Arc<Plan>>>,
    service: OnceLock<Arc<MembershipService>>,
}

impl Interface {
    /// Opens the socket in `home`, and the requested addresses.
    ///
    /// # Errors
    /// Another process answers on the socket, or an address cannot be listened on. A machine without room for a socket
    /// is no error: see [`Interface::troubles`].
    pub async fn open(home: &Home, openings: Openings, api_state: ApiState) -> Result<Self> {
        let Openings { http, more, tcp } = openings;
        let more = more.unwrap_or_default();
        let ApiState { status, events, mut registry, requests } = api_state;
        openmetrics::register(&mut registry, status.clone());
        let shared =
            Arc::new(Shared { status, events, registry, requests, plan: Mutex::new(None), service: OnceLock::new() });
        let (closing, closes) = watch::channel(false);
        let mut listeners = JoinSet::new();
        let (socket, trouble) = match socket::open(home)? {
            socket::Opened::Listening(file, listener) => {
                let router = routes::local(&shared, more.clone());
                listeners.spawn(serve::serve(listener, router, Manners::SOCKET, closes.clone()));
                (Some(file), None)
            }
            socket::Opened::Impossible(why) => (None, Some(why)),
        };
        let mut page = None;
        let mut guarded = None;
        if let Some(address) = http {
            let (listener, address) = serve::listen_tcp("--http", address).await?;
            listeners.spawn(serve::serve(listener, routes::public(&shared), Manners::PAGE, closes.clone()));
            page = Some(address);
        }
        if let Some(TcpOpening { option, address, token, opened }) = tcp {
            let (listener, address) = serve::listen_tcp(option, address).await?;
            opened(address)?;
            let router = routes::guarded(&shared, more, token);
            listeners.spawn(serve::serve(listener, router, Manners::TRAINERS, closes));
            guarded = Some(address);
        }
        Ok(Self { shared, closing, listeners, socket, page, guarded, trouble })
    }

    /// The path of the socket, if there is one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.socket.as_ref().map(|file| file.path().to_path_buf())
    }

    /// The URL of the page, if it is served.
    pub fn page(&self) -> Option<String> {
        self.page.map(|address| format!("http://{address}/"))
    }

    /// The URL at which trainers are served over TCP, if they are.
    pub fn guarded(&self) -> Option<String> {
        self.guarded.map(|address| format!("http://{address}"))
    }

    /// Warnings about this interface for the operator.
    pub fn troubles(&self) -> Vec<String> {
        let exposed = |address: &Option<SocketAddr>| address.filter(|address| !address.ip().is_loopback());
        let page = exposed(&self.page).map(|address| {
            format!("whoever can reach {address} can watch this peer there; 127.0.0.1 keeps it to this machine")
        });
        let guarded = exposed(&self.guarded).map(|address| {
            format!(
                "what goes to {address} is not encrypted: whoever can read along on the network gets the token and the models, and can \
                 train in place of the trainer; 127.0.0.1 keeps it to this machine"
            )
        });
        self.trouble.iter().cloned().chain(page).chain(guarded).collect()
    }

    /// Sets the plan that the page draws from now on.
    pub fn show_plan(&self, plan: &Plan) {
        if self.page.is_some() {
            *self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(plan.clone()));
        }
    }

    /// Sets the service that answers questions about other peers from now on.
    pub fn show_service(&self, service: &Arc<MembershipService>) {
        // There is one service per process.
        let _ = self.shared.service.set(Arc::clone(service));
    }

    /// Accepts no more connections, gives those under way `CLOSING` to end, and removes the socket.
    pub async fn close(mut self) {
        self.socket = None;
        let _ = self.closing.send(true);
        // Longer ones are cut off when this is dropped.
        let _ = tokio::time::timeout(CLOSING, async { while self.listeners.join_next().await.is_some() {} }).await;
    }
}
