//! Connections: accepted up to a limit, served with limits, ended in good order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::error::{Error, ErrorKind, Result};

/// Connections to a listener at a time; further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// A request's head arrives within this time, and an idle connection is closed after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Header fields of a request.
const MAX_HEADERS: usize = 64;
/// Bytes that are read ahead, which is also the bound of a request's head.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;
/// The same where models are sent.
pub(super) const MODEL_BUFFER_BYTES: usize = 256 * 1024;
/// When the system has no more file descriptors, the next try comes after this pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Something that connections come from.
pub(super) trait Listener: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Who has opened it.
    fn caller(stream: &Self::Stream) -> Caller;
}

/// Who has opened the connection that a request came over: an extension of every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its process, as the operating system says; none over TCP, or from another container.
    pub process: Option<i32>,
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }

    fn caller(stream: &UnixStream) -> Caller {
        let process = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
        Caller { process: process.filter(|process| *process > 0) }
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Only a preference: the last piece of an answer does not wait for more.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn caller(_stream: &TcpStream) -> Caller {
        Caller::default()
    }
}

/// Listens on the TCP address of this option; returns the address too, with the port that the system chose.
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

/// Serves `router` until the peer closes, with so many bytes read ahead of each connection; returns when the last one has ended.
pub(super) async fn serve<L: Listener>(listener: L, router: Router, buffer: usize, mut closing: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await.ok()?;
            Some((listener.next().await, permit))
        };
        tokio::select! {
            () = closed(&mut closing) => break,
            Some(_) = connections.join_next() => {}
            accepted = accepted => match accepted {
                Some((Ok(stream), permit)) => {
                    let router = router.clone().layer(Extension(L::caller(&stream)));
                    let connection = carry(stream, router, buffer, closing.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Some((Err(error), _)) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                None => break,
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn carry(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    buffer: usize,
    mut closing: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(buffer)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    // How a connection ends is the client's affair.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

/// Waits until the peer closes, or is gone.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
