//! Bytes over a plain TCP socket.

use std::time::Duration;

use mingle_home::error::Context;
use mingle_home::{ErrorKind, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

use super::exchange::{answer_each, send};

/// A connected pair of sockets; a task reads the far one.
pub(super) struct SocketPair {
    near: Compat<TcpStream>,
    message: Vec<u8>,
}

impl SocketPair {
    /// A pair for messages of `bytes` bytes.
    pub(super) async fn connect(bytes: usize) -> Result<Self> {
        let doing = "cannot connect a socket over the loopback interface";
        let listener = TcpListener::bind("127.0.0.1:0").await.context(ErrorKind::Unreachable, doing)?;
        let address = listener.local_addr().context(ErrorKind::Unreachable, doing)?;
        let near = TcpStream::connect(address).await.context(ErrorKind::Unreachable, doing)?;
        let (far, _) = listener.accept().await.context(ErrorKind::Unreachable, doing)?;
        for socket in [&near, &far] {
            socket.set_nodelay(true).context(ErrorKind::Unreachable, doing)?;
        }
        tokio::spawn(answer_each(far.compat(), bytes));
        Ok(Self { near: near.compat(), message: vec![7; bytes] })
    }

    /// Sends one message and waits for the answer.
    pub(super) async fn send(&mut self) -> Result<Duration> {
        send(&mut self.near, &self.message).await.context(ErrorKind::Unreachable, "the plain socket broke")
    }
}
