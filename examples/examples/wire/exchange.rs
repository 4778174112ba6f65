//! Exchanges over any stream: a message of bytes one way, and an answer of one byte back.

use std::io;
use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes read at a time.
const READ_BYTES: usize = 256 * 1024;

/// Sends a message, and returns the time until its answer has arrived.
pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(near: &mut S, message: &[u8]) -> io::Result<Duration> {
    let began = Instant::now();
    near.write_all(message).await?;
    near.flush().await?;
    near.read_exact(&mut [0]).await?;
    Ok(began.elapsed())
}

/// Reads messages of this many bytes until the other end is gone, and answers each.
pub(super) async fn answer_each<S: AsyncRead + AsyncWrite + Unpin>(mut far: S, bytes: usize) -> io::Result<()> {
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
        far.flush().await?;
    }
}
