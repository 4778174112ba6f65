//! Connections: accepted up to a limit, served with limits, ended in good order.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mingle_net::guests::{ConnectionLimits, Guests, Seat};
use mingle_net::unread::Unread;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answer::refuse;
use crate::error::{Error, ErrorKind, Result};

/// The path of the liveness probe: the process lives.
pub(super) const LIVE: &str = "/livez";
/// The path of the readiness probe: the peer takes part.
pub(super) const READY: &str = "/readyz";
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;
/// Pause before the next accept when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Limits and timeouts of a listener's connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    limits: ConnectionLimits,
    /// Bytes that are read ahead, which is also the bound of a request's head.
    buffer_bytes: usize,
    /// A request's head arrives within this time, and an idle connection is closed after it.
    head_timeout: Duration,
    /// Some of an answer is taken within this time.
    unread_timeout: Duration,
    /// `true` if a connection may carry several requests.
    keeps_alive: bool,
}

impl Manners {
    /// Those of the socket, for the owner of the home and the trainer that the peer has started.
    pub(super) const SOCKET: Self = Self {
        limits: ConnectionLimits { connections: 64, per_address: 64, probes: 0 },
        buffer_bytes: 256 * 1024,
        head_timeout: Duration::from_secs(10),
        unread_timeout: Duration::from_secs(60),
        keeps_alive: true,
    };
    /// Those of the TCP address for trainers, which show a token.
    pub(super) const TRAINERS: Self =
        Self { limits: ConnectionLimits { per_address: 32, ..Self::SOCKET.limits }, ..Self::SOCKET };
    /// Those of the page, which any client may reach: one address has half of the places at most.
    pub(super) const PAGE: Self = Self {
        limits: ConnectionLimits { connections: 64, per_address: 32, probes: 8 },
        buffer_bytes: 16 * 1024,
        head_timeout: Duration::from_secs(2),
        unread_timeout: Duration::from_secs(10),
        keeps_alive: false,
    };
}

/// Something that connections come from.
pub(super) trait Listener: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The process that opened the connection, where the system knows it.
    fn caller(stream: &Self::Stream) -> Caller;

    /// From where; none on this machine alone.
    fn address(stream: &Self::Stream) -> Option<IpAddr>;
}

/// The opener of the connection over which a request came: an extension of every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The process id according to the operating system; `None` over TCP, or from another container.
    pub process: Option<i32>,
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Only a preference, so that the last piece of an answer is not delayed.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn caller(_stream: &TcpStream) -> Caller {
        Caller::default()
    }

    fn address(stream: &TcpStream) -> Option<IpAddr> {
        stream.peer_addr().ok().map(|address| address.ip())
    }
}

/// Listens on the TCP address of this option. Returns the address too, with the port that the system chose.
pub(super) async fn listen_tcp(option: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok::<_, io::Error>((listener, address))
    };
    bound.await.map_err(|error| {
        Error::new(ErrorKind::Unreachable, format!("cannot listen on {option} {address}: {error}"))
            .hint("another process may use this port; port 0 takes any that is free")
    })
}

/// Serves `router` until the peer closes; returns when the last connection has ended.
pub(super) async fn serve<L: Listener>(
    listener: L,
    router: Router,
    manners: Manners,
    mut closing: watch::Receiver<bool>,
) {
    let guests = Guests::new(manners.limits);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = closed(&mut closing) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.next() => match accepted {
                Ok(stream) => {
                    // Without a place it is closed at once.
                    let Some(seat) = guests.seat(L::address(&stream)) else { continue };
                    let router = router.clone().layer(Extension(L::caller(&stream))).layer(Extension(Arc::clone(&seat)));
                    connections.spawn(carry(stream, router, manners, seat, closing.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection, for as long as it keeps its place.
async fn carry(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    manners: Manners,
    seat: Arc<Seat>,
    mut closing: watch::Receiver<bool>,
) {
    let stream = TokioIo::new(Unread::new(stream, manners.unread_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(manners.head_timeout)
        .keep_alive(manners.keeps_alive)
        .max_headers(MAX_HEADERS)
        .max_buf_size(manners.buffer_bytes)
        .serve_connection(stream, TowerToHyperService::new(router));
    tokio::pin!(connection);
    // A connection may end in any way that the client chooses.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = seat.is_wanted() => Ok(()),
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

/// Notes of a request that its connection keeps its place: to be put behind whatever turns requests away.
pub(super) async fn hear(Extension(seat): Extension<Arc<Seat>>, request: Request, next: Next) -> Response {
    if seat.hear([LIVE, READY].contains(&request.uri().path())) {
        return next.run(request).await;
    }
    refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Refused, "too many connections are open: ask again")
}

/// Waits until the peer closes, or is gone.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use axum::middleware;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A page with nothing but a probe, and its address.
    async fn page(closing: watch::Receiver<bool>) -> SocketAddr {
        let (listener, address) = listen_tcp("--http", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let router = Router::new().route(LIVE, get(async || "alive\n")).layer(middleware::from_fn(hear));
        tokio::spawn(serve(listener, router, Manners::PAGE, closing));
        address
    }

    /// A connection over which so much of a request was sent.
    async fn send(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_probe_is_answered_within_a_second_beside_eighty_half_requests() {
        let (_open, closing) = watch::channel(false);
        let address = page(closing).await;
        let mut held = Vec::new();
        for _ in 0..80 {
            held.push(send(address, "GET /livez HTTP/1.1\r\nHost: ").await);
        }
        for _ in 0..3 {
            let probe = async {
                let mut stream = send(address, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                answer
            };
            let answer = tokio::time::timeout(Duration::from_secs(1), probe).await.expect("it is answered in time");
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("alive\n"), "{answer}");
        }
    }

    #[tokio::test]
    async fn half_a_request_is_not_waited_for_long() {
        let (_open, closing) = watch::channel(false);
        let mut stream = send(page(closing).await, "GET /livez HTTP/1.1\r\nHost: ").await;
        let ended = tokio::time::timeout(Duration::from_secs(8), stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "the connection is closed");
    }
}
