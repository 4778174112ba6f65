//! Bytes over a plain TCP socket.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::{Kind, OrFail, Outcome};

/// Bytes read at a time.
const READ_BYTES: usize = 256 * 1024;

/// A connected pair of sockets; a task reads the far one.
pub(super) struct SocketPair {
    near: TcpStream,
    message: Vec<u8>,
}

impl SocketPair {
    /// A pair for messages of `bytes` bytes.
    pub(super) async fn connect(bytes: usize) -> Outcome<Self> {
        let doing = "cannot connect a socket over the loopback interface";
        let listener = TcpListener::bind("127.0.0.1:0").await.or_fail(Kind::Unreachable, doing)?;
        let address = listener.local_addr().or_fail(Kind::Unreachable, doing)?;
        let near = TcpStream::connect(address).await.or_fail(Kind::Unreachable, doing)?;
        let (far, _) = listener.accept().await.or_fail(Kind::Unreachable, doing)?;
        for socket in [&near, &far] {
            socket.set_nodelay(true).or_fail(Kind::Unreachable, doing)?;
        }
        tokio::spawn(answer_each(far, bytes));
        Ok(Self { near, message: vec![7; bytes] })
    }

    /// Sends one message and waits for the answer.
    pub(super) async fn send(&mut self) -> Outcome<Duration> {
        let began = Instant::now();
        let mut answer = [0];
        let exchange = async {
            self.near.write_all(&self.message).await?;
            self.near.read_exact(&mut answer).await
        };
        exchange.await.or_fail(Kind::Unreachable, "the plain socket broke")?;
        Ok(began.elapsed())
    }
}

/// Reads messages until the other end is gone, and answers each with a byte.
async fn answer_each(mut far: TcpStream, bytes: usize) -> std::io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let mut missing = bytes;
        while missing > 0 {
            let room = missing.min(READ_BYTES);
            match far.read(&mut buffer[..room]).await? {
                0 => return Ok(()),
                count => missing -= count,
            }
        }
        far.write_all(&[1]).await?;
    }
}
